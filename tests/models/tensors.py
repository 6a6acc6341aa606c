"""Writing safetensors files, as those that publish models do."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memoryd.models.convert.weights import TYPES


def write_tensors(path: Path, tensors: dict[str, NDArray[Any]]) -> None:
    """Write tensors as a safetensors file."""
    kinds = {np.dtype(kind): name for name, kind in TYPES.items() if name != "BF16"}
    header: dict[str, Any] = {}
    end = 0
    for name, tensor in tensors.items():
        begin, end = end, end + tensor.nbytes
        header[name] = {"dtype": kinds[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors.values():
            file.write(np.ascontiguousarray(tensor).tobytes())

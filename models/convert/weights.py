"""Read safetensors files with only numpy.

The format: eight bytes of little-endian header length, a JSON header with the type, shape and byte range of each
tensor, then the bytes. Tensors are views of a memory map; nothing is copied until a tensor is used.
"""

import json
import mmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memoryd.models.errors import ModelBroken

TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "I8": "i1", "U8": "u1"}
HEADER_LIMIT_BYTES = 100_000_000


def read_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """Return every tensor of a safetensors file by name; raise ModelBroken if the file is incomplete."""
    try:
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        start, header = _read_header(data)
        return {name: _view_tensor(data, start, entry) for name, entry in header.items() if name != "__metadata__"}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelBroken(f"{path.name} is not a whole safetensors file ({error}); fetch it again.") from error


def _read_header(data: mmap.mmap) -> tuple[int, dict[str, Any]]:
    size = int.from_bytes(data[:8], "little")
    if not 0 < size <= min(HEADER_LIMIT_BYTES, len(data) - 8):
        raise ValueError("its header is cut off")
    return 8 + size, json.loads(data[8 : 8 + size])


def _view_tensor(data: mmap.mmap, start: int, entry: dict[str, Any]) -> NDArray[Any]:
    kind, (begin, end) = np.dtype(TYPES[entry["dtype"]]), entry["data_offsets"]
    if start + end > len(data):
        raise ValueError("its data is cut off")
    values = np.frombuffer(data, kind, (end - begin) // kind.itemsize, start + begin).reshape(entry["shape"])
    if entry["dtype"] == "BF16":
        return (values.astype(np.uint32) << 16).view(np.float32)
    return values

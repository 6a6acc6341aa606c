"""Ways to store a weight matrix, as functions with one signature, so that formats can be compared.

`block8` is the format memoryd ships: 8-bit weights in blocks of 32 with one scale each, multiplied with activations
that are quantised per block too (accuracy level 4). Each row of activations has its own scales, so the vector of a
text never depends on its neighbours. tests/benchmarks/bench_embed.py compares it with the alternatives.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from memoryd.models.convert.graph import Graph

BLOCK = 32
MIDDLE = 128  # the code of zero in unsigned 8-bit blocks
INTEGER_COMPUTE = 4  # MatMulNBits accuracy level: multiply as 8-bit integers


def plain(graph: Graph, name: str, value: str, weight: NDArray[Any], bias: NDArray[Any]) -> str:
    """Add `value @ weight.T + bias` in fp32; `weight` has shape (outputs, inputs)."""
    matrix = graph.constant(f"{name}.weight", weight.T.astype(np.float32))
    product = graph.add("MatMul", [value, matrix], f"{name}.product")
    return graph.add("Add", [product, graph.constant(f"{name}.bias", bias.astype(np.float32))], f"{name}.sum")


def block8(graph: Graph, name: str, value: str, weight: NDArray[Any], bias: NDArray[Any], block: int = BLOCK) -> str:
    """Add `value @ weight.T + bias` with 8-bit weights in blocks; `weight` has shape (outputs, inputs)."""
    codes, scales = quantise_blocks(weight, block)
    constants = [
        graph.constant(f"{name}.weight", codes),
        graph.constant(f"{name}.scales", scales),
        "",
        "",
        graph.constant(f"{name}.bias", bias.astype(np.float32)),
    ]
    outputs, inputs = weight.shape
    shape = {"N": outputs, "K": inputs, "bits": 8, "block_size": block, "accuracy_level": INTEGER_COMPUTE}
    return graph.add_contributed("MatMulNBits", [value, *constants], f"{name}.sum", **shape)


def quantise_blocks(weight: NDArray[Any], block: int) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Return codes of shape (rows, blocks, block) around 128 and scales of shape (rows, blocks): symmetric, nearest."""
    rows, columns = weight.shape
    blocks = -(-columns // block)
    padded = np.zeros((rows, blocks * block), np.float32)
    padded[:, :columns] = weight
    cut = padded.reshape(rows, blocks, block)
    scales = np.maximum(np.abs(cut).max(axis=2) / 127, np.finfo(np.float32).tiny).astype(np.float32)
    codes = np.rint(cut / scales[:, :, None]).clip(-127, 127) + MIDDLE
    return codes.astype(np.uint8), scales

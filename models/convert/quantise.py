"""Ways to store a weight matrix, as functions with one signature, so that formats can be compared.

Every function adds `value @ weight.T + bias` to a graph; `weight` has shape (outputs, inputs). None of them lets one
text, or one token, influence how another is rounded, beyond the tokens of a row itself.
tests/benchmarks/bench_embed.py compares speed, memory and agreement with fp32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memoryd.models.convert.graph import Graph

Linear = Callable[[Graph, str, str, NDArray[Any], NDArray[Any]], str]
Floats = NDArray[np.float32]

BLOCK = 32
MIDDLE = 128  # the code of zero in unsigned bytes
STEPS = 127  # codes on each side of zero
INTEGER_COMPUTE = 4  # MatMulNBits accuracy level: multiply as 8-bit integers
GROUP = 384  # inputs that share one scale per row
BALANCE = 0.65  # how much of an input channel's size is moved into the weights (0 none, 1 all)
TINY = 1e-9


class Range(NamedTuple):
    """The range of an input of a matrix on sample texts, per channel."""

    mean: Floats
    spread: Floats
    """Largest distance from the mean."""


def multiply_fp32(graph: Graph, name: str, value: str, weight: NDArray[Any], bias: NDArray[Any]) -> str:
    """Multiply in fp32."""
    matrix = graph.add_constant(f"{name}.weight", weight.T.astype(np.float32))
    product = graph.add("MatMul", [value, matrix], f"{name}.product")
    return graph.add("Add", [product, graph.add_constant(f"{name}.bias", bias)], f"{name}.sum")


def multiply_block8(
    graph: Graph, name: str, value: str, weight: NDArray[Any], bias: NDArray[Any], block: int = BLOCK
) -> str:
    """Multiply 8-bit weights with 8-bit inputs, both in blocks of 32 inputs with a scale each.

    Exact integer arithmetic on every processor; the format where there are no 8-bit dot products.
    """
    codes, scales = quantise_blocks(weight, block)
    weights = [graph.add_constant(f"{name}.weight", codes), graph.add_constant(f"{name}.scales", scales)]
    outputs, inputs = weight.shape
    shape = {"N": outputs, "K": inputs, "bits": 8, "block_size": block, "accuracy_level": INTEGER_COMPUTE}
    operands = [value, *weights, "", "", graph.add_constant(f"{name}.bias", bias)]
    return graph.add_contributed("MatMulNBits", operands, f"{name}.sum", **shape)


def make_rows8(ranges: Mapping[str, Range], group: int = GROUP) -> Linear:
    """Return a function that multiplies 8-bit weights with inputs that are rounded to 8 bits row by row.

    Transformers have a few channels that are far larger than the rest; one scale per row would spend its 256 codes on
    them. So each channel is centred and scaled first by its entry in `ranges`, with the inverse applied to the weights
    (SmoothQuant, arXiv 2211.10438), and long rows are cut into groups with a scale each. Twice as fast as `block8` on
    processors with 8-bit dot products; others would saturate 16-bit sums.
    """

    def multiply(graph: Graph, name: str, value: str, weight: NDArray[Any], bias: NDArray[Any]) -> str:
        inputs = weight.shape[1]
        groups = inputs // group if inputs % group == 0 else 1
        parts = graph.split(value, [f"{name}.part{i}" for i in range(groups)]) if groups > 1 else [value]
        found, total = ranges[name], ""
        for number, (part, columns) in enumerate(zip(parts, np.split(np.arange(inputs), groups), strict=True)):
            seen = Range(found.mean[columns], found.spread[columns])
            product, bias = _multiply_rows(graph, f"{name}.{number}", part, seen, (weight[:, columns], bias))
            total = graph.add("Add", [total, product], f"{name}.{number}.total") if total else product
        return graph.add("Add", [total, graph.add_constant(f"{name}.bias", bias)], f"{name}.sum")

    return multiply


def _multiply_rows(
    graph: Graph, name: str, value: str, seen: Range, weight_bias: tuple[NDArray[Any], NDArray[Any]]
) -> tuple[str, Floats]:
    """Add the product of one group of inputs; return it and the bias that compensates for the centring."""
    weight, bias = weight_bias
    channel = _channel_scales(seen.spread, weight)
    value = graph.add("Sub", [value, graph.add_constant(f"{name}.mean", seen.mean)], f"{name}.centred")
    value = graph.add("Mul", [value, graph.add_constant(f"{name}.inverse", 1 / channel)], f"{name}.smooth")
    codes, row_scale = _round_rows(graph, name, value)
    stored, scales = _quantise_columns(weight * channel)
    one, middle = graph.add_constant("one", np.float32(1)), graph.add_constant("middle", np.uint8(MIDDLE))
    constants = [one, graph.add_constant(f"{name}.scales", scales), middle]
    operands = [codes, graph.add_constant(f"{name}.weight", stored.T), *constants]
    product = graph.add_contributed("MatMulIntegerToFloat", operands, f"{name}.product")
    return graph.add("Mul", [product, row_scale], f"{name}.scaled"), (bias + weight @ seen.mean).astype(np.float32)


def _round_rows(graph: Graph, name: str, value: str) -> tuple[str, str]:
    """Return unsigned codes around 128 of each row, and the scale of each row."""
    last = graph.add_constant("last_axis", np.array([-1], np.int64))
    largest = graph.add("ReduceMax", [graph.add("Abs", [value], f"{name}.size"), last], f"{name}.largest", keepdims=1)
    floor, step = graph.add_constant("tiny", np.float32(TINY)), graph.add_constant("step", np.float32(1 / STEPS))
    scale = graph.add("Max", [graph.add("Mul", [largest, step], f"{name}.step"), floor], f"{name}.row_scale")
    even = graph.add("Div", [value, scale], f"{name}.even")
    one, middle = graph.add_constant("one", np.float32(1)), graph.add_constant("middle", np.uint8(MIDDLE))
    return graph.add("QuantizeLinear", [even, one, middle], f"{name}.codes"), scale


def _channel_scales(spread: Floats, weight: NDArray[Any]) -> Floats:
    """Return the divisor of each input channel before rounding: mean 1."""
    largest_weight = np.maximum(np.abs(weight).max(axis=0), 1e-5)
    scales = np.maximum(spread, TINY) ** BALANCE / largest_weight ** (1 - BALANCE)
    balanced: Floats = np.maximum(scales / scales.mean(), 1e-3).astype(np.float32)
    return balanced


def _quantise_columns(weight: NDArray[Any]) -> tuple[NDArray[np.int8], Floats]:
    """Return signed codes and one scale per output."""
    scales = np.maximum(np.abs(weight).max(axis=1) / STEPS, TINY).astype(np.float32)
    return np.rint(weight / scales[:, None]).astype(np.int8), scales


def quantise_blocks(weight: NDArray[Any], block: int) -> tuple[NDArray[np.uint8], Floats]:
    """Return codes of shape (rows, blocks, block) around 128 and scales of shape (rows, blocks): symmetric, nearest."""
    rows, columns = weight.shape
    blocks = -(-columns // block)
    padded = np.zeros((rows, blocks * block), np.float32)
    padded[:, :columns] = weight
    cut = padded.reshape(rows, blocks, block)
    scales = np.maximum(np.abs(cut).max(axis=2) / STEPS, TINY).astype(np.float32)
    return (np.rint(cut / scales[:, :, None]) + MIDDLE).astype(np.uint8), scales

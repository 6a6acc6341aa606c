"""Formats of weight matrices, as functions with one signature, so that they can be compared.

Every `multiply` adds `value @ weight.T` to a graph, as terms to be summed; `weight` has shape (outputs, inputs). Inputs
are rounded row by row, so that no text or token affects the rounding of another.
tests/benchmarks/bench_embed.py compares speed, memory and agreement with fp32.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memoryd.models.convert.graph import Graph

Multiply = Callable[[Graph, str, str, NDArray[Any]], list[str]]
Floats = NDArray[np.float32]

MIDDLE = 128  # the code of zero in unsigned bytes
STEPS = 127  # codes on each side of zero
SMALL_STEPS = 63  # so that the sum of two products with unsigned bytes fits into 16 bits: 2 x 255 x 63 < 2^15
GROUP = 384  # inputs that share one scale per row
BALANCE = 0.65  # share of an input channel's size that is moved into the weights (0 none, 1 all)
TINY = 1e-9


class Range(NamedTuple):
    """The range of a matrix's input on the sample texts, per channel."""

    mean: Floats
    spread: Floats
    """Largest distance from the mean."""


class Smoothing(NamedTuple):
    """How the input of a matrix is transformed before it is rounded: `(input - mean) / channel`, per channel."""

    mean: Floats
    channel: Floats


class Linear(NamedTuple):
    """A format of matrices: how they multiply, and how their input is smoothed, by name and weight."""

    multiply: Multiply
    smooth: Callable[[str, NDArray[Any]], Smoothing | None] = lambda name, weight: None


def multiply_fp32(graph: Graph, name: str, value: str, weight: NDArray[Any]) -> list[str]:
    """Multiply in fp32."""
    matrix = graph.add_constant(f"{name}.weight", weight.T.astype(np.float32))
    return [graph.add("MatMul", [value, matrix], f"{name}.product")]


def make_rows(ranges: Mapping[str, Range], steps: int = STEPS, group: int = GROUP) -> Linear:
    """Return the format of weights with `steps` codes on each side of zero, and inputs rounded to 8 bits row by row.

    Transformers have a few channels that are far larger than the rest; one scale per row would spend its 256 codes on
    them. So each channel is first centred and scaled by its entry in `ranges`, with the inverse applied to the weights
    (SmoothQuant, arXiv 2211.10438), and long rows are split into groups, each with its own scale. x86 processors
    without 8-bit dot products add two products in 16 bits, which overflows with 8-bit weights but not with SMALL_STEPS.
    """

    def multiply(graph: Graph, name: str, value: str, weight: NDArray[Any]) -> list[str]:
        groups = _count_groups(weight, group)
        codes, scales = _round_rows(graph, name, value, groups)
        parts = zip(codes, scales, np.split(weight, groups, axis=1), strict=True)
        return [_multiply_rows(graph, f"{name}.{number}", *part, steps) for number, part in enumerate(parts)]

    def smooth(name: str, weight: NDArray[Any]) -> Smoothing:
        found, groups = ranges[name], _count_groups(weight, group)
        parts = zip(np.split(found.spread, groups), np.split(weight, groups, axis=1), strict=True)
        return Smoothing(found.mean, np.concatenate([_scale_channels(*part) for part in parts]))

    return Linear(multiply, smooth)


def _count_groups(weight: NDArray[Any], group: int) -> int:
    inputs = weight.shape[1]
    return inputs // group if inputs % group == 0 else 1


def _multiply_rows(graph: Graph, name: str, codes: str, row_scale: str, weight: NDArray[Any], steps: int) -> str:
    """Add the product of one group of inputs; its weights are stored as signed codes with one scale per output."""
    scales = np.maximum(np.abs(weight).max(axis=1) / steps, TINY).astype(np.float32)
    stored = np.rint(weight / scales[:, None]).astype(np.int8)
    step, middle = graph.add_constant("step", np.float32(1 / STEPS)), graph.add_constant("middle", np.uint8(MIDDLE))
    operands = [codes, graph.add_constant(f"{name}.weight", stored.T), step]
    operands += [graph.add_constant(f"{name}.scales", scales), middle]
    product = graph.add_contributed("MatMulIntegerToFloat", operands, f"{name}.product")
    return graph.add("Mul", [product, row_scale], f"{name}.scaled")


def _round_rows(graph: Graph, name: str, value: str, groups: int) -> tuple[list[str], list[str]]:
    """Return the unsigned codes around 128 of each row, and the row's largest absolute value, per group of inputs."""
    if groups > 1:
        apart = graph.add_constant(f"groups.{groups}", np.array([0, 0, groups, -1], np.int64))
        value = graph.add("Reshape", [value, apart], f"{name}.groups")
    last = graph.add_constant("last_axis", np.array([-1], np.int64))
    largest = graph.add("ReduceMax", [graph.add("Abs", [value], f"{name}.size"), last], f"{name}.largest", keepdims=1)
    even = graph.add("Div", [value, largest], f"{name}.even")  # NaN in a row of zeros, whose scale is zero anyway
    step, middle = graph.add_constant("step", np.float32(1 / STEPS)), graph.add_constant("middle", np.uint8(MIDDLE))
    codes = graph.add("QuantizeLinear", [even, step, middle], f"{name}.codes")
    return (_cut(graph, codes, groups), _cut(graph, largest, groups)) if groups > 1 else ([codes], [largest])


def _cut(graph: Graph, value: str, groups: int) -> list[str]:
    together = graph.add_constant("together", np.array([0, 0, -1], np.int64))
    flat = graph.add("Reshape", [value, together], f"{value}.flat")
    return graph.split(flat, [f"{value}.{number}" for number in range(groups)])


def _scale_channels(spread: Floats, weight: NDArray[Any]) -> Floats:
    """Return the divisor of each input channel before rounding; their mean is 1."""
    largest_weight = np.maximum(np.abs(weight).max(axis=0), 1e-5)
    scales = np.maximum(spread, TINY) ** BALANCE / largest_weight ** (1 - BALANCE)
    balanced: Floats = np.maximum(scales / scales.mean(), 1e-3).astype(np.float32)
    return balanced


def quantise_blocks(weight: NDArray[Any], block: int) -> tuple[NDArray[np.uint8], Floats]:
    """Return codes of shape (rows, blocks, block) around 128 and scales of shape (rows, blocks): symmetric, nearest."""
    rows, columns = weight.shape
    blocks = -(-columns // block)
    padded = np.zeros((rows, blocks * block), np.float32)
    padded[:, :columns] = weight
    cut = padded.reshape(rows, blocks, block)
    scales = np.maximum(np.abs(cut).max(axis=2) / STEPS, TINY).astype(np.float32)
    return (np.rint(cut / scales[:, :, None]) + MIDDLE).astype(np.uint8), scales

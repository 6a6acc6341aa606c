"""Parts of the graphs of all encoders: word embeddings, layer normalisations, matrices, pooling."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memoryd.models.convert.graph import FLOAT, Graph
from memoryd.models.convert.quantise import MIDDLE, Floats, Linear, Smoothing, quantise_blocks
from memoryd.models.errors import ModelBroken

Tensors = dict[str, NDArray[Any]]

# Activations, each with the operator that adds a bias and applies it.
ACTIVATIONS = {"gelu": "BiasGelu", "gelu_new": "FastGelu", "gelu_pytorch_tanh": "FastGelu"}


def choose_activation(name: object) -> str:
    """Return the operator for an activation in config.json; raise ModelBroken for an unknown one."""
    if not isinstance(name, str) or name not in ACTIVATIONS:
        raise ModelBroken(
            f"config.json names the activation {name!r}; those that can be converted are {', '.join(ACTIVATIONS)}."
        )
    return ACTIVATIONS[name]


def read_floats(tensors: Tensors, name: str) -> Floats:
    """Return a tensor as 32-bit floats."""
    return tensors[name].astype(np.float32)


def add_words(graph: Graph, table: NDArray[Any], small: bool) -> str:
    """Look words up in `table`; with `small` it is stored as signed bytes with one scale per row.

    That takes a quarter of the memory; the cosine with the exact vectors is 0.9999.
    """
    if not small:
        return graph.add("Gather", [graph.add_constant("words", table.astype(np.float32)), "input_ids"], "words.rows")
    codes, scales = quantise_blocks(table, table.shape[1])
    rows = graph.add_constant("words", (codes[:, 0, :].astype(np.int16) - MIDDLE).astype(np.int8))
    signed = graph.add("Gather", [rows, "input_ids"], "words.codes")
    scale = graph.add("Gather", [graph.add_constant("words.scales", scales), "input_ids"], "words.scale")
    return graph.add("Mul", [graph.add("Cast", [signed], "words.float", to=FLOAT), scale], "words.rows")


class Normed(NamedTuple):
    """A layer normalisation, written once per use, so that the shift and scale of the use need no extra nodes."""

    graph: Graph
    name: str
    total: str
    """The value to be normalised."""
    weight: Floats
    bias: Floats
    epsilon: float

    def add(self, use: str, shift: Floats | None = None, smoothing: Smoothing | None = None) -> str:
        """Add the normalised value plus `shift`, smoothed for a matrix; return the name of the result."""
        weight, bias = self.weight, self.bias
        if shift is not None:
            bias = bias + shift
        if smoothing:
            weight, bias = weight / smoothing.channel, (bias - smoothing.mean) / smoothing.channel
        name = f"{self.name}{use}"
        scale, offset = self.graph.add_constant(f"{name}.weight", weight), self.graph.add_constant(f"{name}.bias", bias)
        inputs = [self.total, scale, offset]
        return self.graph.add("LayerNormalization", inputs, name, axis=-1, epsilon=self.epsilon)


class Dense(NamedTuple):
    """A matrix with its bias, for an input that was smoothed."""

    name: str
    weight: Floats
    bias: Floats
    smoothing: Smoothing | None

    def multiply(self, graph: Graph, linear: Linear, value: str) -> list[str]:
        """Add the product with a value, without the bias; return its terms."""
        return linear.multiply(graph, self.name, value, self.weight)


def make_dense(linear: Linear, name: str, weight: Floats, bias: Floats) -> Dense:
    """Return a matrix in the format of `linear`."""
    smoothing = linear.smooth(name, weight)
    if smoothing is None:
        return Dense(name, weight, bias, None)
    return Dense(name, weight * smoothing.channel, (bias + weight @ smoothing.mean).astype(np.float32), smoothing)


def smooth_values(weights: list[Floats], biases: list[Floats], smoothing: Smoothing | None) -> None:
    """Smooth the output of attention for the matrix after it, by changing the projection of the values.

    The attention weights sum to one, so a transformation of the values is one of the output.
    """
    if smoothing:
        weights[-1] = weights[-1] / smoothing.channel[:, None]
        biases[-1] = (biases[-1] - smoothing.mean) / smoothing.channel


def smooth(graph: Graph, value: str, smoothing: Smoothing | None) -> str:
    """Add the smoothing of a matrix's input before it is rounded."""
    if smoothing is None:
        return value
    centred = graph.add("Sub", [value, graph.add_constant(f"{value}.mean", smoothing.mean)], f"{value}.centred")
    inverse = graph.add_constant(f"{value}.inverse", 1 / smoothing.channel)
    return graph.add("Mul", [centred, inverse], f"{value}.smooth")


def add_sum(graph: Graph, terms: Sequence[str], name: str) -> str:
    """Add the sum of some terms."""
    return graph.add("Sum", terms, f"{name}.total") if len(terms) > 1 else terms[0]


def pool(graph: Graph, value: str, pooling: str) -> str:
    """Reduce the tokens to one vector: their mean, or the first."""
    if pooling == "mean":
        axes = graph.add_constant("tokens_axis", np.array([1], np.int64))
        return graph.add("ReduceMean", [value, axes], "pooled", keepdims=0)
    if pooling == "cls":
        return graph.add("Gather", [value, graph.add_constant("first", np.array(0, np.int64))], "pooled", axis=1)
    raise ModelBroken(f"pooling {pooling!r} is not known; use mean or cls.")

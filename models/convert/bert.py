"""Build the ONNX graph of a BERT-like sentence encoder from its checkpoint.

The graph takes token ids alone: memoryd runs texts one at a time, so nothing is padded and no attention mask exists.
Pooling and normalisation are inside; the output `embedding` is the finished vector. Covers BERT, RoBERTa and
XLM-RoBERTa encoders with absolute positions.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memoryd.models.convert.graph import FLOAT, Graph
from memoryd.models.convert.quantise import MIDDLE, Floats, Linear, Smoothing, quantise_blocks
from memoryd.models.convert.weights import read_tensors
from memoryd.models.errors import ModelBroken

Tensors = dict[str, NDArray[Any]]

OUTPUT = "embedding"
FAMILIES = {"bert": 0, "roberta": 2, "xlm-roberta": 2, "camembert": 2}  # model type → first position that is used
ACTIVATIONS = {"gelu": "BiasGelu", "gelu_new": "FastGelu", "gelu_pytorch_tanh": "FastGelu"}
PREFIXES = ("", "bert.", "roberta.", "model.", "0.auto_model.")


class Shape(NamedTuple):
    """What the graph needs of a checkpoint's config.json."""

    layers: int
    heads: int
    epsilon: float
    activation: str
    first_position: int


class Checkpoint(NamedTuple):
    """A BERT-like encoder: its shape and its tensors by their usual names."""

    shape: Shape
    tensors: Tensors


def read_checkpoint(source: Path) -> Checkpoint:
    """Read config.json and model.safetensors; raise ModelBroken for what is no such encoder."""
    return Checkpoint(read_shape(source / "config.json"), _strip_prefix(read_tensors(source / "model.safetensors")))


def assemble(checkpoint: Checkpoint, pooling: str, linear: Linear, small_table: bool = True) -> Graph:
    """Return the graph; `linear` stores the matrices, `small_table` keeps the word embeddings as 8-bit rows.

    Raises ModelBroken when tensors are missing or have shapes that do not fit.
    """
    graph = Graph()
    try:
        plain = Normed(graph, checkpoint, "embeddings.LayerNorm", _add_embeddings(graph, checkpoint, small_table))
        for layer in range(checkpoint.shape.layers):
            plain = _add_layer(graph, checkpoint, f"encoder.layer.{layer}", plain, linear)
        _pool(graph, plain.add(""), pooling)
    except KeyError as error:
        raise ModelBroken(f"model.safetensors has no tensor {error}: not a BERT encoder.") from error
    except ValueError as error:
        raise ModelBroken(f"model.safetensors has a tensor of the wrong shape ({error}).") from error
    return graph


def read_shape(path: Path) -> Shape:
    """Read a BERT-like config.json; raise ModelBroken for what the graph cannot express."""
    try:
        config = json.loads(path.read_text())
        family, activation = config["model_type"], config["hidden_act"]
        if family not in FAMILIES or activation not in ACTIVATIONS:
            raise ModelBroken(f"config.json names a {family} with {activation}; only BERT with GELU can be converted.")
        if config.get("position_embedding_type", "absolute") != "absolute":
            raise ModelBroken("config.json asks for relative positions; only absolute ones can be converted.")
        layers, heads = int(config["num_hidden_layers"]), int(config["num_attention_heads"])
        epsilon = float(config["layer_norm_eps"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelBroken(f"config.json cannot be read as a BERT configuration ({error}).") from error
    return Shape(layers, heads, epsilon, ACTIVATIONS[activation], FAMILIES[family])


def _strip_prefix(tensors: Tensors) -> Tensors:
    for prefix in PREFIXES:
        if f"{prefix}embeddings.word_embeddings.weight" in tensors:
            return {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}
    raise ModelBroken("model.safetensors has no word embeddings: not a BERT encoder.")


def _add_embeddings(graph: Graph, model: Checkpoint, small_table: bool) -> str:
    table = model.tensors["embeddings.word_embeddings.weight"]
    if small_table:
        words = _add_small_words(graph, table)
    else:
        rows = graph.add_constant("words", table.astype(np.float32))
        words = graph.add("Gather", [rows, "input_ids"], "embeddings.words")
    return graph.add("Add", [words, _add_positions(graph, model)], "embeddings.total")


def _add_small_words(graph: Graph, table: NDArray[Any]) -> str:
    """Look words up in a table of signed bytes with one scale a row: a quarter of the memory, cosine 0.9999."""
    codes, scales = quantise_blocks(table, table.shape[1])
    rows = graph.add_constant("words", (codes[:, 0, :].astype(np.int16) - MIDDLE).astype(np.int8))
    found = graph.add("Gather", [rows, "input_ids"], "embeddings.codes")
    scale = graph.add("Gather", [graph.add_constant("words.scales", scales), "input_ids"], "embeddings.scales")
    return graph.add("Mul", [graph.add("Cast", [found], "embeddings.float", to=FLOAT), scale], "embeddings.words")


def _add_positions(graph: Graph, model: Checkpoint) -> str:
    """Take the first rows of the position table, with the embedding of segment 0 (all there is) added in."""
    table = _read_floats(model, "embeddings.position_embeddings.weight")[model.shape.first_position :]
    if "embeddings.token_type_embeddings.weight" in model.tensors:
        table = table + _read_floats(model, "embeddings.token_type_embeddings.weight")[0]
    length = graph.add("Shape", ["input_ids"], "length", start=1, end=2)
    rows, zero = graph.add_constant("positions", table), graph.add_constant("zero", np.array([0], np.int64))
    return graph.add("Slice", [rows, zero, length, zero], "embeddings.positions")


class Normed(NamedTuple):
    """A layer normalisation, written once for each use: what the use adds or scales costs no node of its own."""

    graph: Graph
    model: Checkpoint
    name: str
    total: str
    """The value to be normalised."""

    def add(self, use: str, shift: Floats | None = None, smoothing: Smoothing | None = None) -> str:
        """Add the normalised value plus `shift`, smoothed for a matrix; return its name."""
        weight, bias = (_read_floats(self.model, f"{self.name}.{part}") for part in ("weight", "bias"))
        if shift is not None:
            bias = bias + shift
        if smoothing:
            weight, bias = weight / smoothing.channel, (bias - smoothing.mean) / smoothing.channel
        name = f"{self.name}{use}"
        scale, offset = self.graph.add_constant(f"{name}.weight", weight), self.graph.add_constant(f"{name}.bias", bias)
        inputs = [self.total, scale, offset]
        return self.graph.add("LayerNormalization", inputs, name, axis=-1, epsilon=self.model.shape.epsilon)


class Dense(NamedTuple):
    """A matrix with its bias, for an input that was smoothed."""

    name: str
    weight: Floats
    bias: Floats
    smoothing: Smoothing | None

    def multiply(self, graph: Graph, linear: Linear, value: str) -> list[str]:
        """Add the product with a value, without the bias; return its terms."""
        return linear.multiply(graph, self.name, value, self.weight)


def _make_dense(linear: Linear, name: str, weight: Floats, bias: Floats) -> Dense:
    smoothing = linear.smooth(name, weight)
    if smoothing is None:
        return Dense(name, weight, bias, None)
    return Dense(name, weight * smoothing.channel, (bias + weight @ smoothing.mean).astype(np.float32), smoothing)


def _read_dense(model: Checkpoint, linear: Linear, name: str) -> Dense:
    return _make_dense(linear, name, _read_floats(model, f"{name}.weight"), _read_floats(model, f"{name}.bias"))


def _add_layer(graph: Graph, model: Checkpoint, layer: str, before: Normed, linear: Linear) -> Normed:
    """Add a layer after the normalisation of the one before; return its own last normalisation."""
    back = _read_dense(model, linear, f"{layer}.attention.output.dense")
    total = _sum(
        graph, [before.add(".plain", back.bias), *_add_attention(graph, model, layer, before, linear, back)], layer
    )
    between = Normed(graph, model, f"{layer}.attention.output.LayerNorm", total)
    up, down = (_read_dense(model, linear, f"{layer}.{part}.dense") for part in ("intermediate", "output"))
    wide = _sum(graph, up.multiply(graph, linear, between.add(".smooth", None, up.smoothing)), up.name)
    bias = graph.add_constant(f"{up.name}.bias", up.bias)
    value = _smooth(graph, graph.add_contributed(model.shape.activation, [wide, bias], f"{layer}.gelu"), down.smoothing)
    terms = down.multiply(graph, linear, value)
    total = _sum(graph, [between.add(".plain", down.bias), *terms], down.name)
    return Normed(graph, model, f"{layer}.output.LayerNorm", total)


def _add_attention(
    graph: Graph, model: Checkpoint, layer: str, before: Normed, linear: Linear, back: Dense
) -> list[str]:
    """Add the attention and its matrix; return the terms.

    The weights of attention sum to one, so what smooths its outcome is applied to the projection of the values.
    """
    parts = [f"{layer}.attention.self.{part}" for part in ("query", "key", "value")]
    weights, biases = ([_read_floats(model, f"{part}.{kind}") for part in parts] for kind in ("weight", "bias"))
    if back.smoothing:
        mean, channel = back.smoothing
        weights[2], biases[2] = weights[2] / channel[:, None], (biases[2] - mean) / channel
    qkv = _make_dense(linear, f"{layer}.qkv", np.concatenate(weights), np.concatenate(biases))
    terms = qkv.multiply(graph, linear, before.add(".smooth", None, qkv.smoothing))
    projected = graph.split(_sum(graph, terms, qkv.name), parts)
    operands = [*projected, graph.add_constant(f"{qkv.name}.bias", qkv.bias)]
    mixed = graph.add_contributed("MultiHeadAttention", operands, f"{layer}.attention", num_heads=model.shape.heads)
    return back.multiply(graph, linear, mixed)


def _smooth(graph: Graph, value: str, smoothing: Smoothing | None) -> str:
    if smoothing is None:
        return value
    centred = graph.add("Sub", [value, graph.add_constant(f"{value}.mean", smoothing.mean)], f"{value}.centred")
    inverse = graph.add_constant(f"{value}.inverse", 1 / smoothing.channel)
    return graph.add("Mul", [centred, inverse], f"{value}.smooth")


def _sum(graph: Graph, terms: list[str], name: str) -> str:
    return graph.add("Sum", terms, f"{name}.total") if len(terms) > 1 else terms[0]


def _pool(graph: Graph, value: str, pooling: str) -> None:
    """Reduce the tokens to one vector of length 1: their mean, or the first."""
    if pooling == "mean":
        axes = graph.add_constant("tokens_axis", np.array([1], np.int64))
        pooled = graph.add("ReduceMean", [value, axes], "pooled", keepdims=0)
    elif pooling == "cls":
        pooled = graph.add("Gather", [value, graph.add_constant("first", np.array(0, np.int64))], "pooled", axis=1)
    else:
        raise ModelBroken(f"pooling {pooling!r} is not known; use mean or cls.")
    graph.add("LpNormalization", [pooled], OUTPUT, axis=-1, p=2)


def _read_floats(model: Checkpoint, name: str) -> NDArray[np.float32]:
    return model.tensors[name].astype(np.float32)

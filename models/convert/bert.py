"""Build the ONNX graph of a BERT-like sentence encoder from its checkpoint.

The graph takes token ids alone: memoryd runs texts one at a time, so nothing is padded and no attention mask exists.
Pooling and normalisation are inside; the output `embedding` is the finished vector. Covers BERT, RoBERTa and
XLM-RoBERTa encoders with absolute positions.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memoryd.models.convert.graph import FLOAT, Graph
from memoryd.models.convert.quantise import MIDDLE, Linear, quantise_blocks
from memoryd.models.convert.weights import read_tensors
from memoryd.models.errors import ModelBroken

Tensors = dict[str, NDArray[Any]]

OUTPUT = "embedding"
FAMILIES = {"bert": 0, "roberta": 2, "xlm-roberta": 2, "camembert": 2}  # model type → first position that is used
ACTIVATIONS = {"gelu": "Gelu", "gelu_new": "FastGelu", "gelu_pytorch_tanh": "FastGelu"}
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
        value = _add_embeddings(graph, checkpoint, small_table)
        for layer in range(checkpoint.shape.layers):
            value = _add_layer(graph, checkpoint, f"encoder.layer.{layer}", value, linear)
        _pool(graph, value, pooling)
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
    words = _add_small_words(graph, table) if small_table else _add_words(graph, table)
    total = graph.add("Add", [words, _add_positions(graph, model)], "embeddings.total")
    return _normalise(graph, model, "embeddings.LayerNorm", total)


def _add_words(graph: Graph, table: NDArray[Any]) -> str:
    words = graph.add_constant("words", table.astype(np.float32))
    return graph.add("Gather", [words, "input_ids"], "embeddings.words")


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


def _add_layer(graph: Graph, model: Checkpoint, layer: str, value: str, linear: Linear) -> str:
    parts = [f"{layer}.attention.self.{part}" for part in ("query", "key", "value")]
    weight = np.concatenate([_read_floats(model, f"{part}.weight") for part in parts])
    bias = np.concatenate([_read_floats(model, f"{part}.bias") for part in parts])
    projected = graph.split(linear(graph, f"{layer}.qkv", value, weight, bias), parts)
    mixed = graph.add_contributed("MultiHeadAttention", projected, f"{layer}.attention", num_heads=model.shape.heads)
    value = _add_residual(graph, model, f"{layer}.attention.output", (value, mixed), linear)
    up = f"{layer}.intermediate.dense"
    wide = linear(graph, up, value, _read_floats(model, f"{up}.weight"), _read_floats(model, f"{up}.bias"))
    wide = graph.add_contributed(model.shape.activation, [wide], f"{layer}.gelu")
    return _add_residual(graph, model, f"{layer}.output", (value, wide), linear)


def _add_residual(graph: Graph, model: Checkpoint, name: str, values: tuple[str, str], linear: Linear) -> str:
    """Add `LayerNorm(values[0] + dense(values[1]))`."""
    dense, norm = f"{name}.dense", f"{name}.LayerNorm"
    back = linear(graph, dense, values[1], _read_floats(model, f"{dense}.weight"), _read_floats(model, f"{dense}.bias"))
    return _normalise(graph, model, norm, graph.add("Add", [values[0], back], f"{name}.total"))


def _normalise(graph: Graph, model: Checkpoint, name: str, value: str) -> str:
    weights = [
        graph.add_constant(f"{name}.{part}", _read_floats(model, f"{name}.{part}")) for part in ("weight", "bias")
    ]
    return graph.add("LayerNormalization", [value, *weights], name, axis=-1, epsilon=model.shape.epsilon)


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

"""BERT, RoBERTa, XLM-RoBERTa and CamemBERT: absolute positions, normalisation after each residual addition."""

from typing import Any, NamedTuple, Self

import numpy as np

from memoryd.models.convert.blocks import (
    Dense,
    Normed,
    Tensors,
    add_sum,
    add_words,
    choose_activation,
    make_dense,
    read_floats,
    smooth,
    smooth_values,
)
from memoryd.models.convert.graph import Graph
from memoryd.models.convert.quantise import Linear
from memoryd.models.errors import ModelBroken

USUAL_EPSILON = 1e-12
USUAL_PADDING = 1
WORDS = "embeddings.word_embeddings.weight"
LAYERS = "encoder.layer."  # the prefix of the names of the layers' tensors


class Bert(NamedTuple):
    """The values of a checkpoint's config.json that the graph needs."""

    layers: int
    heads: int
    epsilon: float
    activation: str
    first_position: int
    """The first row of the position table that is used: RoBERTa and its like begin after that of padding."""

    @classmethod
    def read(cls, config: dict[str, Any]) -> Self:
        """Read a config.json; raise ModelBroken if the encoder is not supported."""
        if config.get("position_embedding_type", "absolute") != "absolute":
            raise ModelBroken("config.json asks for relative positions; only absolute ones can be converted.")
        padding = config.get("pad_token_id")
        return cls(
            layers=int(config["num_hidden_layers"]),
            heads=int(config["num_attention_heads"]),
            epsilon=float(config.get("layer_norm_eps", USUAL_EPSILON)),
            activation=choose_activation(config["hidden_act"]),
            first_position=0
            if config["model_type"] == "bert"
            else 1 + (USUAL_PADDING if padding is None else int(padding)),
        )

    def count_positions(self, tensors: Tensors) -> int:
        """Return the token limit of a text."""
        return len(tensors["embeddings.position_embeddings.weight"]) - self.first_position

    def add_tokens(self, graph: Graph, tensors: Tensors, linear: Linear, small_table: bool) -> str:
        """Add the encoder; return the name of its last state, shape (texts, tokens, channels)."""
        words = add_words(graph, tensors[WORDS], small_table)
        total = graph.add("Add", [words, self._add_positions(graph, tensors)], "embeddings.total")
        plain = self._read_normed(graph, tensors, "embeddings.LayerNorm", total)
        for layer in range(self.layers):
            plain = self._add_layer(graph, tensors, f"{LAYERS}{layer}", plain, linear)
        return plain.add("")

    def _add_positions(self, graph: Graph, tensors: Tensors) -> str:
        """Return the first rows of the position table, plus the embedding of segment 0 (the only one in use)."""
        table = read_floats(tensors, "embeddings.position_embeddings.weight")[self.first_position :]
        if "embeddings.token_type_embeddings.weight" in tensors:
            table = table + read_floats(tensors, "embeddings.token_type_embeddings.weight")[0]
        length = graph.add("Shape", ["input_ids"], "length", start=1, end=2)
        rows, zero = graph.add_constant("positions", table), graph.add_constant("zero", np.array([0], np.int64))
        return graph.add("Slice", [rows, zero, length, zero], "embeddings.positions")

    def _read_normed(self, graph: Graph, tensors: Tensors, name: str, total: str) -> Normed:
        weight, bias = (read_floats(tensors, f"{name}.{part}") for part in ("weight", "bias"))
        return Normed(graph, name, total, weight, bias, self.epsilon)

    def _add_layer(self, graph: Graph, tensors: Tensors, layer: str, before: Normed, linear: Linear) -> Normed:
        """Add a layer after the last normalisation of the one before; return its own last normalisation."""
        back = _read_dense(tensors, linear, f"{layer}.attention.output.dense")
        mixed = self._add_attention(graph, tensors, layer, before, linear, back)
        total = add_sum(graph, [before.add(".plain", back.bias), *mixed], layer)
        between = self._read_normed(graph, tensors, f"{layer}.attention.output.LayerNorm", total)
        up, down = (_read_dense(tensors, linear, f"{layer}.{part}.dense") for part in ("intermediate", "output"))
        wide = add_sum(graph, up.multiply(graph, linear, between.add(".smooth", None, up.smoothing)), up.name)
        bias = graph.add_constant(f"{up.name}.bias", up.bias)
        active = graph.add_contributed(self.activation, [wide, bias], f"{layer}.gelu")
        terms = down.multiply(graph, linear, smooth(graph, active, down.smoothing))
        total = add_sum(graph, [between.add(".plain", down.bias), *terms], down.name)
        return self._read_normed(graph, tensors, f"{layer}.output.LayerNorm", total)

    def _add_attention(
        self, graph: Graph, tensors: Tensors, layer: str, before: Normed, linear: Linear, back: Dense
    ) -> list[str]:
        """Add the attention and its matrix; return the terms."""
        parts = [f"{layer}.attention.self.{part}" for part in ("query", "key", "value")]
        weights, biases = ([read_floats(tensors, f"{part}.{kind}") for part in parts] for kind in ("weight", "bias"))
        smooth_values(weights, biases, back.smoothing)
        qkv = make_dense(linear, f"{layer}.qkv", np.concatenate(weights), np.concatenate(biases))
        terms = qkv.multiply(graph, linear, before.add(".smooth", None, qkv.smoothing))
        projected = graph.split(add_sum(graph, terms, qkv.name), parts)
        operands = [*projected, graph.add_constant(f"{qkv.name}.bias", qkv.bias)]
        mixed = graph.add_contributed("MultiHeadAttention", operands, f"{layer}.attention", num_heads=self.heads)
        return back.multiply(graph, linear, mixed)


def _read_dense(tensors: Tensors, linear: Linear, name: str) -> Dense:
    return make_dense(linear, name, read_floats(tensors, f"{name}.weight"), read_floats(tensors, f"{name}.bias"))

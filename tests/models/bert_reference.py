"""BERT in plain numpy, one text at a time: what the converted graphs are compared with."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
_erf = np.vectorize(math.erf)


def embed(tensors: Mapping[str, Array], ids: Sequence[int], heads: int, layers: int, pooling: str) -> Array:
    """Return the unit vector of one text."""
    words, places = tensors["embeddings.word_embeddings.weight"], tensors["embeddings.position_embeddings.weight"]
    value = words[list(ids)] + places[: len(ids)] + tensors["embeddings.token_type_embeddings.weight"][0]
    value = _norm(tensors, "embeddings", value.astype(np.float64))
    for layer in range(layers):
        name = f"encoder.layer.{layer}"
        value = _norm(tensors, f"{name}.attention.output", value + _attention(tensors, name, value, heads))
        wide = _dense(tensors, f"{name}.intermediate.dense", value)
        wide = wide * 0.5 * (1 + _erf(wide / math.sqrt(2)))
        value = _norm(tensors, f"{name}.output", value + _dense(tensors, f"{name}.output.dense", wide))
    pooled = value.mean(axis=0) if pooling == "mean" else value[0]
    return pooled / np.linalg.norm(pooled)


def _attention(tensors: Mapping[str, Array], name: str, value: Array, heads: int) -> Array:
    parts = (_dense(tensors, f"{name}.attention.self.{part}", value) for part in ("query", "key", "value"))
    query, key, content = (np.stack(np.split(part, heads, axis=1)) for part in parts)
    scores = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[2])
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    mixed = weights / weights.sum(axis=2, keepdims=True) @ content
    return _dense(tensors, f"{name}.attention.output.dense", np.concatenate(list(mixed), axis=1))


def _dense(tensors: Mapping[str, Array], name: str, value: Array) -> Array:
    return value @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]


def _norm(tensors: Mapping[str, Array], name: str, value: Array) -> Array:
    centred = value - value.mean(axis=1, keepdims=True)
    even = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-12)
    return even * tensors[f"{name}.LayerNorm.weight"] + tensors[f"{name}.LayerNorm.bias"]

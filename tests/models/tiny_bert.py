"""A BERT small enough to convert in milliseconds, with the quirks of real ones."""

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tensors import write_tensors
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from memoryd.models.convert.convert import convert
from memoryd.models.session import open_session

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "quick", "brown", "fox", "a", "we", "use", "cache", "no", "yes"]
HIDDEN, LAYERS, HEADS, WIDE, POSITIONS = 32, 2, 4, 768, 64

Tensors = dict[str, NDArray[Any]]


def tiny_tensors(seed: int = 0) -> Tensors:
    """Random weights of a two-layer BERT, with one outlier channel as real ones have."""
    chance = np.random.default_rng(seed)

    def weights(*shape: int) -> NDArray[np.float32]:
        return (chance.standard_normal(shape) * 0.3).astype(np.float32)

    tensors = {
        "embeddings.word_embeddings.weight": weights(len(WORDS), HIDDEN),
        "embeddings.position_embeddings.weight": weights(POSITIONS, HIDDEN),
        "embeddings.token_type_embeddings.weight": weights(2, HIDDEN),
    }
    norms = ["embeddings"]
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}"
        norms += [f"{name}.attention.output", f"{name}.output"]
        sizes = {f"attention.self.{part}": (HIDDEN, HIDDEN) for part in ("query", "key", "value")}
        sizes |= {"attention.output.dense": (HIDDEN, HIDDEN)}
        sizes |= {"intermediate.dense": (WIDE, HIDDEN), "output.dense": (HIDDEN, WIDE)}
        for part, shape in sizes.items():
            tensors[f"{name}.{part}.weight"] = weights(*shape)
            tensors[f"{name}.{part}.bias"] = weights(shape[0])
    for norm in norms:
        scale = 1 + weights(HIDDEN)
        scale[3] = 8
        tensors |= {f"{norm}.LayerNorm.weight": scale, f"{norm}.LayerNorm.bias": weights(HIDDEN)}
    return tensors


def tiny_tokenizer() -> Tokenizer:
    """Whole words, lower-cased, framed by [CLS] and [SEP]; truncation and padding on, as published files have them."""
    tokenizer = Tokenizer(models.WordLevel({word: place for place, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    frame = [("[CLS]", WORDS.index("[CLS]")), ("[SEP]", WORDS.index("[SEP]"))]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=frame)
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=16)
    return tokenizer


def tiny_config(**changes: object) -> dict[str, object]:
    return {
        "model_type": "bert",
        "hidden_act": "gelu",
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "layer_norm_eps": 1e-12,
    } | changes


def write_checkpoint(folder: Path, **changes: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    write_tensors(folder / "model.safetensors", tiny_tensors())
    (folder / "config.json").write_text(json.dumps(tiny_config(**changes)))
    tiny_tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def embed(ids: Sequence[int], pooling: str = "mean") -> NDArray[np.float32]:
    """Return the vector of a text by the exact graph, which `test_reference.py` compares with transformers."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "exact.onnx"
        convert(write_checkpoint(Path(folder)), path, pooling, "fp32")
        vector: NDArray[np.float32] = open_session(path, threads=1).run(None, {"input_ids": np.array([ids])})[0][0]
    return vector

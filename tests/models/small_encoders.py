"""Small encoders of each family that is converted, with random weights: what converter and reference both read.

The numbers come from `RandomState`, whose stream is the same in every version of numpy.
"""

import json
import string
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tensors import write_tensors
from tokenizers import Tokenizer, models, pre_tokenizers

VOCABULARY, HIDDEN, WIDE, HEADS, POSITIONS = 60, 32, 48, 4, 260
PADDING = 1  # as RoBERTa has it; no text has it

Tensors = dict[str, NDArray[Any]]


class SmallEncoder(NamedTuple):
    """A config.json, how its tokens are pooled, and the matrices after that: outputs, bias, the function after it."""

    config: dict[str, Any]
    pooling: str = "mean"
    projections: tuple[tuple[int, bool, str], ...] = ()
    lengths: tuple[int, ...] = (3, 40)
    """Of the texts, in tokens."""


def _make_bert(**changes: object) -> dict[str, Any]:
    return {
        "model_type": "bert",
        "vocab_size": VOCABULARY,
        "hidden_size": HIDDEN,
        "intermediate_size": WIDE,
        "num_hidden_layers": 3,
        "num_attention_heads": HEADS,
        "max_position_embeddings": POSITIONS,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "type_vocab_size": 2,
        "pad_token_id": PADDING,
    } | changes


SMALL_ENCODERS = {
    "bert, mean": SmallEncoder(_make_bert()),
    "bert, first token": SmallEncoder(_make_bert(hidden_act="gelu_new"), "cls"),
    "bert, projected": SmallEncoder(_make_bert(), "mean", ((48, False, "Identity"),)),
    "bert, projected twice": SmallEncoder(_make_bert(), "cls", ((24, True, "Tanh"), (20, True, "Identity"))),
    "roberta": SmallEncoder(_make_bert(model_type="roberta", type_vocab_size=1, layer_norm_eps=1e-5)),
    "xlm-roberta": SmallEncoder(_make_bert(model_type="xlm-roberta", type_vocab_size=1, layer_norm_eps=1e-5), "cls"),
    "camembert": SmallEncoder(_make_bert(model_type="camembert", type_vocab_size=1, layer_norm_eps=1e-5)),
}


def make_ids(encoder: SmallEncoder) -> list[list[int]]:
    """Return the token ids of the texts."""
    chance = np.random.RandomState(7)
    return [chance.randint(PADDING + 1, VOCABULARY, length).tolist() for length in encoder.lengths]


def make_tensors(config: dict[str, Any]) -> Tensors:
    """Return the weights of an encoder by their usual names."""
    chance = np.random.RandomState(11)
    shapes = _list_bert(config)
    tensors = {}
    for name, shape in shapes.items():
        values = chance.standard_normal(shape) * 0.3
        norm = "norm" in name.lower() and name.endswith(".weight")
        tensors[name] = (values + 1 if norm else values).astype(np.float32)
    return tensors


def make_projections(encoder: SmallEncoder) -> list[tuple[NDArray[np.float32], NDArray[np.float32] | None, str]]:
    """Return weight, bias and function of each matrix after pooling."""
    chance, inputs, made = np.random.RandomState(13), HIDDEN, []
    for outputs, biased, end in encoder.projections:
        weight = (chance.standard_normal((outputs, inputs)) * 0.3).astype(np.float32)
        bias = chance.standard_normal(outputs).astype(np.float32) if biased else None
        made.append((weight, bias, end))
        inputs = outputs
    return made


def write_encoder(folder: Path, encoder: SmallEncoder) -> Path:
    """Write a checkpoint as sentence-transformers lays it out, without a tokenizer."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(encoder.config))
    write_tensors(folder / "model.safetensors", make_tensors(encoder.config))
    modules = [("Transformer", ""), ("Pooling", "1_Pooling")]
    for number, (weight, bias, end) in enumerate(make_projections(encoder), 2):
        path = folder / f"{number}_Dense"
        path.mkdir()
        function = {"Identity": "torch.nn.modules.linear.Identity", "Tanh": "torch.nn.modules.activation.Tanh"}[end]
        (path / "config.json").write_text(json.dumps({"activation_function": function, "bias": bias is not None}))
        written = {"linear.weight": weight} if bias is None else {"linear.weight": weight, "linear.bias": bias}
        write_tensors(path / "model.safetensors", written)
        modules.append(("Dense", path.name))
    modules.append(("Normalize", f"{len(modules)}_Normalize"))
    entries = [{"type": f"sentence_transformers.models.{kind}", "path": path} for kind, path in modules]
    (folder / "modules.json").write_text(json.dumps(entries))
    return folder


def write_tokenizer(path: Path, size: int) -> None:
    """Write a tokenizer of `size` words: single letters, which all texts have, and others that none has."""
    words = ["[UNK]", *string.ascii_letters][:size]
    words += [f"word{number}" for number in range(size - len(words))]
    tokenizer = Tokenizer(models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.save(str(path))


def _list_bert(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    hidden, wide = config["hidden_size"], config["intermediate_size"]
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (config["vocab_size"], hidden),
        "embeddings.position_embeddings.weight": (config["max_position_embeddings"], hidden),
        "embeddings.token_type_embeddings.weight": (config["type_vocab_size"], hidden),
    }

    def add(name: str, *shape: int) -> None:
        shapes[f"{name}.weight"], shapes[f"{name}.bias"] = shape, shape[:1]

    add("embeddings.LayerNorm", hidden)
    for number in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{number}"
        for part in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            add(f"{layer}.{part}", hidden, hidden)
        add(f"{layer}.attention.output.LayerNorm", hidden)
        add(f"{layer}.intermediate.dense", wide, hidden)
        add(f"{layer}.output.dense", hidden, wide)
        add(f"{layer}.output.LayerNorm", hidden)
    return shapes

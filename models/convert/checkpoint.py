"""Read a published checkpoint and build the ONNX graph of its sentence encoder.

The only input is token ids: memoryd runs texts one at a time, so there is no padding and no attention mask. The graph
includes pooling, the matrices after it and normalisation; the output `embedding` is the final vector. Only encoders of
the BERT family are supported; a published ONNX file is used unchanged (`memoryd.models.install.foreign`).
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from memoryd.models.convert.bert import LAYERS, WORDS, Bert
from memoryd.models.convert.blocks import Tensors, pool
from memoryd.models.convert.graph import Graph
from memoryd.models.convert.quantise import Floats, Linear
from memoryd.models.convert.weights import read_tensors
from memoryd.models.errors import ModelBroken

OUTPUT = "embedding"

FAMILIES = ("bert", "roberta", "xlm-roberta", "camembert")
PREFIXES = ("", "bert.", "roberta.", "model.", "0.auto_model.")

# Supported modules of sentence-transformers, by the last word of their type.
MODULES = {"Transformer", "Pooling", "Dense", "Normalize"}
# Supported activations of a matrix after pooling, by the last word of their type.
ENDS = {"Identity": None, "Tanh": "Tanh"}
USUAL_END = "Tanh"  # the default of sentence-transformers


class Projection(NamedTuple):
    """A matrix after pooling."""

    weight: Floats
    bias: Floats | None
    end: str | None
    """The operator after it."""


class Checkpoint(NamedTuple):
    """A sentence encoder: its shape, its tensors by their standard names, and the matrices after pooling."""

    encoder: Bert
    tensors: Tensors
    projections: list[Projection]


def read_checkpoint(source: Path) -> Checkpoint:
    """Read config.json, model.safetensors and the modules of sentence-transformers.

    Raises ModelBroken, with one sentence, if the checkpoint cannot be converted.
    """
    encoder = read_encoder(source / "config.json")
    tensors = _strip_prefix(encoder, read_tensors(source / "model.safetensors"))
    return Checkpoint(encoder, tensors, [_read_projection(folder) for folder in list_projections(source)])


def is_known(source: Path) -> bool:
    """Return whether a folder's config.json names an encoder that can be converted."""
    try:
        config = json.loads((source / "config.json").read_text())
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and config.get("model_type") in FAMILIES


def read_encoder(path: Path) -> Bert:
    """Read a config.json; raise ModelBroken if the encoder is not supported."""
    try:
        config = json.loads(path.read_text())
        family = config["model_type"]
        if family not in FAMILIES:
            raise ModelBroken(f"config.json names the model type {family!r}; those known are {', '.join(FAMILIES)}.")
        return Bert.read(config)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
        raise ModelBroken(f"config.json cannot be read as the configuration of an encoder ({error!r}).") from error


def list_projections(source: Path) -> list[Path]:
    """Return the folders of the matrices after pooling from modules.json; raise ModelBroken for unknown modules."""
    path = source / "modules.json"
    if not path.is_file():
        return []
    try:
        modules = [(str(module["type"]).rsplit(".", 1)[-1], str(module["path"])) for module in _read_json(path)]
    except (KeyError, TypeError) as error:
        raise ModelBroken(f"modules.json cannot be read as a list of modules ({error!r}).") from error
    kinds = [kind for kind, _ in modules]
    if unknown := [kind for kind in kinds if kind not in MODULES]:
        raise ModelBroken(f"modules.json names a {unknown[0]} layer, which cannot be converted.")
    if "Normalize" in kinds[:-1] or (kinds and kinds[:2] != ["Transformer", "Pooling"]):
        raise ModelBroken(f"modules.json has layers in an order that cannot be converted: {', '.join(kinds)}.")
    return [source / folder for kind, folder in modules if kind == "Dense"]


def assemble(checkpoint: Checkpoint, pooling: str, linear: Linear, small_table: bool = True) -> Graph:
    """Return the graph; `linear` stores the matrices, `small_table` keeps the word embeddings as 8-bit rows.

    Raises ModelBroken if tensors are missing or have wrong shapes.
    """
    graph = Graph()
    try:
        tokens = checkpoint.encoder.add_tokens(graph, checkpoint.tensors, linear, small_table)
    except KeyError as error:
        raise ModelBroken(f"model.safetensors has no tensor {error}, which config.json asks for.") from error
    except (ValueError, IndexError) as error:
        raise ModelBroken(f"model.safetensors has a tensor of the wrong shape ({error}).") from error
    pooled = pool(graph, tokens, pooling)
    for number, projection in enumerate(checkpoint.projections):
        pooled = _project(graph, pooled, projection, f"projection.{number}")
    graph.add("LpNormalization", [pooled], OUTPUT, axis=-1, p=2)
    return graph


def _project(graph: Graph, value: str, projection: Projection, name: str) -> str:
    value = graph.add("MatMul", [value, graph.add_constant(f"{name}.weight", projection.weight.T)], f"{name}.product")
    if projection.bias is not None:
        value = graph.add("Add", [value, graph.add_constant(f"{name}.bias", projection.bias)], f"{name}.biased")
    return graph.add(projection.end, [value], f"{name}.end") if projection.end else value


def _read_projection(folder: Path) -> Projection:
    config = _read_json(folder / "config.json")
    end = str(config.get("activation_function", USUAL_END)).rsplit(".", 1)[-1] if isinstance(config, dict) else "?"
    if end not in ENDS:
        raise ModelBroken(f"{folder.name} ends with {end}; those that can be converted are {', '.join(ENDS)}.")
    tensors = read_tensors(folder / "model.safetensors")
    if "linear.weight" not in tensors:
        raise ModelBroken(f"{folder.name}/model.safetensors has no tensor 'linear.weight'.")
    weight, bias = tensors["linear.weight"].astype(np.float32), tensors.get("linear.bias")
    return Projection(weight, None if bias is None else bias.astype(np.float32), ENDS[end])


def _strip_prefix(encoder: Bert, tensors: Tensors) -> Tensors:
    """Return the tensors by their standard names; raise ModelBroken if there are more layers than expected."""
    prefix = next((prefix for prefix in PREFIXES if f"{prefix}{WORDS}" in tensors), None)
    if prefix is None:
        raise ModelBroken(f"model.safetensors has no tensor {WORDS!r}: not the encoder of its config.json.")
    plain = {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}
    within = [name.removeprefix(LAYERS).partition(".")[0] for name in plain if name.startswith(LAYERS)]
    numbers = [int(number) for number in within if number.isdecimal()]
    if max(numbers, default=-1) >= encoder.layers:
        raise ModelBroken(f"model.safetensors has {max(numbers) + 1} layers, config.json names {encoder.layers}.")
    return plain


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ModelBroken(f"{path.name} in {path.parent.name} cannot be read ({error}).") from error

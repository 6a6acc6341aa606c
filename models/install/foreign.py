"""Install a model from a folder laid out as sentence-transformers does.

Read: tokenizer.json and model.onnx (also in `onnx/`) or model.safetensors with config.json; where present
`1_Pooling/config.json`, `sentence_bert_config.json`, `config_sentence_transformers.json` (prefixes) and `modules.json`.
"""

import json
from pathlib import Path
from typing import Any

from memoryd.models.catalog import Pooling
from memoryd.models.errors import ModelBroken, ModelError
from memoryd.models.folder import Recipe, model_folder
from memoryd.models.install.build import build, find_onnx
from memoryd.models.install.place import ReportStage, ignore_progress, lock_folder, make_folder

USUAL_MAX_TOKENS = 256
MODULES = {"Transformer", "Pooling", "Normalize"}


def import_directory(
    source: Path, models_dir: Path, name: str | None = None, progress: ReportStage = ignore_progress
) -> Path:
    """Install the model in `source` under `name` (default: the folder's name) and return its new folder.

    An ONNX file is taken as it is, a BERT-like checkpoint is converted. Raises ModelBroken when the folder does not
    hold a working model; a model already installed under the name is replaced only by one that works.
    """
    if not source.is_dir():
        raise ModelError(f"{source} is not a folder.")
    chosen = name or source.resolve().name
    target = model_folder(chosen, models_dir)
    recipe = _read_recipe(source, chosen)
    with lock_folder(models_dir, progress), make_folder(chosen, models_dir) as folder:
        build(source, folder, recipe, progress)
    progress("ready", 1, 1)
    return target


def _read_recipe(source: Path, name: str) -> Recipe:
    if not (source / "tokenizer.json").is_file():
        raise ModelBroken(f"{source} has no tokenizer.json.")
    if find_onnx(source) is None and not (source / "model.safetensors").is_file():
        raise ModelBroken(f"{source} has neither model.onnx nor model.safetensors.")
    _check_modules(source)
    prompts = _read_json(source / "config_sentence_transformers.json").get("prompts") or {}
    return Recipe(
        name=name,
        kind="onnx",
        pooling=_read_pooling(source),
        max_tokens=int(_read_json(source / "sentence_bert_config.json").get("max_seq_length") or USUAL_MAX_TOKENS),
        source=f"folder:{source.resolve()}",
        query_prefix=str(prompts.get("query") or ""),
        document_prefix=str(prompts.get("document") or prompts.get("passage") or ""),
    )


def _read_pooling(source: Path) -> Pooling:
    config = _read_json(source / "1_Pooling" / "config.json")
    modes = {key.removeprefix("pooling_mode_") for key, on in config.items() if key.startswith("pooling_mode") and on}
    if config.get("pooling_mode"):
        modes = {str(config["pooling_mode"])}
    if modes <= {"mean_tokens", "mean"}:
        return "mean"
    if modes <= {"cls_token", "cls"}:
        return "cls"
    raise ModelBroken(f"{source} pools by {', '.join(sorted(modes))}; only mean and cls are known.")


def _check_modules(source: Path) -> None:
    """Refuse a model with layers after pooling, which would silently be left out."""
    path = source / "modules.json"
    modules = json.loads(path.read_text()) if path.is_file() else []
    kinds = {str(module.get("type", "")).rsplit(".", 1)[-1] for module in modules}
    if kinds - MODULES:
        raise ModelBroken(f"{source} has a {', '.join(sorted(kinds - MODULES))} layer, which cannot be run.")


def _read_json(path: Path) -> dict[str, Any]:
    """Return an optional JSON object, empty when the file is not there."""
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text())
    except ValueError as error:
        raise ModelBroken(f"{path} is not JSON ({error}).") from error
    return found if isinstance(found, dict) else {}

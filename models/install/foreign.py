"""Install a model from a folder in the layout of sentence-transformers.

Required are tokenizer.json, and model.safetensors with config.json or an ONNX file (also in `onnx/`). Optional are
`1_Pooling/config.json`, `config_sentence_transformers.json` (prefixes), `modules.json` with the layers after pooling,
and the files with the token limit, `sentence_bert_config.json` and `tokenizer_config.json`.
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
NO_LIMIT = 1_000_000  # tokenizers write larger numbers for no limit
# Families whose first two positions are not used for tokens.
SHIFTED = {"roberta", "xlm-roberta", "camembert", "mpnet"}


def import_directory(
    source: Path, models_dir: Path, name: str | None = None, progress: ReportStage = ignore_progress
) -> Path:
    """Install the model in `source` under `name` (default: the folder's name) and return its new folder.

    A checkpoint of a known family is converted, else an ONNX file is used unchanged. Raises ModelBroken if the folder
    does not contain a working model; an installed model with the same name is replaced only by a working one.
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
        raise ModelBroken(f"{source} has neither model.safetensors nor one ONNX file.")
    prompts = _read_json(source / "config_sentence_transformers.json").get("prompts") or {}
    return Recipe(
        name=name,
        kind="onnx",
        pooling=_read_pooling(source),
        max_tokens=_read_max_tokens(source),
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


def _read_max_tokens(source: Path) -> int:
    """Return the token limit of a model: the smallest in its files."""
    config = _read_json(source / "config.json")
    positions = config.get("max_position_embeddings")
    if isinstance(positions, int) and config.get("model_type") in SHIFTED:
        positions -= 2
    limits = [
        _read_json(source / "sentence_bert_config.json").get("max_seq_length"),
        _read_json(source / "tokenizer_config.json").get("model_max_length"),
        positions,
    ]
    named = [int(limit) for limit in limits if isinstance(limit, int | float) and 0 < limit < NO_LIMIT]
    return min(named, default=USUAL_MAX_TOKENS)


def _read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in an optional file, empty if the file does not exist."""
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text())
    except ValueError as error:
        raise ModelBroken(f"{path} is not JSON ({error}).") from error
    return found if isinstance(found, dict) else {}

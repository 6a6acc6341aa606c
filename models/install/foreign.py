"""Install a model from a folder laid out as sentence-transformers does.

Read: tokenizer.json and model.safetensors with config.json or an ONNX file (also in `onnx/`); where present
`1_Pooling/config.json`, `config_sentence_transformers.json` (prefixes), `modules.json` with the layers after pooling,
and what says how many tokens the model reads: `sentence_bert_config.json`, `tokenizer_config.json`.
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
NO_LIMIT = 1_000_000  # tokenizers write such numbers where they have none
# Families whose first two positions belong to no token.
SHIFTED = {"roberta", "xlm-roberta", "camembert", "mpnet"}


def import_directory(
    source: Path, models_dir: Path, name: str | None = None, progress: ReportStage = ignore_progress
) -> Path:
    """Install the model in `source` under `name` (default: the folder's name) and return its new folder.

    A checkpoint of a known family is converted, else an ONNX file is taken as it is. Raises ModelBroken when the folder
    does not hold a working model; a model already installed under the name is replaced only by one that works.
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
    """Return how many tokens a model reads: the least of what its files say."""
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
    """Return an optional JSON object, empty when the file is not there."""
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text())
    except ValueError as error:
        raise ModelBroken(f"{path} is not JSON ({error}).") from error
    return found if isinstance(found, dict) else {}

"""The catalog's rows, the models folder's place, and what importing the package loads."""

import subprocess
import sys
from pathlib import Path

import pytest

from memoryd.models import CATALOG, ModelSpec, default_models_dir
from memoryd.models.folder import NAME

ROWS = pytest.mark.parametrize("spec", CATALOG.values(), ids=CATALOG)


@ROWS
def test_every_row_is_complete(spec: ModelSpec) -> None:
    assert NAME.fullmatch(spec.name)
    assert all((spec.description, spec.licence, spec.dimensions, spec.max_tokens, spec.size_mb))
    assert spec.hub or spec.package
    assert spec.description.endswith(".")


@ROWS
def test_weights_and_tokenizers_are_pinned(spec: ModelSpec) -> None:
    """By their hashes, or by the commit of a repository from which alone they come."""
    weights = {name for name in spec.files if name.endswith((".safetensors", ".onnx"))}
    pinned = {name for name, sha256 in spec.files.items() if len(sha256) == 64}
    assert weights
    assert spec.hub is None or len(spec.hub.revision) == 40
    assert {"tokenizer.json", *weights} <= pinned or (spec.hub and not spec.package)
    assert spec.package is None or set(spec.package.files) == set(spec.package.hashes or spec.files)


def test_the_models_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.delenv("MEMORYD_MODEL_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert default_models_dir() == Path("/home/someone/.cache/memoryd/models")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert default_models_dir() == Path("/caches/memoryd/models")
    monkeypatch.setenv("MEMORYD_MODEL_DIR", "~/models")
    assert default_models_dir() == Path("/home/someone/models")


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys, memoryd.models; print([m for m in ('onnx', 'onnxruntime', 'huggingface_hub') if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"

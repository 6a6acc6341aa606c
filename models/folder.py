"""The models folder: its path, the installed models, and checks of their files.

Layout: `MODELS/NAME/` has `manifest.json`, `model.onnx` or `table.npy`, and `tokenizer.json`; `MODELS/.partial/` has
interrupted downloads, and `MODELS/.lock` serialises installations. A model folder is put into place by one rename, so a
folder without a manifest is not a model.
"""

import hashlib
import os
import re
from pathlib import Path

import msgspec
from msgspec import Struct

from memoryd.models.calibration import Calibration
from memoryd.models.catalog import CATALOG, ModelFacts
from memoryd.models.errors import ModelBroken, ModelError, ModelMissing

MANIFEST = "manifest.json"
ONNX_AS_IS = "onnx"  # the format of a published ONNX file that was not converted
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class FileRecord(Struct, frozen=True):
    """One file of an installed model."""

    sha256: str
    size_bytes: int


class Recipe(ModelFacts, frozen=True, kw_only=True):
    """Facts about a model that its published files do not contain, and the source of the files."""

    source: str


class Manifest(Recipe, frozen=True, kw_only=True):
    """Facts of an installed model, and the hashes of its files."""

    format: str
    """How the weights are stored, with a version: a change of either changes vectors."""
    weights_sha256: str
    """SHA-256 of the weights as published, before conversion."""
    dimensions: int
    files: dict[str, FileRecord]
    fingerprint: str = ""
    calibration: Calibration | None = None
    """The meaning of its cosines; None: it was installed before there was a bundled set."""


def fingerprint(manifest: Manifest) -> str:
    """Return a short text that changes whenever the model's vectors change."""
    parts = (
        manifest.weights_sha256,
        manifest.files["tokenizer.json"].sha256,
        manifest.kind,
        manifest.format,
        manifest.pooling,
        str(manifest.max_tokens),
        manifest.query_prefix,
        manifest.document_prefix,
    )
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    return f"{manifest.name}:{digest[:16]}"


def default_models_dir() -> Path:
    """Return $MEMORYD_MODEL_DIR, else the user's cache folder for models."""
    if chosen := os.environ.get("MEMORYD_MODEL_DIR"):
        return Path(chosen).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "memoryd" / "models"


def model_folder(name: str, models_dir: Path) -> Path:
    """Return the folder of a model of this name; raise ModelError for a name that is not a plain word."""
    if not NAME.fullmatch(name):
        raise ModelError(f"{name!r} is no model name: use letters, digits, dots and dashes.")
    return models_dir / name


def read_manifest(name: str, models_dir: Path) -> Manifest:
    """Return the manifest of an installed model; raise ModelMissing or ModelBroken."""
    path = model_folder(name, models_dir) / MANIFEST
    try:
        return msgspec.json.decode(path.read_bytes(), type=Manifest)
    except (FileNotFoundError, NotADirectoryError):
        if name in CATALOG:
            raise ModelMissing(f"Model {name} is not installed; run: memctl model pull {name}") from None
        raise ModelMissing(
            f"Model {name} is neither installed nor in the catalogue: `memctl model list` shows which there are."
        ) from None
    except (OSError, msgspec.MsgspecError) as error:
        raise describe_damage(name, f"its manifest cannot be read ({error})") from error


def write_manifest(manifest: Manifest, folder: Path) -> None:
    """Write the manifest of the model in a folder, atomically."""
    fresh = folder / f".{MANIFEST}.{os.getpid()}"
    try:
        fresh.write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2))
        fresh.replace(folder / MANIFEST)
    finally:
        fresh.unlink(missing_ok=True)


def installed(models_dir: Path) -> dict[str, Manifest]:
    """Return the readable manifests of installed models by name."""
    found: dict[str, Manifest] = {}
    for path in sorted(models_dir.glob(f"[!.]*/{MANIFEST}")):
        try:
            found[path.parent.name] = read_manifest(path.parent.name, models_dir)
        except ModelError:
            continue
    return found


def check_sizes(manifest: Manifest, folder: Path) -> None:
    """Raise ModelBroken when a file is missing or has another size; costs microseconds."""
    for name, record in manifest.files.items():
        path = folder / name
        if not path.is_file():
            raise describe_damage(manifest.name, f"{name} is missing")
        if path.stat().st_size != record.size_bytes:
            raise describe_damage(
                manifest.name, f"{name} has {path.stat().st_size} bytes instead of {record.size_bytes}"
            )


def verify(name: str, models_dir: Path) -> Manifest:
    """Read every file of an installed model and compare hashes; raise ModelMissing or ModelBroken."""
    manifest, folder = read_manifest(name, models_dir), model_folder(name, models_dir)
    check_sizes(manifest, folder)
    for file, record in manifest.files.items():
        if hash_file(folder / file) != record.sha256:
            raise describe_damage(name, f"{file} is not what was installed (its SHA-256 differs)")
    return manifest


def hash_file(path: Path) -> str:
    """Return the hash of a file in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def describe_damage(name: str, reason: str) -> ModelBroken:
    """Return the error for a damaged model, with the command that fixes it."""
    return ModelBroken(f"Model {name} is damaged: {reason}; run: memctl model pull {name} --force")

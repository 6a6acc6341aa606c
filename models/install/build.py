"""Build a model folder from published files: convert or copy them, test, calibrate, write the manifest."""

import hashlib
import shutil
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from memoryd.models.embedder import calibrate_model, open_folder
from memoryd.models.errors import ModelBroken
from memoryd.models.folder import ONNX_AS_IS, FileRecord, Manifest, Recipe, fingerprint, hash_file, write_manifest
from memoryd.models.install.place import ReportStage

TRIAL = "The quick brown fox jumps over the lazy dog."
STATIC_FORMAT = "float16"


def build(source: Path, target: Path, recipe: Recipe, progress: ReportStage) -> Manifest:
    """Build a working model in `target`; raise ModelBroken if that is impossible with these files.

    `source` has tokenizer.json, and either model.safetensors with config.json, an ONNX file or table.safetensors.
    """
    progress("convert", 0, 1)
    shutil.copyfile(source / "tokenizer.json", target / "tokenizer.json")
    weights, form = _write_weights(source, target, recipe)
    progress("check", 0, 1)
    manifest = Manifest(
        **msgspec.structs.asdict(recipe),
        format=form,
        weights_sha256=_hash_files(weights),
        dimensions=0,
        files={path.name: FileRecord(hash_file(path), path.stat().st_size) for path in sorted(target.iterdir())},
    )
    dimensions = _try_out(manifest, target)
    manifest = msgspec.structs.replace(manifest, dimensions=dimensions, fingerprint=fingerprint(manifest))
    progress("calibrate", 0, 1)
    calibration = calibrate_model(open_folder(manifest, target, threads=1))
    manifest = msgspec.structs.replace(manifest, calibration=calibration)
    write_manifest(manifest, target)
    return manifest


def _write_weights(source: Path, target: Path, recipe: Recipe) -> tuple[list[Path], str]:
    """Write the model file; return the published files that it was built from and the name of its format.

    A checkpoint that can be converted is preferred to an ONNX file: it gets the best format for this processor.
    """
    if recipe.kind == "static":
        weights = source / "table.safetensors"
        np.save(target / "table.npy", _read_table(weights))
        return [weights], STATIC_FORMAT
    from memoryd.models.convert.checkpoint import is_known, list_projections
    from memoryd.models.convert.convert import best_format, convert

    checkpoint, ready, projections = source / "model.safetensors", find_onnx(source), list_projections(source)
    if ready is not None and not (checkpoint.is_file() and is_known(source)):
        if projections:
            raise ModelBroken(
                "modules.json names a Dense layer, which is run only after a checkpoint that is converted."
            )
        shutil.copyfile(ready, target / "model.onnx")
        return [ready], ONNX_AS_IS
    form = convert(source, target / "model.onnx", recipe.pooling, best_format())
    return [checkpoint, *(folder / "model.safetensors" for folder in projections)], form


def find_onnx(source: Path) -> Path | None:
    """Return the ONNX file of a published folder: model.onnx, or another one if it is the only one."""
    usual = (source / "model.onnx", source / "onnx" / "model.onnx")
    others = [*source.glob("*.onnx"), *source.glob("onnx/*.onnx")]
    return next((path for path in usual if path.is_file()), others[0] if len(others) == 1 else None)


def _hash_files(paths: list[Path]) -> str:
    """Return the hash of a file, or of the hashes of several."""
    hashes = [hash_file(path) for path in paths]
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()


def _read_table(path: Path) -> NDArray[np.float16]:
    """Return the only two-dimensional tensor in a file of word vectors."""
    from memoryd.models.convert.weights import read_tensors

    tables = [tensor for tensor in read_tensors(path).values() if tensor.ndim == 2]
    if len(tables) != 1:
        raise ModelBroken(f"{path.name} holds {len(tables)} tables instead of one.")
    return tables[0].astype(np.float16)


def _try_out(manifest: Manifest, folder: Path) -> int:
    """Embed a sentence; return the number of dimensions; raise ModelBroken unless the result is a unit vector."""
    vector = open_folder(manifest, folder, threads=1).embed_query(TRIAL)
    if vector.ndim != 1 or not np.isfinite(vector).all() or abs(float(np.linalg.norm(vector)) - 1) > 1e-3:
        raise ModelBroken(f"Model {manifest.name} runs but does not give a vector of length 1 for a sentence.")
    return len(vector)

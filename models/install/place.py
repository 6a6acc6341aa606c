"""Atomic installation of a model folder, and the lock that serialises installations."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from memoryd.models.errors import ModelError, ModelMissing
from memoryd.models.folder import model_folder

ReportStage = Callable[[str, int, int], None]
"""Called with a stage (`wait`, `download`, `convert`, `check`, `calibrate`, `ready`), how much is done, its total."""

NEW, OLD = ".new-", ".old-"


def ignore_progress(stage: str, done: int, total: int) -> None:
    """Ignore a report of progress."""


@contextlib.contextmanager
def lock_folder(models_dir: Path, progress: ReportStage) -> Iterator[None]:
    """Hold the folder's lock, after waiting for other installations; delete leftovers of killed ones."""
    try:
        models_dir.mkdir(parents=True, exist_ok=True)
        lock = (models_dir / ".lock").open("w")
    except OSError as error:
        raise ModelError(f"The models folder cannot be written: {error}; set MEMORYD_MODEL_DIR to another.") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("wait", 0, 1)
            fcntl.flock(lock, fcntl.LOCK_EX)
        _sweep_locked(models_dir)
        yield


def sweep(models_dir: Path) -> None:
    """Delete the leftovers of killed installations, unless one is running."""
    if not any(path for prefix in (NEW, OLD) for path in models_dir.glob(f"{prefix}*")):
        return
    with contextlib.suppress(OSError), (models_dir / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _sweep_locked(models_dir)


@contextlib.contextmanager
def make_folder(name: str, models_dir: Path) -> Iterator[Path]:
    """Yield an empty folder, which becomes the model's folder if the block succeeds, and is deleted if it fails."""
    target = model_folder(name, models_dir)
    fresh = Path(tempfile.mkdtemp(prefix=f"{NEW}{name}-", dir=models_dir))
    try:
        yield fresh
        fresh.chmod(0o755)
        _sync(fresh)
        if target.exists():
            target.rename(Path(tempfile.mkdtemp(prefix=OLD, dir=models_dir)) / name)
        fresh.rename(target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        _sweep_locked(models_dir)


def remove(name: str, models_dir: Path) -> None:
    """Delete an installed model and its partial download; raise ModelMissing if there is neither."""
    folder, partial = model_folder(name, models_dir), partial_folder(name, models_dir)
    if not folder.exists() and not partial.exists():
        raise ModelMissing(f"Model {name} is not installed.")
    with lock_folder(models_dir, ignore_progress):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(partial, ignore_errors=True)


def partial_folder(name: str, models_dir: Path) -> Path:
    """Return the folder of a model's incomplete download."""
    return models_dir / ".partial" / name


def _sync(folder: Path) -> None:
    """Write the files to disk (fsync) before the rename makes them visible."""
    for path in [*folder.iterdir(), folder]:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _sweep_locked(models_dir: Path) -> None:
    for prefix in (NEW, OLD):
        for path in models_dir.glob(f"{prefix}*"):
            shutil.rmtree(path, ignore_errors=True)

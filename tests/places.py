"""Where tests keep what they delete at their end: in RAM if there is room, where a commit waits for no disk."""

import os
import shutil
import tempfile
from pathlib import Path

RAM = Path("/dev/shm")
_LEAST_FREE = 2 * 1024**3


def make_folder(prefix: str = "mt-") -> Path:
    """Make a private folder with a short path; the caller deletes it."""
    return Path(tempfile.mkdtemp(prefix=prefix, dir=RAM if _has_room() else None))


def _has_room() -> bool:
    return os.access(RAM, os.W_OK) and shutil.disk_usage(RAM).free >= _LEAST_FREE

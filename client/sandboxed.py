"""Data folders inside snaps and flatpaks, which earlier versions used in the terminals of sandboxed editors."""

import os
from pathlib import Path

from memoryd.client.transport import paths

_DATA_HOMES = ("snap/*/*/.local/share", ".var/app/*/data")  # XDG_DATA_HOME in a snap and in a flatpak


def list_folders() -> list[Path]:
    """Return memoryd's data folders in them, each once; none if MEMORYD_DATA_DIR names the folder in use."""
    if os.environ.get("MEMORYD_DATA_DIR"):
        return []
    home = Path(paths.home_folder())
    files = [file for pattern in _DATA_HOMES for file in sorted(home.glob(f"{pattern}/memoryd/memoryd.sqlite"))]
    return list(dict.fromkeys(file.resolve().parent for file in files))  # `current` is a link to the latest revision

"""Memories in the data folders of snaps and flatpaks, which earlier versions used in the terminals of such editors."""

import os
from pathlib import Path

from memoryd.client.transport import paths

_FOLDERS = ("snap/*/*/.local/share", ".var/app/*/data")  # what XDG_DATA_HOME is there


def list_folders() -> list[Path]:
    """Return the data folders of memoryd there, each once; none where MEMORYD_DATA_DIR says which memory is used."""
    if os.environ.get("MEMORYD_DATA_DIR"):
        return []
    home = Path(paths.home_folder())
    files = [file for pattern in _FOLDERS for file in sorted(home.glob(f"{pattern}/memoryd/memoryd.sqlite"))]
    return list(dict.fromkeys(file.resolve().parent for file in files))  # `current` is a link to the latest revision

"""The folders of projects in whose files entries of ours may be: noted when hooks are installed there, and known ones.

The note is a file beside the database with a folder on each line. A folder stays in it when its hooks are gone: what is
in its files says that.
"""

import os
from contextlib import suppress
from pathlib import Path

from memoryd.client import projects
from memoryd.client.errors import MemorydError
from memoryd.client.project import project_root
from memoryd.client.transport import paths, trust

FILE = "hooks.folders"


def note_folder(folder: Path) -> None:
    """Write down that entries of ours are in the files of a folder."""
    if folder in _read_noted():
        return
    where = paths.data_folder()
    os.makedirs(where, mode=0o700, exist_ok=True)
    trust.check_data_folder(where)
    with open(os.path.join(where, FILE), "a", encoding="utf-8", errors="surrogateescape") as file:
        file.write(f"{folder}\n")


def list_folders() -> list[Path]:
    """Return the folders that were noted, those of known projects and the current one, as far as they are there."""
    found = _read_noted()
    with suppress(OSError, MemorydError):  # a table of projects that cannot be read names none
        found += [Path(folder) for project in projects.read_table()["projects"] for folder in project["folders"]]
    with suppress(OSError):  # the current folder no longer exists
        found += [Path.cwd(), Path(project_root(Path.cwd()))]
    there = {folder.resolve(): folder for folder in found if folder.is_dir()}
    there.pop(Path.home().resolve(), None)
    return list(there.values())


def _read_noted() -> list[Path]:
    try:
        text = Path(paths.data_folder(), FILE).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return []
    return [Path(line) for line in text.split("\n") if line]

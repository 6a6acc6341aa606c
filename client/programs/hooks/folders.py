"""Files in the data folder that record the changes of installing hooks, so that uninstalling can revert them.

`hooks.folders` lists the folders of projects with our entries, `hooks.made` the folders that were created for files of
agents and the data folder, which are removed again once they are empty. One folder per line.
"""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from memoryd.client.errors import MemorydError
from memoryd.client.projects import known as projects
from memoryd.client.projects.project import project_root
from memoryd.client.transport import paths, trust

FILE, _MADE = "hooks.folders", "hooks.made"


def note_installation(project: Path | None, files: Iterable[Path]) -> None:
    """Record the project whose files get our entries, and the folders that have to be created.

    This creates the data folder, without which hooks do nothing.
    """
    where = paths.data_folder()
    made = [folder for file in (Path(where), *files) for folder in file.resolve().parents if not folder.exists()]
    os.makedirs(where, mode=0o700, exist_ok=True)
    trust.check_data_folder(where)
    _add(FILE, [project] if project else [])
    _add(_MADE, made)
    Path(paths.removed_mark()).unlink(missing_ok=True)


def note_removal() -> None:
    """Record that memoryd is uninstalled, so that hooks that still run do nothing even if the data is kept."""
    with suppress(OSError):  # without a data folder hooks do nothing anyway
        Path(paths.removed_mark()).touch(mode=0o600)


def _add(name: str, folders: Iterable[Path]) -> None:
    there = _read(name)
    if new := [folder for folder in dict.fromkeys(folders) if folder not in there]:
        with open(os.path.join(paths.data_folder(), name), "a", encoding="utf-8", errors="surrogateescape") as file:
            file.writelines(f"{folder}\n" for folder in new)


def forget_folder(folder: Path) -> None:
    """Record that the files of a folder have none of our entries any more."""
    _write(FILE, [noted for noted in _read(FILE) if noted != folder])


def list_folders() -> list[Path]:
    """Return the existing folders that were recorded, that belong to known projects, or that are current."""
    found = _read(FILE)
    with suppress(OSError, MemorydError):  # the table of projects cannot be read
        found += [Path(folder) for project in projects.read_table()["projects"] for folder in project["folders"]]
    return _list_existing([*found, *list_current()])


def list_current() -> list[Path]:
    """Return the current folder and that of its project, none if this user may not enter it."""
    try:
        os.stat(".")
        return _list_existing([Path.cwd(), Path(project_root(Path.cwd()))])
    except OSError:  # no permission, as after `sudo -u`, or the folder no longer exists
        return []


def _list_existing(folders: Iterable[Path]) -> list[Path]:
    """Return the folders that exist, each once, without the home folder, which is no project."""
    existing = {folder.resolve(): folder for folder in folders if folder.is_dir()}
    existing.pop(Path.home().resolve(), None)
    return list(existing.values())


def list_gone() -> list[Path]:
    """Return the recorded folders that no longer exist."""
    return [folder for folder in _read(FILE) if not folder.is_dir()]


def list_made() -> list[Path]:
    """Return the folders that were created for files of agents."""
    return _read(_MADE)


def remove_empty(made: Sequence[Path]) -> None:
    """Remove the folders created for files of agents that are empty."""
    for folder in sorted(made, key=lambda folder: len(folder.parts), reverse=True):
        with suppress(OSError):  # it is not empty, or does not exist
            folder.rmdir()
    _write(_MADE, [folder for folder in made if folder.is_dir()])


def _read(name: str) -> list[Path]:
    try:
        text = Path(paths.data_folder(), name).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return []
    return [Path(line) for line in text.split("\n") if line]


def _write(name: str, folders: Sequence[Path]) -> None:
    """Replace the content of a record, if it exists."""
    path = Path(paths.data_folder(), name)
    if path.exists() and folders != _read(name):
        path.write_text("".join(f"{folder}\n" for folder in folders), encoding="utf-8", errors="surrogateescape")

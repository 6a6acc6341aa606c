"""What installations of hooks leave a note of, beside the database, so that all of it can be taken out again.

`hooks.folders`: the folders of projects in whose files entries of ours are. `hooks.made`: the folders that had to be
made for files of agents and for the data folder, which go again once they are empty. A line of each is one folder.
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
    """Write down the project whose files get entries of ours, and the folders that have to be made.

    This makes the data folder: hooks keep nothing where there is none.
    """
    where = paths.data_folder()
    made = [folder for file in (Path(where), *files) for folder in file.resolve().parents if not folder.exists()]
    os.makedirs(where, mode=0o700, exist_ok=True)
    trust.check_data_folder(where)
    _add(FILE, [project] if project else [])
    _add(_MADE, made)
    Path(paths.removed_mark()).unlink(missing_ok=True)


def note_removal() -> None:
    """Write down that memoryd is uninstalled: hooks that are still called do nothing, also where the data is kept."""
    with suppress(OSError):  # without a data folder they do nothing either
        Path(paths.removed_mark()).touch(mode=0o600)


def _add(name: str, folders: Iterable[Path]) -> None:
    there = _read(name)
    if new := [folder for folder in dict.fromkeys(folders) if folder not in there]:
        with open(os.path.join(paths.data_folder(), name), "a", encoding="utf-8", errors="surrogateescape") as file:
            file.writelines(f"{folder}\n" for folder in new)


def forget_folder(folder: Path) -> None:
    """Write down that there is nothing of ours in the files of a folder any more."""
    _write(FILE, [noted for noted in _read(FILE) if noted != folder])


def list_folders() -> list[Path]:
    """Return the folders that were noted, those of known projects and the current ones, as far as they are there."""
    found = _read(FILE)
    with suppress(OSError, MemorydError):  # a table of projects that cannot be read names none
        found += [Path(folder) for project in projects.read_table()["projects"] for folder in project["folders"]]
    return _list_there([*found, *list_current()])


def list_current() -> list[Path]:
    """Return the current folder and that of its project, unless this user may not enter it: then nothing is ours."""
    try:
        os.stat(".")
        return _list_there([Path.cwd(), Path(project_root(Path.cwd()))])
    except OSError:  # closed to this user, as after `sudo -u`; or it no longer exists
        return []


def _list_there(folders: Iterable[Path]) -> list[Path]:
    """Return the folders that exist, each once; the home folder is no project's."""
    there = {folder.resolve(): folder for folder in folders if folder.is_dir()}
    there.pop(Path.home().resolve(), None)
    return list(there.values())


def list_gone() -> list[Path]:
    """Return the folders that were noted and are not there any more: deleted or moved."""
    return [folder for folder in _read(FILE) if not folder.is_dir()]


def list_made() -> list[Path]:
    """Return the folders that were made for files of agents."""
    return _read(_MADE)


def remove_empty(made: Sequence[Path]) -> None:
    """Remove those of the folders made for files of agents that are empty."""
    for folder in sorted(made, key=lambda folder: len(folder.parts), reverse=True):
        with suppress(OSError):  # something is in it, or it is gone
            folder.rmdir()
    _write(_MADE, [folder for folder in made if folder.is_dir()])


def _read(name: str) -> list[Path]:
    try:
        text = Path(paths.data_folder(), name).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return []
    return [Path(line) for line in text.split("\n") if line]


def _write(name: str, folders: Sequence[Path]) -> None:
    """Write a note anew, where there is one."""
    path = Path(paths.data_folder(), name)
    if path.exists() and folders != _read(name):
        path.write_text("".join(f"{folder}\n" for folder in folders), encoding="utf-8", errors="surrogateescape")

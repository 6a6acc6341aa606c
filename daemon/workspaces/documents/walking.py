"""Find the files of a folder that match the patterns of a workspace, without following symbolic links.

The walk enters only folders that git does not ignore and that can contain matching files. A file or folder that cannot
be read is reported as a problem and does not stop the walk.
"""

import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from memoryd.client.errors import Invalid, NotFound
from memoryd.daemon.workspaces.documents import ignore
from memoryd.daemon.workspaces.documents.document import Scan, WalkedFile
from memoryd.daemon.workspaces.documents.globs import Globs
from memoryd.daemon.workspaces.documents.ignore import IgnoreRules

GLOBS = ("MEMORY.md", "memory/**/*.md")
WHOLE = ("**/*.md",)
DREAMS = "memory/dreams"  # diaries contain statements that are no longer valid, so they are not indexed
_MOST_LEFT_OUT = 200


class _Folder(NamedTuple):
    """A folder to enter."""

    path: str  # relative to the root, with a `/` at its end; the root is ""
    chain: list[IgnoreRules]


def scan(root: Path, globs: Sequence[str] = GLOBS) -> Scan:
    """Walk through a folder; raise `NotFound` if it does not exist, `Invalid` for a wrong pattern or without access."""
    walk = _Walk(root, Globs(globs))
    waiting = [_Folder("", ignore.read_enclosing(root))]
    while waiting:
        waiting += walk.look_into(waiting.pop())
    walk.files.sort()
    problems, left_out = (dict(sorted(found.items())) for found in (walk.problems, walk.left_out))
    return Scan(walk.files, problems, walk.ignored, sorted(walk.folders), left_out, walk.count_others())


class _Walk:
    def __init__(self, root: Path, globs: Globs) -> None:
        self.root, self.globs = os.fspath(root), globs
        self.files: list[WalkedFile] = []
        self.problems: dict[str, str] = {}
        self.ignored = 0
        self.folders: list[str] = []
        self.left_out: dict[str, str] = {}
        self._others: Counter[str] = Counter()  # numbers of files that are not Markdown, by the ending of their names

    def count_others(self) -> str:
        """Return a sentence about the files that are not Markdown, empty if there are none."""
        shown = ", ".join(f"{count} {ending or 'without an ending'}" for ending, count in self._others.most_common(5))
        total = self._others.total()
        return f"{total} {'file is' if total == 1 else 'files are'} not Markdown: {shown}." if shown else ""

    def look_into(self, folder: _Folder) -> Iterator[_Folder]:
        """Record the files of one folder; yield the folders in it."""
        entries = self._list_entries(folder.path)
        if any(entry.name in (ignore.NAME, ".git") for entry in entries):
            rules = ignore.read_folder(Path(self.root, folder.path), below=folder.path)
            folder = folder._replace(chain=[*folder.chain, *rules])
        for entry in entries:
            try:
                yield from self._take(folder, entry)
            except FileNotFoundError:
                continue
            except OSError as error:
                self.problems[_show(folder.path + entry.name)] = f"It cannot be read: {error.strerror}."

    def _list_entries(self, path: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(os.path.join(self.root, path)) as entries:
                found = list(entries)
        except OSError as error:
            if not path:
                raise _unreadable_error(self.root, error) from None
            if not isinstance(error, FileNotFoundError):
                self.problems[path.rstrip("/")] = f"The folder cannot be read: {error.strerror}."
            return []
        self.folders.append(path.rstrip("/"))
        return found

    def _take(self, folder: _Folder, entry: os.DirEntry[str]) -> Iterator[_Folder]:
        name, path = entry.name, folder.path + entry.name
        if entry.is_dir(follow_symlinks=False):
            if name == ".git" or path == DREAMS or not self.globs.lead_into(path):
                self._leave_out(f"{path}/", _explain_unmeant(name, path))
            elif self._is_wanted(f"{path}/", folder.chain) and self._is_named(path):
                yield _Folder(f"{path}/", folder.chain)
        elif entry.is_symlink():
            is_meant = self.globs.match(path) or (_is_folder(entry) and self.globs.lead_into(path))
            if is_meant and self._is_wanted(path, folder.chain):
                self.problems[_show(path)] = _find_link_problem(self.root, path)
        elif self.globs.match(path):
            if self._is_wanted(path, folder.chain) and self._is_named(path):
                state = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(state.st_mode):
                    self.files.append(WalkedFile(path, state.st_size, state.st_mtime_ns))
                else:
                    self.problems[path] = "It is not a regular file, so it is not read."
        elif name.endswith(".md"):
            self._leave_out(path, _explain_unmeant(name, path))
        elif not name.startswith("."):
            self._others[os.path.splitext(name)[1]] += 1

    def _leave_out(self, path: str, reason: str) -> None:
        if len(self.left_out) < _MOST_LEFT_OUT:
            self.left_out[_show(path)] = reason

    def _is_wanted(self, path: str, chain: Sequence[IgnoreRules]) -> bool:
        if chain and ignore.is_ignored(path, chain):
            self.ignored += 1
            self._leave_out(path, "Git ignores it.")
            return False
        return True

    def _is_named(self, path: str) -> bool:
        if path.isascii() or _show(path) == path:
            return True
        self.problems[_show(path)] = "Its name is not UTF-8, so it is not read."
        return False


def _explain_unmeant(name: str, path: str) -> str:
    if path == DREAMS:
        return "Diaries of dreams are not indexed."
    return "It is hidden." if name.startswith(".") else "No pattern of the workspace matches it."


def _show(path: str) -> str:
    """Return a path as text, with bytes that are not UTF-8 escaped."""
    return path if path.isascii() else os.fsencode(path).decode("utf-8", "backslashreplace")


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a loop of links
        return False


def _find_link_problem(root: str, path: str) -> str:
    full = os.path.join(root, path)
    target = os.path.realpath(full)
    if target != root and not target.startswith(root.rstrip("/") + "/"):
        return "It is a symbolic link that leaves the workspace, so it is not read."
    if not os.path.exists(full):
        return "It is a symbolic link that leads nowhere."
    return "It is a symbolic link, and links are not followed."


def _unreadable_error(root: str, error: OSError) -> Exception:
    if isinstance(error, FileNotFoundError):
        return NotFound(f"The folder {root} does not exist.")
    if isinstance(error, NotADirectoryError):
        return Invalid(f"{root} is not a folder.")
    return Invalid(f"The folder {root} cannot be read: {error.strerror}.")

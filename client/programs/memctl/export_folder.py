"""The folder of a Markdown export: one file per memory, and a journal of what was written.

The journal makes an export repeatable. A file that was not changed since the last export is updated or removed. A file
that a person has edited, or that no export wrote, is left as it is, unless the export is forced. An edited file that
was imported again has the same content as its memory, and is treated as unchanged.
"""

import os
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import msgspec

from memoryd.client.errors import Invalid
from memoryd.client.programs.memctl.record_text import file_name, folder_name, format_markdown, parse_markdown
from memoryd.client.protocol import Record

JOURNAL = ".memoryd-export.jsonl"
FORMAT = 1
EDITED = ("namespace", "type", "content", "summary", "metadata", "importance", "created_at", "expires_at", "pinned")
FEW = 10  # this many files are always removed; more only if they are not the majority


class Entry(msgspec.Struct):
    """A line of the journal: a file, the memory in it, the SHA-256 of its bytes."""

    path: str
    id: str
    sha256: str


class Header(msgspec.Struct):
    """The first line of the journal: which memories the export has (namespace, reach, filters)."""

    memoryd_export: int
    scope: dict[str, Any]


class Report(msgspec.Struct):
    """What an export did in its folder. `edited` files were changed by somebody else, `stale` counts files of memories
    that no longer exist: both were left as they are."""

    folder: str
    written: int = 0
    unchanged: int = 0
    removed: int = 0
    edited: list[str] = []
    stale: int = 0
    left_out: dict[str, int] = {}


def _make_private(folder: Path) -> None:
    """Make a folder and its missing parents, readable for the owner alone, because names of folders are namespaces."""
    if not folder.is_dir():
        _make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


class ExportFolder:
    """A folder that is exported into. As a context manager it closes the journal."""

    def __init__(self, folder: Path, scope: dict[str, Any], force: bool = False) -> None:
        self.folder, self.force = folder, force
        self.report = Report(str(folder))
        self._before = _read_entries(folder, scope, force)
        self._paths = {entry.id: path for path, entry in self._before.items()}
        self._now: dict[str, Entry] = {}
        self._header = Header(FORMAT, scope)
        _make_private(folder)
        fresh = not (folder / JOURNAL).exists()
        self._journal = (folder / JOURNAL).open("ab")
        os.chmod(folder / JOURNAL, 0o600)
        if fresh:
            self._note(self._header)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._journal.close()

    def _note(self, line: msgspec.Struct) -> None:
        self._journal.write(msgspec.json.encode(line) + b"\n")

    def put(self, record: Record) -> None:
        """Write the file of a record, unless its content is right already, or somebody edited it."""
        data = format_markdown(record)
        entry = Entry(self._choose_path(record), record.id, sha256(data).hexdigest())
        self._now[entry.path] = entry
        found = _hash_file(self.folder / entry.path)
        before = self._before.get(entry.path)
        if found == entry.sha256:
            self.report.unchanged += 1
        elif found and not self.force and not (before and before.sha256 == found) and not self._is_same(entry, record):
            self.report.edited.append(entry.path)
            self._now[entry.path] = before or Entry(entry.path, entry.id, "")
            return
        else:
            self._write(entry, data)
            self.report.written += 1
        if before != entry:
            self._note(entry)

    def _is_same(self, entry: Entry, record: Record) -> bool:
        """Return whether a file has the fields of a record that a person edits; others are counted or derived."""
        try:
            found = parse_markdown((self.folder / entry.path).read_bytes())
        except Invalid:
            return False
        return found is not None and all(getattr(found, name) == getattr(record, name) for name in EDITED)

    def _choose_path(self, record: Record) -> str:
        """Return the path of a record's file: its former one, else a name with enough digits of the id to be unique."""
        folder = folder_name(record.namespace)
        former = self._paths.get(record.id)
        if former is not None and former.rpartition("/")[0] == folder and former not in self._now:
            return former  # even if the content has changed: a file that is renamed often is hard to follow
        for digits in (8, 32):
            path = f"{folder}/{file_name(record, digits)}".lstrip("/")
            if path not in self._now and self._before.get(path, record).id == record.id:
                break
        return path

    def _write(self, entry: Entry, data: bytes) -> None:
        path = self.folder / entry.path
        _make_private(path.parent)
        draft = path.with_name(f".{entry.id[:8]}.{os.getpid()}.tmp")
        try:
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(data)
            os.replace(draft, path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise

    def finish(self, find_erased: Callable[[], set[str]]) -> Report:
        """Remove the files of deleted memories and rewrite the journal. Call it after the last `put`.

        If these are most of the files they stay, because it is more likely that this is the wrong daemon than that so
        much was deleted; only the files of erased memories, whose ids `find_erased` returns, are removed in any case.
        """
        stale = [entry for path, entry in self._before.items() if path not in self._now]
        total = len(self._before)
        if self._is_most(stale, total):
            erased = find_erased()
            for entry in (entry for entry in stale if entry.id in erased):
                self._remove(entry)
                total -= 1
            stale = [entry for entry in stale if entry.id not in erased]
        if self._is_most(stale, total):
            self.report.stale = len(stale)
            self._now |= {entry.path: entry for entry in stale}
        else:
            for entry in stale:
                self._remove(entry)
        self._journal.close()
        self._rewrite()
        return self.report

    def _is_most(self, stale: Sequence[Entry], total: int) -> bool:
        return not self.force and len(stale) > FEW and len(stale) > total // 2

    def _remove(self, entry: Entry) -> None:
        path = self.folder / entry.path
        found = _hash_file(path)
        if found and found != entry.sha256 and not self.force:
            self.report.edited.append(entry.path)
            self._now[entry.path] = entry
            return
        path.unlink(missing_ok=True)
        self.report.removed += 1
        for parent in path.relative_to(self.folder).parents[:-1]:
            try:
                (self.folder / parent).rmdir()
            except OSError:
                return  # the folder is not empty

    def _rewrite(self) -> None:
        os.sync()  # the files first: the journal must not list files that a power failure would lose
        lines = [self._header, *sorted(self._now.values(), key=lambda entry: entry.path)]
        draft = self.folder / f"{JOURNAL}.tmp"
        with draft.open("wb") as file:
            os.chmod(draft, 0o600)
            file.writelines(msgspec.json.encode(line) + b"\n" for line in lines)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, self.folder / JOURNAL)


def _read_entries(folder: Path, scope: dict[str, Any], force: bool) -> dict[str, Entry]:
    """Return the journal of an earlier export by path; raise `Invalid` if the folder is not for this export."""
    if not folder.exists():
        return {}
    if not folder.is_dir():
        raise Invalid(f"{folder} is not a folder.")
    journal = folder / JOURNAL
    if not journal.exists():
        if any(folder.iterdir()) and not force:
            raise Invalid(f"{folder} is not empty and not an earlier export; choose another folder, or give --force.")
        return {}
    header, entries = _read(journal)
    if header.scope != scope:
        filters = ", ".join(f"{name} {value}" for name, value in header.scope.items() if value) or "everything"
        raise Invalid(f"{folder} is an export of something else ({filters}); choose another folder.")
    return entries


def _read(journal: Path) -> tuple[Header, dict[str, Entry]]:
    lines = journal.read_bytes().split(b"\n")
    try:
        header = msgspec.json.decode(lines[0], type=Header)
    except msgspec.DecodeError:
        raise Invalid(f"{journal} is not the journal of an export; choose another folder.") from None
    if header.memoryd_export > FORMAT:
        raise Invalid(f"{journal.parent} was exported by a newer memoryd; upgrade this one.")
    entries: dict[str, Entry] = {}
    for line in lines[1:]:
        try:
            entry = msgspec.json.decode(line, type=Entry)
        except msgspec.DecodeError:
            continue  # the last line of an interrupted export
        if not entry.path.startswith("/") and ".." not in entry.path.split("/"):
            entries[entry.path] = entry
    return header, entries


def _hash_file(path: Path) -> str:
    """Return the SHA-256 of a file; empty if it does not exist or has no content, as after a power failure."""
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    return sha256(data).hexdigest() if data else ""

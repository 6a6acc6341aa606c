"""The folder of a Markdown export: one file per memory, and a journal of what was written.

The journal makes an export repeatable: a file that is still as it was written is brought up to date or removed; one
that a person has edited since, or that was never ours, is left alone unless forced, or unless it was imported: then
the memory says what the file says.
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
FEW = 10  # files that may always go; more only when they are not the greater part


class Entry(msgspec.Struct):
    """A line of the journal: a file, the memory in it, the SHA-256 of its bytes."""

    path: str
    id: str
    sha256: str


class Header(msgspec.Struct):
    """The first line of the journal: what the export holds (namespace, reach, filters)."""

    memoryd_export: int
    scope: dict[str, Any]


class Report(msgspec.Struct):
    """What an export did to its folder. `edited` were changed by somebody else, `stale` are of memories that no longer
    exist: both were left as they are."""

    folder: str
    written: int = 0
    unchanged: int = 0
    removed: int = 0
    edited: list[str] = []
    stale: int = 0
    left_out: dict[str, int] = {}


def _make_private(folder: Path) -> None:
    """Make a folder and those above it that are missing, for their owner alone: their names are words of memories."""
    if not folder.is_dir():
        _make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


class ExportFolder:
    """A folder that is being exported into. Use it as a context: the journal is closed whatever happens."""

    def __init__(self, folder: Path, scope: dict[str, Any], force: bool = False) -> None:
        self.folder, self.force = folder, force
        self.report = Report(str(folder))
        self._before = _read_entries(folder, scope, force)
        self._places = {entry.id: path for path, entry in self._before.items()}
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
        """Write the file of a record, unless it is there as it should be, or somebody edited it."""
        data = format_markdown(record)
        entry = Entry(self._place(record), record.id, sha256(data).hexdigest())
        self._now[entry.path] = entry
        there = _hash_file(self.folder / entry.path)
        before = self._before.get(entry.path)
        if there == entry.sha256:
            self.report.unchanged += 1
        elif there and not self.force and not (before and before.sha256 == there) and not self._is_same(entry, record):
            self.report.edited.append(entry.path)
            self._now[entry.path] = before or Entry(entry.path, entry.id, "")
            return
        else:
            self._write(entry, data)
            self.report.written += 1
        if before != entry:
            self._note(entry)

    def _is_same(self, entry: Entry, record: Record) -> bool:
        """Return whether a file says what is stored, but for what the daemon counts and derives by itself."""
        try:
            there = parse_markdown((self.folder / entry.path).read_bytes())
        except Invalid:
            return False
        return there is not None and all(getattr(there, name) == getattr(record, name) for name in EDITED)

    def _place(self, record: Record) -> str:
        """Return the path of a record's file: the one it has, else with as many digits of its id as distinguish it."""
        folder = folder_name(record.namespace)
        had = self._places.get(record.id)
        if had is not None and had.rpartition("/")[0] == folder and had not in self._now:
            return had  # whatever it says by now: a file that is renamed with each change is hard to follow
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
        """Remove the files of deleted memories and write the journal again. Call it after the last `put`.

        Where that would be most of the files they stay, as the daemon is more likely the wrong one than that much
        forgotten; only those of memories that it erased, whose ids `find_erased` returns, go in any case.
        """
        stale = [entry for path, entry in self._before.items() if path not in self._now]
        others = len(self._before)
        if self._is_most(stale, others):
            erased = find_erased()
            for entry in (entry for entry in stale if entry.id in erased):
                self._remove(entry)
                others -= 1
            stale = [entry for entry in stale if entry.id not in erased]
        if self._is_most(stale, others):
            self.report.stale = len(stale)
            self._now |= {entry.path: entry for entry in stale}
        else:
            for entry in stale:
                self._remove(entry)
        self._journal.close()
        self._rewrite()
        return self.report

    def _is_most(self, stale: Sequence[Entry], every: int) -> bool:
        return not self.force and len(stale) > FEW and len(stale) > every // 2

    def _remove(self, entry: Entry) -> None:
        path = self.folder / entry.path
        there = _hash_file(path)
        if there and there != entry.sha256 and not self.force:
            self.report.edited.append(entry.path)
            self._now[entry.path] = entry
            return
        path.unlink(missing_ok=True)
        self.report.removed += 1
        for parent in path.relative_to(self.folder).parents[:-1]:
            try:
                (self.folder / parent).rmdir()
            except OSError:
                return  # something else is in it

    def _rewrite(self) -> None:
        os.sync()  # the files first: the journal must not list what a power failure loses
        lines = [self._header, *sorted(self._now.values(), key=lambda entry: entry.path)]
        draft = self.folder / f"{JOURNAL}.tmp"
        with draft.open("wb") as file:
            os.chmod(draft, 0o600)
            file.writelines(msgspec.json.encode(line) + b"\n" for line in lines)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, self.folder / JOURNAL)


def _read_entries(folder: Path, scope: dict[str, Any], force: bool) -> dict[str, Entry]:
    """Return what an earlier export wrote into a folder; raise `Invalid` when it is not one for this export."""
    if not folder.exists():
        return {}
    if not folder.is_dir():
        raise Invalid(f"{folder} is not a folder.")
    journal = folder / JOURNAL
    if not journal.exists():
        if any(folder.iterdir()) and not force:
            raise Invalid(f"{folder} is not empty and no earlier export; choose another folder, or give --force.")
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
            continue  # the last line of an export that was broken off
        if not entry.path.startswith("/") and ".." not in entry.path.split("/"):
            entries[entry.path] = entry
    return header, entries


def _hash_file(path: Path) -> str:
    """Return the SHA-256 of a file, empty when it is not there or holds nothing (as a power failure leaves it)."""
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    return sha256(data).hexdigest() if data else ""

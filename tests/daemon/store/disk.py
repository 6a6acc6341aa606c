"""A disk under SQLite that keeps what was synced apart from what was only written, fails, and loses power.

After a loss of power a file holds what was synced of it and any part of what was written since then, in any order, each
write whole, torn or not at all; so does SQLite's own description of what a disk may do.
"""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import apsw

NAME = "unreliable"
SECTOR_BYTES = 512


class _Change(NamedTuple):
    """A write, or without data: the file was cut at `offset`."""

    offset: int
    data: bytes | None


class _Content:
    """What a file has for sure, and what was done to it since."""

    def __init__(self, synced: bytes) -> None:
        self.synced = synced
        self.changes: list[_Change] = []

    def sync(self) -> None:
        self.synced = self.lose(self.changes)
        self.changes.clear()

    def lose(self, kept: list[_Change]) -> bytes:
        """Return the content when of the changes these reached the disk, in this order."""
        content = bytearray(self.synced)
        for offset, data in kept:
            if data is None:
                del content[offset:]
                continue
            content.extend(bytes(max(0, offset - len(content))))
            content[offset : offset + len(data)] = data
        return bytes(content)


class Disk:
    """What a disk does to the files of one folder. `meet` is called at each write, cut and sync, before it is done."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, _Content] = {}
        self.meet: Callable[[str, str, _Change], None] = lambda kind, name, change: None
        self._lock = threading.RLock()

    def open(self, path: str) -> str | None:
        """Return the name by which a file is kept, None for one of another folder or without promises."""
        file = Path(path)
        if file.parent != self.folder or file.name.endswith("-shm"):
            return None
        with self._lock:
            if file.name not in self.files:
                self.files[file.name] = _Content(file.read_bytes() if file.exists() else b"")
        return file.name

    def change(self, kind: str, name: str, change: _Change) -> None:
        """Write, cut or sync."""
        with self._lock:
            self.meet(kind, name, change)
            if kind == "sync":
                self.files[name].sync()
            else:
                self.files[name].changes.append(change)

    def cut_power(self, place: Path, dice: random.Random, under_way: tuple[str, _Change]) -> bool:
        """Write what the disk holds when the power goes now; return whether anything was lost."""
        lost = False
        for name, content in self.files.items():
            changes = [*content.changes, *([under_way[1]] if under_way[0] == name else [])]
            kept = list(_choose(changes, dice))
            lost |= kept != changes
            (place / name).write_bytes(content.lose(kept))
        return lost


def _choose(changes: list[_Change], dice: random.Random) -> Iterator[_Change]:
    """Yield those of some changes that reach the disk: all, none, the first ones, or any in any order, some torn."""
    how = dice.randrange(5)
    if how == 0:
        yield from changes
    elif how == 1:
        yield from changes[: dice.randint(0, len(changes))]
    elif how > 2:
        for change in dice.sample(changes, dice.randint(0, len(changes))):
            if change.data and dice.random() < 0.3:
                start, end = sorted(dice.randint(0, len(change.data) // SECTOR_BYTES) * SECTOR_BYTES for _ in "ab")
                yield _Change(change.offset + start, change.data[start:end])
            else:
                yield change


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: "str | apsw.URIFilename | None", flags: list[int]) -> None:
        super().__init__("unix", name, flags)
        self._disk = disk
        self._name = disk.open(name.filename() if isinstance(name, apsw.URIFilename) else str(name))

    def xWrite(self, data: bytes, offset: int) -> None:
        if self._name:
            try:
                self._disk.change("write", self._name, _Change(offset, bytes(data)))
            except ShortWrite:
                super().xWrite(data[: len(data) // 2], offset)
                raise
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        if self._name:
            self._disk.change("cut", self._name, _Change(newsize, None))
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        if not self._name:
            super().xSync(flags)
        else:  # nothing here outlives this process, so no real disk need be waited for
            self._disk.change("sync", self._name, _Change(0, b""))


class _System(apsw.VFS):
    def __init__(self, disk: Disk) -> None:
        super().__init__(NAME, "unix", makedefault=True)
        self._disk = disk

    def xOpen(self, name: "str | apsw.URIFilename | None", flags: list[int]) -> apsw.VFSFile:
        return _File(self._disk, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        super().xDelete(filename, syncdir)
        if Path(filename).parent == self._disk.folder:
            self._disk.files.pop(Path(filename).name, None)


@contextmanager
def unreliable(folder: Path) -> Iterator[Disk]:
    """Put a disk under every database of a folder that is opened meanwhile."""
    disk = Disk(folder)
    system = _System(disk)
    try:
        yield disk
    finally:
        system.unregister()


class ShortWrite(apsw.IOError):
    """Half of the data was written."""


def build_error(code: int, kind: type[apsw.Error] = apsw.IOError) -> apsw.Error:
    """Return an error as SQLite's own file system raises it."""
    error = kind("the disk fails")
    vars(error).update(extendedresult=code, result=code & 0xFF)
    return error

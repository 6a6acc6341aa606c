"""The power goes at any write or sync of a database: what was acknowledged is there, nothing is there by half.

Below SQLite each write and sync is a place to crash: the files as they are then are copied, with the write missing or
torn in the middle, and opened as the next start does. What such a copy holds has to be the state after the last
operation that was acknowledged, or after the one under way.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import apsw
import pytest

from memoryd.daemon.core.core import Core
from memoryd.daemon.store.store import FILE_NAME, Store
from workbench import CountingEmbedder, add, delete, running, undo, update

NAME = "crashing"
FILES = (FILE_NAME, f"{FILE_NAME}-wal")
State = frozenset[str]


class Image(NamedTuple):
    """What is there after one crash, and how many operations were acknowledged by then."""

    met: int
    state: State
    acknowledged: int


class Crashes:
    """Looks at what a crash leaves at every `every`-th write or sync while it is armed."""

    def __init__(self, data: Path, place: Path, every: int) -> None:
        self.data, self._place, self._every = data, place, every
        self.images: list[Image] = []
        self.armed, self.acknowledged, self._met = False, 0, 0

    def meet(self, file: str, part: bytes, offset: int) -> None:
        """Take the image of a crash in the middle of a write; without bytes: before a sync."""
        if not self.armed or not file.startswith(str(self.data / FILE_NAME)) or file.endswith("-shm"):
            return
        self._met += 1
        if self._met % self._every:
            return
        self._place.mkdir()
        for name in FILES:
            if (self.data / name).exists():
                shutil.copy(self.data / name, self._place / name)
        if part:
            with (self._place / Path(file).name).open("r+b") as torn:
                torn.seek(offset)
                torn.write(part)
        self.images.append(Image(self._met, read_state(self._place), self.acknowledged))
        shutil.rmtree(self._place)


class _File(apsw.VFSFile):
    def __init__(self, crashes: Crashes, name: "str | apsw.URIFilename | None", flags: list[int]) -> None:
        super().__init__("unix", name, flags)
        self._crashes = crashes
        self._path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)

    def xWrite(self, data: bytes, offset: int) -> None:
        self._crashes.meet(self._path, bytes(data[: len(data) // 2]), offset)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        self._crashes.meet(self._path, b"", 0)
        super().xSync(flags)


class _System(apsw.VFS):
    def __init__(self, crashes: Crashes) -> None:
        super().__init__(NAME, "unix", makedefault=True)
        self._crashes = crashes

    def xOpen(self, name: "str | apsw.URIFilename | None", flags: list[int]) -> apsw.VFSFile:
        return _File(self._crashes, name, flags)


def operate(core: Core, rounds: int) -> Iterator[State]:
    """Do operations of each kind; yield the state after each."""
    present: set[str] = set()
    for number in range(rounds):
        one, other = f"Heron {number} fishes", f"Stork {number} nests " + "in the reeds " * 300
        first = add(core, one, dedup=False)
        yield frozenset(present := present | {one})
        second = add(core, other, dedup=False)
        yield frozenset(present := present | {other})
        update(core, first.id, content=f"{one} at dawn")
        yield frozenset(present := present - {one} | {f"{one} at dawn"})
        gone = delete(core, second.id)
        yield frozenset(present := present - {other})
        undo(core, gone.operation)
        yield frozenset(present := present | {other})


def crash(folder: Path, rounds: int, every: int) -> tuple[list[Image], list[State]]:
    """Return what is there after each crash, and the state after each operation, the empty one first."""
    crashes = Crashes(folder / "data", folder / "image", every)
    states: list[State] = [frozenset()]
    system = _System(crashes)
    try:
        with running(folder, CountingEmbedder()) as core:
            crashes.armed = True
            for state in operate(core, rounds):
                states.append(state)
                crashes.acknowledged += 1
            crashes.armed = False
    finally:
        system.unregister()
    return crashes.images, states


def read_state(folder: Path) -> State:
    store = Store(folder)
    try:
        assert store.find_problems().result() == []
        with store.reading() as connection:
            return frozenset(str(content) for (content,) in connection.execute("SELECT content FROM memories"))
    finally:
        store.close()


def check(folder: Path, rounds: int, every: int) -> int:
    """Check every image; return how many there were."""
    images, states = crash(folder, rounds, every)
    for image in images:
        # The operation under way may be on disk already.
        possible = states[image.acknowledged : image.acknowledged + 2]
        assert image.state in possible, image.met
    return len(images)


def test_a_crash_at_any_write_loses_nothing_that_was_acknowledged(folder: Path) -> None:
    assert check(folder, 1, every=9) > 3


@pytest.mark.stress
def test_a_crash_at_each_write_of_many_operations_loses_nothing(folder: Path) -> None:
    assert check(folder, 12, every=1) > 1_000

"""A disk that fails below SQLite: what was acknowledged stays, and what is not sure is said to be unsure."""

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from memoryd.client.errors import StorageFailed
from memoryd.client.protocol import Verify
from memoryd.daemon.jobs import database
from workbench import CountingEmbedder, add, found, running

NAME = "failing"


class Disk:
    """Which errors the disk gives: on a write, on a sync; the one is counted down to."""

    def __init__(self) -> None:
        self.write: int | None = None
        self.sync: int | None = None

    def fail(self, code: int) -> None:
        error = apsw.IOError("the disk fails")
        vars(error).update(extendedresult=code, result=apsw.SQLITE_IOERR)
        raise error


DISK = Disk()


class _File(apsw.VFSFile):
    def xWrite(self, data: bytes, offset: int) -> None:
        if DISK.write is not None:
            DISK.fail(DISK.write)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        if DISK.sync is not None:
            DISK.fail(DISK.sync)
        super().xSync(flags)


class _System(apsw.VFS):
    def __init__(self) -> None:
        super().__init__(NAME, "unix", makedefault=True)

    def xOpen(self, name: "str | apsw.URIFilename | None", flags: list[int]) -> apsw.VFSFile:
        return _File("unix", name, flags)


@pytest.fixture
def disk() -> Iterator[Disk]:
    """A disk under every database that is opened in the test."""
    system = _System()
    DISK.write = DISK.sync = None
    yield DISK
    DISK.write = DISK.sync = None
    system.unregister()


@pytest.mark.parametrize(
    ("code", "said"),
    [(apsw.SQLITE_IOERR_FSYNC, "may or may not be stored"), (apsw.SQLITE_IOERR_WRITE, "cannot be written")],
)
def test_a_disk_that_fails_is_answered_truly_and_costs_nothing_that_was_acknowledged(
    folder: Path, disk: Disk, code: int, said: str
) -> None:
    with running(folder, CountingEmbedder()) as core:
        add(core, "Herons fish at dawn")
        setattr(disk, "sync" if code == apsw.SQLITE_IOERR_FSYNC else "write", code)
        for number in range(3):
            with pytest.raises(StorageFailed, match=said):
                add(core, f"Storks nest {number}")
        disk.write = disk.sync = None
        add(core, "Cranes dance at dusk")
        assert database.verify(core, lambda progress: None, Verify()).problems == []
    with running(folder, CountingEmbedder()) as core:
        assert found(core, "herons fish at dawn")[0] == "Herons fish at dawn"
        assert found(core, "cranes dance at dusk")[0] == "Cranes dance at dusk"
        assert database.verify(core, lambda progress: None, Verify()).problems == []

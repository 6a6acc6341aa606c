"""The log of a killed daemon is damaged, cut or gone: that something is lost is said, and not where nothing is."""

import os
import shutil
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from memoryd.daemon.core.core import Core
from memoryd.daemon.store import damage, examine, upkeep
from memoryd.daemon.store.connection import PAGE_BYTES
from memoryd.daemon.store.store import FILE_NAME, Store
from workbench import CountingEmbedder, add, running

LOG, INDEX = f"{FILE_NAME}-wal", f"{FILE_NAME}-shm"
NUMBER = 20
FRAME_BYTES = PAGE_BYTES + 24


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a daemon that was killed; most of what it stored is in the log alone."""
    folder = tmp_path_factory.mktemp("killed")
    with running(folder, CountingEmbedder()) as core:
        upkeep.clear_log(core.store)
        for number in range(NUMBER):
            add(core, f"Crane number {number} {'stands in the reeds ' * 40}", dedup=False)
        copy_as_killed(core, folder / "killed")
    return folder / "killed"


def copy_as_killed(core: Core, target: Path) -> None:
    """Copy the files as a kill would leave them; by another process, as closing one here would release its locks."""
    target.mkdir()
    files = [core.folder / name for name in (FILE_NAME, LOG, INDEX)]
    subprocess.run(["cp", *map(str, files), str(target)], check=True)


@pytest.fixture
def copied(killed: Path, folder: Path) -> Path:
    shutil.copytree(killed, folder / "data")
    return folder / "data"


def start(folder: Path) -> tuple[int, list[str]]:
    """Start on a folder; return how many memories there are, and what was noted."""
    with closing(Store(folder)) as store:
        assert store.find_problems() == []
        with store.reading() as connection:
            number = connection.execute("SELECT count(*) FROM memories").get
        assert isinstance(number, int)
        return number, store.list_repairs()


def break_middle(log: Path) -> None:
    frames = log.stat().st_size // FRAME_BYTES
    with log.open("r+b") as file:
        file.seek(32 + frames // 2 * FRAME_BYTES + 100)
        file.write(b"\xa5" * 500)


@pytest.mark.parametrize(
    "harm",
    [break_middle, lambda log: os.truncate(log, log.stat().st_size // 2), Path.unlink, lambda log: os.truncate(log, 0)],
    ids=["middle", "cut", "deleted", "emptied"],
)
def test_what_is_lost_with_the_log_is_said_until_a_repair(
    copied: Path, harm: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    harm(copied / LOG)
    number, [noted] = start(copied)
    assert number < NUMBER
    assert noted[18:].startswith("the write-ahead log was damaged or deleted while no daemon ran: what was stored ")
    assert noted.endswith(" is lost")
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == [noted[18:]]
    assert start(copied) == (number, [noted])
    with closing(Store(copied)) as store:
        assert store.take_repairs() == [noted]
    assert start(copied) == (number, [])


def test_nothing_is_said_of_a_log_that_is_whole_or_whose_index_is_gone(copied: Path, killed: Path) -> None:
    assert start(copied) == (NUMBER, [])
    for file in (FILE_NAME, LOG):  # its index is gone with the daemon that ended
        shutil.copy(killed / file, copied / file)
    assert start(copied) == (NUMBER, [])


def test_nothing_is_said_of_a_log_that_was_folded_or_begun_anew(folder: Path) -> None:
    with running(folder, CountingEmbedder()) as core:
        add(core, "Herons fish at dawn")
        upkeep.checkpoint(core.store)
        copy_as_killed(core, folder / "folded")
        add(core, "Storks nest on roofs")
        copy_as_killed(core, folder / "anew")
    shutil.copy(folder / "folded" / INDEX, folder / "anew" / INDEX)  # as a loss of power may leave it
    (folder / "folded" / LOG).unlink()
    assert start(folder / "folded") == (1, [])
    assert start(folder / "anew") == (2, [])


def test_a_repair_at_the_start_is_no_loss(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check, met = damage.check_start, list[bool]()

    def meet_damage_once(connection: apsw.Connection) -> None:
        check(connection)
        if not met:
            met.append(True)
            raise apsw.CorruptError

    monkeypatch.setattr(damage, "check_start", meet_damage_once)
    assert start(copied) == (NUMBER, [])
    assert met


def test_doctor_leaves_the_index_by_which_the_next_daemon_sees_a_loss(copied: Path) -> None:
    break_middle(copied / LOG)
    before = (copied / INDEX).read_bytes()
    assert examine.read_facts(copied / FILE_NAME, check=True).memories < NUMBER
    assert (copied / INDEX).read_bytes() == before
    assert len(start(copied)[1]) == 1

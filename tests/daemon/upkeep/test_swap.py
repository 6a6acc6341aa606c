"""Another database in place of the present one: whole or not at all, whatever the moment of a crash."""

import os
import shutil
from pathlib import Path

import apsw
import pytest

from memoryd.daemon.store.store import FILE_NAME, Store
from memoryd.daemon.upkeep import swap

NOW = 1_800_000_000.0


def make(folder: Path, word: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    store = Store(folder)
    store.set_setting("word", word).result()
    store.close()


def word_of(folder: Path) -> str | None:
    store = Store(folder)
    try:
        return store.read_setting("word")
    finally:
        store.close()


def make_ready(folder: Path, discard: bool = False) -> None:
    make(swap.begin(folder), "new")
    swap.mark_ready(folder, "restore", discard)
    for path in (folder / swap.NEXT, folder / FILE_NAME):
        if path.exists():
            os.utime(path, (NOW, NOW))


def test_what_is_ready_is_taken_up_and_the_former_is_kept_with_a_date(folder: Path) -> None:
    make(folder, "old")
    assert swap.take_up(folder, NOW) is None
    make_ready(folder)
    assert word_of(folder) == "old"
    kept = swap.take_up(folder, NOW)
    assert kept == folder / "before-restore-20270115T080000Z"
    assert (word_of(folder), word_of(kept)) == ("new", "old")
    assert swap.take_up(folder, NOW) is None


def test_a_database_that_was_written_to_long_after_stays(folder: Path) -> None:
    make(folder, "old")
    make_ready(folder)
    os.utime(folder / FILE_NAME, (NOW, NOW + swap.LIMIT_S + 1))
    assert swap.take_up(folder, NOW + swap.LIMIT_S + 1) is None
    assert (word_of(folder), (folder / swap.NEXT).exists()) == ("old", False)


def test_what_was_made_ready_is_taken_up_however_much_later(folder: Path) -> None:
    make(folder, "old")
    make_ready(folder)
    assert swap.take_up(folder, NOW + 400 * 86_400) is not None
    assert word_of(folder) == "new"


def test_the_log_of_a_killed_daemon_goes_with_the_former_database(folder: Path) -> None:
    make(folder / "data", "old")
    writer = apsw.Connection(str(folder / "data" / FILE_NAME))
    writer.pragma("journal_mode", "wal")
    writer.execute("UPDATE settings SET value = 'older' WHERE name = 'word'")
    killed = folder / "killed"
    shutil.copytree(folder / "data", killed)  # as it lies on the disk at that moment
    writer.close()
    assert (killed / f"{FILE_NAME}-wal").stat().st_size
    make_ready(killed)
    kept = swap.take_up(killed, NOW)
    assert kept is not None
    assert (word_of(killed), word_of(kept)) == ("new", "older")


def test_a_former_database_is_not_kept_when_it_is_not_wanted(folder: Path) -> None:
    make(folder, "old")
    make_ready(folder, discard=True)
    assert swap.take_up(folder, NOW) is None
    assert word_of(folder) == "new"
    assert [name for name in os.listdir(folder) if name.startswith(("before", "next"))] == []


def test_two_exchanges_in_one_second_keep_both(folder: Path) -> None:
    make(folder, "old")
    make_ready(folder)
    first = swap.take_up(folder, NOW)
    make_ready(folder)
    second = swap.take_up(folder, NOW)
    assert first is not None
    assert second is not None
    assert (word_of(first), word_of(second)) == ("old", "new")


@pytest.mark.parametrize("step", ["link", "rename", "replace"])
def test_a_crash_on_the_way_is_made_good_by_the_next_start(
    folder: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    make(folder, "old")
    (folder / f"{FILE_NAME}-journal").write_bytes(b"")
    make_ready(folder)

    class PowerFailure(BaseException):
        pass

    def fail(*_: object) -> None:
        raise PowerFailure

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", fail) if step == "link" else patch.setattr(Path, step, fail)
        with pytest.raises(PowerFailure):
            swap.take_up(folder, NOW)
    swap.take_up(folder, NOW + 1)
    assert word_of(folder) == "new"
    kept = [path for path in folder.glob("before-*") if (path / FILE_NAME).exists()]
    assert "old" in [word_of(path) for path in kept]


def test_what_was_not_finished_is_not_taken_up(folder: Path) -> None:
    make(folder, "old")
    make(swap.begin(folder), "half")
    assert swap.take_up(folder, NOW) is None
    make_ready(folder)
    swap.cancel(folder)
    assert swap.take_up(folder, NOW) is None
    assert word_of(folder) == "old"

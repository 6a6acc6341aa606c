"""Damage: a broken full-text index is met, told, mended; the daemon serves what it can meanwhile."""

import threading
from pathlib import Path
from typing import Any

import apsw
import pytest

from memoryd.client.errors import Busy, StorageFailed
from memoryd.daemon.core.core import Core
from workbench import CountingEmbedder, add, found, running, search, wait_until


def damage(folder: Path) -> None:
    """Break the blocks of the full-text index, as a failing disk would."""
    connection = apsw.Connection(str(folder / "data" / "memoryd.sqlite"))
    connection.set_busy_timeout(30_000)
    connection.execute("UPDATE memories_fts_data SET block = x'0000' WHERE id > 10")
    connection.close()


def test_an_index_damaged_while_the_daemon_was_down_is_found_at_start_and_rebuilt(folder: Path) -> None:
    with running(folder, CountingEmbedder()) as core:
        for number in range(30):
            add(core, f"Note {number} about herons")
    damage(folder)
    with running(folder, CountingEmbedder()) as core:
        wait_until(lambda: core.store.find_problems() == [])
        assert search(core, "note 7").degraded == []
        assert found(core, "note 7")[0] == "Note 7 about herons"


def test_a_search_that_meets_damage_answers_by_meaning_says_so_and_has_it_mended(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(folder, CountingEmbedder()) as core:
        rebuild, rebuilds = core.store.rebuild, list[Any]()
        monkeypatch.setattr(core.store, "rebuild", lambda: rebuilds.append(rebuild()) or rebuilds[-1])
        for number in range(30):
            add(core, f"Note {number} about herons")
        hold, held = threading.Event(), threading.Event()

        def busy(transaction: Any) -> None:
            held.set()
            hold.wait(30)

        damage(folder)
        core.store.write(busy)
        held.wait(30)
        for _ in range(3):
            hits = search(core, "note 7 about herons")
            assert hits.degraded == ["fulltext"]
            assert hits[0].content == "Note 7 about herons"
        assert len(rebuilds) == 1  # not three
        hold.set()
        wait_until(lambda: search(core, "note 7 about herons").degraded == [])
        assert core.store.find_problems() == []
        assert search(core, "note 7 about herons")[0].bm25 is not None


def test_a_write_that_meets_damage_has_it_mended_and_succeeds_when_it_is_tried_again(core: Core) -> None:
    for number in range(30):
        add(core, f"Note {number} about herons")
    damage(core.folder.parent)

    def written() -> bool:
        try:
            add(core, "Storks nest")
        except StorageFailed:
            return False
        return True

    wait_until(written)
    wait_until(lambda: core.store.find_problems() == [])
    assert found(core, "storks")[0] == "Storks nest"


def test_a_mending_that_finds_the_queue_full_is_tried_again_later(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    add(core, "Herons fish")

    def full() -> Any:
        raise Busy("The write queue is full.")

    with monkeypatch.context() as patched:
        patched.setattr(core.store, "rebuild", full)
        core.store.repair_soon()
    damage(core.folder.parent)
    core.store.repair_soon()
    wait_until(lambda: core.store.find_problems() == [])


def test_a_missing_and_a_surplus_entry_are_found_by_the_check_and_mended(core: Core) -> None:
    add(core, "Herons fish")
    core.store.write(
        lambda transaction: transaction.connection.execute(
            "INSERT INTO memories_fts (rowid, content, metadata, neighbours) VALUES (99, 'ghost', '', '')"
        )
    ).result()
    assert len(core.store.find_problems()) == 1
    core.store.rebuild().result()
    assert core.store.find_problems() == []
    assert search(core, "ghost")[0].bm25 is None

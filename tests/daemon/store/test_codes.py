"""Codes of the vector index kept on disk while no daemon runs: used if they are of the database that is there."""

import operator
import os
from pathlib import Path
from typing import Any

import apsw
import pytest

from memoryd.daemon.core import core as core_module
from memoryd.daemon.core.core import Core
from memoryd.daemon.store import vectors
from workbench import CountingEmbedder, add, delete, disk_and_memory, found, running, wait_until

TEXTS = [f"Note {number} about herons" for number in range(30)]


@pytest.fixture
def kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a database whose daemon has ended, and its codes."""
    monkeypatch.setattr(core_module, "_KEPT_FROM", 1)
    with running(folder, CountingEmbedder()) as core:
        for text in TEXTS:
            add(core, text)
        assert not (folder / "data" / "memoryd.codes").exists()
    return folder


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The reads of all vectors."""
    counted: list[int] = []
    read_all = vectors.read_all

    def count(connection: apsw.Connection, model: int) -> Any:
        counted.append(model)
        return read_all(connection, model)

    monkeypatch.setattr(vectors, "read_all", count)
    return counted


def check(core: Core) -> None:
    stored, held = disk_and_memory(core)
    assert stored == held
    assert found(core, TEXTS[7], limit=1) == [TEXTS[7]]


def test_a_start_takes_up_what_the_former_daemon_kept(kept: Path, scans: list[int]) -> None:
    scans.clear()
    assert (kept / "data" / "memoryd.codes").stat().st_mode & 0o777 == 0o600
    with running(kept, CountingEmbedder()) as core:
        assert not (kept / "data" / "memoryd.codes").exists()
        check(core)
        assert scans == [1]  # by the check itself
        delete(core, add(core, "deleted soon").id)
    with running(kept, CountingEmbedder()) as core:
        check(core)
        assert len(disk_and_memory(core)[1]) == 30


def test_what_is_written_before_the_model_is_there_is_caught_up_with(kept: Path) -> None:
    ready = False

    def load(name: str, where: Path) -> Any:
        wait_until(lambda: ready)
        return CountingEmbedder()

    with running(kept, load, ready=False) as core:
        first = found(core, "note 3 herons", limit=30)
        assert first
        with core.store.reading() as connection:
            [(gone,)] = connection.execute("SELECT id FROM memories WHERE content = ?", (TEXTS[3],)).fetchall()
        delete(core, gone)
        add(core, "Written before the model was there")
        ready = True
        wait_until(lambda: core.embedding.active is not None and core.embedding.count_pending() == 0)
        wait_until(lambda: operator.eq(*disk_and_memory(core)))  # what is added just now is indexed after its commit
        check(core)
        assert len(disk_and_memory(core)[1]) == 30


@pytest.mark.parametrize("change", ["touched", "logged", "damaged", "cut", "none"])
def test_codes_of_another_database_or_damaged_ones_are_not_used(kept: Path, scans: list[int], change: str) -> None:
    place, database = kept / "data" / "memoryd.codes", kept / "data" / "memoryd.sqlite"
    if change == "touched":
        os.utime(database, ns=(1, 1))
    elif change == "logged":
        (kept / "data" / "memoryd.sqlite-wal").touch()
    elif change == "damaged":
        data = bytearray(place.read_bytes())
        data[len(data) // 2] ^= 255
        place.write_bytes(data)
    elif change == "cut":
        place.write_bytes(place.read_bytes()[:1000])
    else:
        place.unlink()
    scans.clear()
    with running(kept, CountingEmbedder()) as core:
        assert scans == [1]
        check(core)
    assert place.exists()

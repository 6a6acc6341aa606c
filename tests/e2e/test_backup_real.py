"""Copies of the real daemon's database: after a crash they bring all back, and under load they hold one moment."""

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from memoryd.client import Client
from memoryd.client.programs.memctl.running import run
from memoryd.client.protocol import Record
from memoryd.daemon.store.store import Store
from memoryd.daemon.upkeep.rescue import restore
from workbench import Process

WRITERS = 8


def everything(client: Client) -> list[Record]:
    found: list[Record] = []
    after: str | None = ""
    while after is not None:
        part = client.export_memories(after, limit=1000)
        found += part.records
        after = part.next
    return found


def memctl(process: Process, *words: str) -> int:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("MEMORYD_SOCKET", "MEMORYD_DATA_DIR", "MEMORYD_CONFIG"):
            patch.setenv(name, process.environment[name])
        return run(words)


@pytest.mark.slow
def test_a_copy_brings_back_all_after_a_crash(process: Process, folder: Path, capfd: Any) -> None:
    with process.client() as client:
        for number in range(200):
            client.add(f"Crane {number}", dedup=False, metadata={"n": number})
        client.delete(everything(client)[0].id)
        client.update(everything(client)[1].id, content="Herons fish at dawn", pinned=True)
        copy = client.backup(folder / "copy.sqlite")
        before, operations = everything(client), client.operations(limit=500).operations
        client.add("After the copy")
    process.kill()
    assert memctl(process, "restore", copy.path) == 0
    process.start()
    with process.client() as client:
        assert everything(client) == before
        assert client.operations(limit=500).operations == operations
        assert client.verify().problems == []
        assert client.search("herons dawn", limit=1)[0].content == "Herons fish at dawn"
        client.undo(operations[0].id)
        assert everything(client) != before
    capfd.readouterr()


@pytest.mark.slow
def test_a_copy_under_load_holds_every_write_that_was_acknowledged_before_it(process: Process, folder: Path) -> None:
    acknowledged: list[set[str]] = [set() for _ in range(WRITERS)]
    stop = threading.Event()

    def write(number: int) -> None:
        with process.client(f"writer/{number}") as client:
            n = 0
            while not stop.is_set():
                acknowledged[number].add(client.add(f"Crane {number} {n} {os.urandom(8).hex()}", dedup=False).id)
                n += 1

    threads = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    try:
        with process.client() as client:
            for turn in range(5):
                while min(map(len, acknowledged)) < 10 * (turn + 1):
                    stop.wait(0.01)
                known = set().union(*acknowledged)
                made = client.backup(folder / f"copy{turn}.sqlite")
                assert _held(Path(made.path), folder / f"check{turn}") >= known
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    with process.client() as client:
        assert client.verify().problems == []


def _held(path: Path, folder: Path) -> set[str]:
    """Return the ids that a copy holds, which is checked as `restore` and `verify` do."""
    folder.mkdir()
    restore(path, folder)
    store = Store(folder)
    try:
        assert store.find_problems() == []
        with store.reading() as connection:
            return {str(id) for (id,) in connection.execute("SELECT id FROM memories")}
    finally:
        store.close()

"""`kill -9` of the real daemon while clients write into files: each is whole, no acknowledged note is lost."""

import random
import threading
import time
from pathlib import Path

import pytest

from memoryd.client import MemorydError
from workbench import Process, wait_until

LIVES = 8
WRITERS = 3
FILES = ("a", "b", "MEMORY")


class Ledger:
    """Which notes there must be, which there may be."""

    def __init__(self) -> None:
        self.there: dict[str, str] = {}  # note → id of a chunk that held it
        self.open: set[str] = set()  # begun, and not acknowledged
        self.acknowledged = 0
        self.forgotten: set[str] = set()  # acknowledged


def work(process: Process, ledger: Ledger, name: str, dice: random.Random) -> None:
    """Remember and forget notes until the daemon dies."""
    number = 0
    try:
        with process.client(timeout_s=10) as client:
            while True:
                number += 1
                if ledger.there and dice.random() < 0.3:
                    note = dice.choice(list(ledger.there))
                    ledger.open.add(note)
                    hits = client.search(note, limit=5, tier="documents")
                    [id] = [hit.id for hit in hits if f"{note}." in hit.content][:1] or [""]
                    try:
                        if id:
                            client.forget(id, text=f"{note}.")
                            ledger.there.pop(note)
                            ledger.forgotten.add(note)
                    except MemorydError as error:
                        if error.code not in ("conflict", "not_found"):
                            raise
                else:
                    note = f"note{name}x{len(ledger.there)}y{number}z{dice.getrandbits(40)}"
                    ledger.open.add(note)
                    told = client.remember(f"{note}.", "notes", file=dice.choice(FILES))
                    ledger.there[note] = told.id or ""
                ledger.open.discard(note)
                ledger.acknowledged += 1
    except MemorydError as error:
        if error.code not in ("unavailable", "timeout", "storage_failed"):
            raise


def lines(root: Path) -> list[str]:
    return [line for path in sorted(root.rglob("*.md")) for line in path.read_text().splitlines()]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_files_are_whole_and_notes_are_kept_whenever_the_daemon_is_killed(folder: Path, process: Process) -> None:
    root, ledgers = folder / "notes", [Ledger() for _ in range(WRITERS)]
    root.mkdir()
    with process.client() as client:
        client.add_workspace(root)
    for life in range(LIVES):
        dice = random.Random(life)
        threads = [
            threading.Thread(target=work, args=(process, ledger, f"{life}w{n}", random.Random(f"{life} {n}")))
            for n, ledger in enumerate(ledgers)
        ]
        for thread in threads:
            thread.start()
        time.sleep(0.3 + dice.random())  # not to wait for anything: at any moment of a write
        process.kill()
        for thread in threads:
            thread.join()
        _check(root, ledgers)
        process.start()
        with process.client() as client:
            wait_until(lambda: client.workspaces("notes").workspaces[0].differing == [])
            assert client.index_workspace("notes", force=True).workspaces[0].chunks_new == 0
    assert sum(ledger.acknowledged for ledger in ledgers) > 2 * LIVES  # however busy the machine is


def _check(root: Path, ledgers: list[Ledger]) -> None:
    found = lines(root)
    assert all(line.startswith("- note") and line.endswith(".") for line in found), found
    notes = [line[2:-1] for line in found]
    assert len(notes) == len(set(notes))
    for ledger in ledgers:
        assert [note for note in ledger.there if note not in notes and note not in ledger.open] == []
        for note in ledger.open:  # either way is right; what it came to is known now
            ledger.there.pop(note, None)
            if note in notes:
                ledger.there[note] = ""
        ledger.open.clear()
    known = {note for ledger in ledgers for note in ledger.there}
    came_back = {note for ledger in ledgers for note in ledger.forgotten} & set(notes)
    assert came_back == set()
    assert set(notes) == known

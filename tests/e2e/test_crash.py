"""`kill -9` of the real daemon at random moments while several clients write: no acknowledged write is ever lost."""

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import apsw
import pytest
from killing import kill_amid, open_snapshot

from configs import NO_MODEL
from memoryd.client import Client, MemorydError
from memoryd.client.protocol import NewMemory, Verify
from workbench import wait_until

WRITERS = 3
BIRDS = ("heron", "egret", "stork", "crane", "ibis", "bittern", "spoonbill", "avocet", "plover", "dunlin", "snipe")


class Ledger:
    """What each memory may hold: one content once a write was acknowledged, several while one is under way."""

    def __init__(self) -> None:
        self.allowed: dict[str, set[str | None]] = {}
        self.acknowledged = 0
        self._lock = threading.Lock()

    def begin(self, id: str, content: str | None) -> None:
        with self._lock:
            self.allowed.setdefault(id, {None}).add(content)

    def end(self, id: str, content: str | None) -> None:
        with self._lock:
            self.allowed[id] = {content}
            self.acknowledged += 1

    def settle(self, present: dict[str, str]) -> list[str]:
        """Compare with what is stored; what was under way is known from now on. Return what is wrong."""
        wrong = [
            f"{id} holds {present.get(id)!r}, not one of {allowed}"
            for id, allowed in self.allowed.items()
            if present.get(id) not in allowed
        ]
        wrong += [f"{id} was never written" for id in present.keys() - self.allowed.keys()]
        self.allowed = {id: {present.get(id)} for id in self.allowed}
        return wrong


def write(client: Client, ledger: Ledger, dice: random.Random) -> None:
    """Make one random write and note it before and after."""
    known = [id for id, allowed in list(ledger.allowed.items()) if id[0] == client.namespace[-1] and allowed != {None}]

    def content() -> str:
        return f"{' '.join(dice.choices(BIRDS, k=6))} {dice.getrandbits(48)}"

    def new() -> str:
        return client.namespace[-1] + f"{dice.getrandbits(124):031x}"

    action = dice.choice(["add", "add", "add_many", "update", "delete"]) if known else "add"
    changes: dict[str, str | None]
    if action == "add":
        changes = {new(): content()}
    elif action == "add_many":
        changes = {new(): content() for _ in range(dice.randrange(1, 8))}
    elif action == "update":
        changes = {dice.choice(known): content()}
    else:
        changes = dict.fromkeys(dice.sample(known, min(2, len(known))))
    for id, text in changes.items():
        ledger.begin(id, text)
    [(first, text), *_] = changes.items()
    if action == "update":
        client.update(first, content=text)
    elif action == "delete":
        client.delete(*changes)
    else:
        memories = [NewMemory(content=str(text), id=id) for id, text in changes.items()]
        client.add_many(memories, dedup=dice.random() < 0.5)
    for id, text in changes.items():
        ledger.end(id, text)


def write_until_killed(process: Any, ledger: Ledger, name: str, seed: str) -> None:
    dice = random.Random(seed)
    try:
        with process.client(f"birds/{name}", timeout_s=20) as client:
            while True:
                write(client, ledger, dice)
    except (MemorydError, OSError):
        return


def stored(process: Any) -> dict[str, str]:
    with open_snapshot(process) as connection:
        return dict(connection.execute("SELECT id, content FROM memories").fetchall())


def kill_while_starting(process: Any, after_s: float) -> None:
    with (process.folder / "log").open("ab") as log:
        command = [sys.executable, "-m", "memoryd.daemon"]
        child = subprocess.Popen(command, env=process.environment, stdout=log, stderr=log)
    time.sleep(after_s)
    child.kill()
    child.wait()


def live_and_die(process: Any, ledger: Ledger, dice: random.Random, life: int) -> None:
    """Start, compare with the ledger, let several clients write, kill."""
    process.start()
    with process.client() as client:
        assert client.call(Verify()).problems == []
    assert ledger.settle(stored(process)) == []
    aim = ledger.acknowledged + dice.randrange(1, 60)
    writers = [
        threading.Thread(target=write_until_killed, args=(process, ledger, name, f"{life} {name}"))
        for name in "abc"[:WRITERS]
    ]

    def have_done_enough() -> bool:
        return ledger.acknowledged >= aim or not any(writer.is_alive() for writer in writers)

    kill_amid(process, writers, have_done_enough, dice, within_s=0.01)


@pytest.fixture
def process(make_process: Callable[..., Any], environment: dict[str, str]) -> Any:
    return make_process("" if environment else NO_MODEL, environment)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("environment", "lives"), [("words", 30), ("model", 20)], indirect=["environment"])
def test_no_acknowledged_write_is_lost_however_often_the_daemon_is_killed(
    process: Any,
    environment: dict[str, str],
    lives: int,
) -> None:
    dice = random.Random(lives)
    ledger = Ledger()
    for life in range(lives):
        if life % 5 == 4:
            kill_while_starting(process, dice.random() * 0.8)
        live_and_die(process, ledger, dice, life)
    process.start()
    with process.client() as client:
        assert ledger.settle(stored(process)) == []
        assert client.call(Verify()).problems == []
        if environment:
            wait_until(lambda: client.status().model.state == "ready" and client.status().pending_embeddings == 0, 60)
            alive = next(iter(stored(process).values()))
            nearest = max(hit.similarity or 0.0 for hit in client.search(alive))  # another may have more of its words
            assert nearest == pytest.approx(1.0, abs=1e-3)
    assert process.stop() == 0
    assert ledger.acknowledged > 5 * lives
    assert not (process.data / "memoryd.sqlite-wal").exists()
    connection = apsw.Connection(str(process.data / "memoryd.sqlite"))
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.execute("INSERT INTO memories_fts (memories_fts, rank) VALUES ('integrity-check', 1)")
    connection.close()
    assert os.stat(process.data / "memoryd.sqlite").st_mode & 0o077 == 0

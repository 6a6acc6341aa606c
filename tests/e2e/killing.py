"""What tests that kill the daemon share: clients that work until it dies, what it acknowledged, a look at its file."""

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import apsw

from memoryd.client.protocol import NewTurn
from workbench import wait_until

LIMIT_S = 30


class Account:
    """The turns that were acknowledged: id → (namespace, content)."""

    def __init__(self) -> None:
        self.accepted: dict[str, tuple[str, str]] = {}
        self.calls = 0
        self._lock = threading.Lock()

    def note(self, namespace: str, ids: list[str], said: list[NewTurn]) -> None:
        with self._lock:
            self.calls += 1
            self.accepted.update({id: (namespace, turn.content) for id, turn in zip(ids, said, strict=True)})


def kill_amid(
    process: Any,
    workers: Sequence[threading.Thread],
    have_done_enough: Callable[[], bool],
    dice: random.Random,
    within_s: float,
) -> None:
    """Let threads work on a daemon until they have done enough, kill it within a time, and see them end."""
    for worker in workers:
        worker.start()
    wait_until(have_done_enough)
    time.sleep(dice.random() * within_s)  # not to wait for anything: at any moment of what is under way
    process.kill()
    for worker in workers:
        worker.join(LIMIT_S)
        assert not worker.is_alive()


@contextmanager
def open_snapshot(process: Any) -> Iterator[apsw.Connection]:
    """Open one state of the daemon's database, to read only; a daemon that runs goes on meanwhile."""
    connection = apsw.Connection(str(process.data / "memoryd.sqlite"), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.pragma("query_only", True)
        connection.execute("BEGIN")
        yield connection
    finally:
        connection.close()

"""The pulse that systemd's watchdog hears: from the event loop, and only while the writer moves."""

import asyncio
import os
import socket
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from each import each
from memoryd.daemon.server import watchdog
from memoryd.daemon.store.store import Store
from waiting import wait_until


@pytest.fixture
def told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """What systemd hears."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as hearer:
        hearer.bind(str(folder / "notify"))
        hearer.settimeout(10)
        monkeypatch.setenv("NOTIFY_SOCKET", str(folder / "notify"))
        yield hearer


@each(
    ("limit", "pid", "expected"),
    [
        ("30000000", "own", 10.0),
        ("30000000", None, 10.0),
        ("30000000", "1", None),
        (None, "own", None),
        ("0", "own", None),
        ("soon", "own", None),
    ],
)
def test_the_interval_is_a_third_of_what_systemd_allows_this_process(
    monkeypatch: pytest.MonkeyPatch, limit: str | None, pid: str | None, expected: float | None
) -> None:
    for name, value in (("WATCHDOG_USEC", limit), ("WATCHDOG_PID", str(os.getpid()) if pid == "own" else pid)):
        monkeypatch.setenv(name, value) if value is not None else monkeypatch.delenv(name, raising=False)
    assert watchdog.read_interval_s() == expected


async def test_the_pulse_goes_on_while_the_writer_rests_and_while_it_works(told: socket.socket, store: Store) -> None:
    beating = asyncio.create_task(watchdog.pulse(0.001, store.writer.silence_s, limit_s=5))
    for _ in range(3):
        assert await asyncio.to_thread(told.recv, 64) == b"WATCHDOG=1"
        store.write(lambda transaction: time.sleep(0.01))
    beating.cancel()


async def test_a_writer_that_hangs_ends_the_pulse_although_the_loop_is_alive(
    told: socket.socket, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    gate = threading.Event()
    written = store.write(lambda transaction: gate.wait(30))
    await asyncio.to_thread(wait_until, lambda: store.writer.silence_s() > 0.05)
    beating = asyncio.create_task(watchdog.pulse(0.001, store.writer.silence_s, limit_s=0.05))
    told.setblocking(False)
    await asyncio.sleep(0.05)
    with pytest.raises(BlockingIOError):
        told.recv(64)
    assert caplog.text.count("the writer has not moved") == 1
    gate.set()
    assert written.result(10)
    told.settimeout(10)
    assert await asyncio.to_thread(told.recv, 64) == b"WATCHDOG=1"
    beating.cancel()


def test_a_long_statement_is_not_a_hang(store: Store) -> None:
    counting = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3000000) SELECT sum(i) FROM n"
    written = store.write(lambda transaction: transaction.connection.execute(counting).get)
    silences = [0.0]
    while not written.done():
        silences.append(store.writer.silence_s())
        time.sleep(0.001)
    assert sum(later < earlier for earlier, later in pairwise(silences)) > 3  # it got on with it in between
    wait_until(lambda: store.writer.silence_s() == 0.0)

"""Shared roots: what a place that is 30 ms away (there and back) costs a search, and what one that hangs costs.

Of two daemons with the same memories one has saved 500 decisions in a root, over ssh or in PostgreSQL, the other one
itself. They are asked in turn. A relay delays what goes to and from the place by 15 ms each way. `round trips`: how
many of 30 ms the median is above that of the daemon without a root; `late`: searches without the place's answer. The
place hangs by SIGSTOP.
"""

import json
import os
import queue
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "daemon" / "shared"))

import corpus
import psycopg
from harness import DIMENSIONS, NO_JOBS, Daemon, Report, median, running, spread, timed
from relay import Relay

from memoryd.client import Client
from memoryd.client.protocol import Add, AddToken, GetUnasked, NewMemory, Search
from memoryd.client.transport.postgres import rights, schema
from memoryd.models.catalog import DEFAULT
from postgres_server import PostgresServer
from sshd import Sshd

_DELAY_S = 0.015
_SAVED, _BLOCK = 500, 20


class DelayingRelay(Relay):
    """A relay that passes each block on after `delay_s`."""

    delay_s = 0.0

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        blocks: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
        sending = threading.Thread(target=self._send, args=(blocks, target), daemon=True)
        sending.start()
        with suppress(OSError):
            while data := source.recv(65536):
                blocks.put((time.monotonic() + self.delay_s, data))
        blocks.put((0.0, b""))
        sending.join()

    def _send(self, blocks: "queue.SimpleQueue[tuple[float, bytes]]", target: socket.socket) -> None:
        with suppress(OSError):
            while (block := blocks.get())[1]:
                time.sleep(max(0.0, block[0] - time.monotonic()))
                target.sendall(block[1])
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)


class Place(NamedTuple):
    """A place behind a relay: the settings that lead there, and what stops and continues its processes."""

    settings: dict[str, str]
    relay: DelayingRelay
    hang: Callable[[bool], None]

    def configure(self) -> str:
        """Return the section of the root."""
        return "\n".join(
            ["[shared.acme]", *(f"{name} = {json.dumps(text)}" for name, text in self.settings.items()), ""]
        )


def main() -> None:
    """Measure both kinds of places."""
    report = Report(__doc__)
    size, rounds = (1_000, 4) if report.quick else (10_000, 12)
    for kind, opened in (("ssh", _over_ssh), ("PostgreSQL", _in_postgres)):
        with (
            _folder() as folder,
            opened(folder) as place,
            running(size) as alone,
            running(size, place.configure() + NO_JOBS) as joined,
        ):
            _save(alone, "")
            _save(joined, "acme")
            report.table(f"{kind}: searches", _search(place, alone, joined, size, rounds))
            place.relay.delay_s = 0.0
            searches, starts = _hang(place, alone, joined, size, rounds)
            report.table(f"{kind}: searches while the place hangs", searches)
            report.table(f"{kind}: starts while the place hangs, median ms", starts)
    report.close()


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="mb-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _over_ssh(folder: Path) -> Iterator[Place]:
    server = Sshd(folder / "sshd")
    relay = DelayingRelay(server.port)
    server.lead_through(relay.port)
    os.environ["PATH"] = f"{server.programs}:{os.environ['PATH']}"
    try:
        with running() as home:
            with home.client() as owner:
                owner.call(AddToken(name="acme", namespace="acme"))
            program = f"MEMORYD_SOCKET={home.socket} {sys.executable} -m memoryd.client.programs.memctl --no-autostart"
            settings = {"server": "ssh://place", "memctl": program}
            yield Place(settings, relay, lambda hangs: os.kill(home.pid, signal.SIGSTOP if hangs else signal.SIGCONT))
    finally:
        relay.close()
        server.stop()


@contextmanager
def _in_postgres(folder: Path) -> Iterator[Place]:
    server = PostgresServer(folder / "pg")
    relay = DelayingRelay(server.port)
    try:
        server.make_database("team", "ada")
        with psycopg.connect(server.url()) as connection:
            schema.create(connection, "acme", DEFAULT, DIMENSIONS, [])
            rights.grant(connection, "acme", "ada", writes=True)
        settings = {"server": f"postgresql://ada@127.0.0.1:{relay.port}/team?sslmode=disable"}
        yield Place(settings, relay, server.hang)
    finally:
        relay.close()
        server.stop()


def _save(daemon: Daemon, root: str) -> None:
    """Save what the root holds, in the root or where there is none."""
    with daemon.client("acme/api") as client:
        for number in range(_SAVED):
            memory = NewMemory(content=corpus.memory(30_000_000 + number), type="decision")
            assert client.call(Add(memory=memory, dedup=False)).shared == root


def _search(place: Place, alone: Daemon, joined: Daemon, size: int, rounds: int) -> list[dict[str, Any]]:
    """Ask all in turn; a block of questions to one of them, so that lines stay open and caches warm."""
    questions = (corpus.question(number, size) for number in count())
    ways = (("no root", alone, 0.0), ("on this machine", joined, 0.0), ("30 ms away", joined, _DELAY_S))
    times: dict[str, list[float]] = {name: [] for name, *_ in ways}
    late = dict.fromkeys(times, 0)
    with alone.client("acme/api") as here, joined.client("acme/api") as there:
        for _ in range(rounds):
            for name, daemon, delay_s in ways:
                place.relay.delay_s = delay_s
                client = here if daemon is alone else there
                found = [_time_search(client, next(questions)) for _ in range(_BLOCK + 2)][2:]
                times[name] += [took_ms for took_ms, _ in found]
                late[name] += sum(bool(degraded) for _, degraded in found)
    local = median(times["no root"])
    return [
        {"place": name, **spread(taken), "late": late[name], "round trips": (median(taken) - local) / (2000 * _DELAY_S)}
        for name, taken in times.items()
    ]


def _time_search(client: Client, question: str, deadline_ms: int | None = None) -> tuple[float, list[str]]:
    began = time.perf_counter()
    found = client.call(Search(query=question, namespace="acme/api", deadline_ms=deadline_ms))
    return (time.perf_counter() - began) * 1000, found.degraded


def _hang(
    place: Place, alone: Daemon, joined: Daemon, size: int, rounds: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return rows of searches and starts while the place hangs; starts alternate between the daemons."""
    searches: list[dict[str, Any]] = []
    with alone.client("acme/api") as here, joined.client("acme/api") as there:
        place.hang(True)
        try:
            for deadline_ms in (150, None):
                found = [_time_search(there, corpus.question(number, size), deadline_ms) for number in range(3)]
                assert all("shared:acme" in degraded for _, degraded in found), found
                shown = ", ".join(f"{took_ms:.0f}" for took_ms, _ in found)
                searches.append({"deadline ms": deadline_ms or "none", "three in turn, ms": shown})
            begun = [(timed(partial(_begin, here)), timed(partial(_begin, there))) for _ in range(5 * rounds)]
            launched = [(_launch(alone), _launch(joined)) for _ in range(rounds)]
        finally:
            place.hang(False)
    return searches, [_pair("of a session", begun), _pair("of the daemon, to its first answer", launched)]


def _begin(client: Client) -> None:
    client.call(GetUnasked(namespace="acme/api"))


def _launch(daemon: Daemon) -> float:
    daemon.stop()
    began = time.perf_counter()
    daemon.launch()
    while True:
        with suppress(Exception), daemon.client() as client:
            client.status()
            return (time.perf_counter() - began) * 1000
        time.sleep(0.005)


def _pair(what: str, pairs: list[tuple[float, float]]) -> dict[str, Any]:
    alone, joined = zip(*pairs, strict=True)
    difference = median([with_root - without for without, with_root in pairs])
    return {"start": what, "without a root": median(alone), "with it": median(joined), "difference": difference}


if __name__ == "__main__":
    main()

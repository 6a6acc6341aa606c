"""Writers beside a bulk call: how long others' adds and searches wait while one client adds thousands in one call.

The store holds so many memories in one namespace, with synthetic vectors (random directions, no two alike), and every
text that is added has a synthetic vector in the cache: what is measured is the search for duplicates and the writing,
not the model. The bulk call looks for duplicates of each of its memories. Meanwhile one client adds and another one
searches (its question is embedded by the model), each with a pause of 10 ms after a reply.
"""

import multiprocessing
import shutil
import time
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import corpus
from harness import Daemon, Report, database, give_vectors, percentile, prepared, synthetic, timed

from memoryd.client import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_BULK, _OTHERS = 30_000_000, 40_000_000  # numbers of texts that no database holds
_KNOWN = 20_000  # texts of the other client that have a vector
_PAUSE_S = 0.01
_IDLE_S = 5.0


def main() -> None:
    """Measure every size."""
    report = Report(__doc__)
    for size in [size for size in report.sizes() if size >= 10_000]:
        bulk = min(10_000, size // 10) if report.quick else 10_000
        with _running(size, bulk) as daemon:
            rows = [_row("nobody else", *_waits(daemon, partial(time.sleep, _IDLE_S)))]
            began = time.monotonic()
            rows.append(_row(f"add_many of {bulk:,}", *_waits(daemon, partial(_add_many, daemon, bulk))))
            took_s = time.monotonic() - began
            report.table(f"Others beside a bulk call, {size:,} memories", rows)
            report.note(f"The bulk call took {took_s:.1f} s, {1000 * took_s / bulk:.2f} ms per memory.")
    report.close()


@contextmanager
def _running(size: int, bulk: int) -> "Iterator[Daemon]":
    with prepared() as daemon:
        shutil.copytree(database(size, "plain"), daemon.data)
        give_vectors(daemon.data, synthetic(_BULK, bulk), _BULK)
        give_vectors(daemon.data, synthetic(_OTHERS, _KNOWN), _OTHERS)
        yield daemon.start()


def _add_many(daemon: Daemon, bulk: int) -> None:
    with daemon.client() as client:
        client.add_many({"content": corpus.memory(_BULK + number)} for number in range(bulk))


def _waits(daemon: Daemon, work: "Callable[[], None]") -> tuple[list[float], list[float]]:
    """Return the milliseconds of each add and each search of two other processes while `work` continues."""
    context = multiprocessing.get_context("fork")
    stop, found = context.Event(), context.Queue()
    children = [
        context.Process(target=_ask, args=(daemon.socket, stop, found, kind), daemon=True) for kind in ("add", "search")
    ]
    for child in children:
        child.start()
    try:
        time.sleep(0.5)
        work()
    finally:
        stop.set()
    waits = dict(found.get(timeout=600) for _ in children)
    for child in children:
        child.join(30)
    return waits["add"], waits["search"]


def _ask(path: Path, stop: Any, found: Any, kind: str) -> None:
    first = _OTHERS + int(time.time()) % 100 * 100  # texts of another round have other numbers
    times: list[float] = []
    with Client(socket=path, autostart=False, timeout_s=600) as client:
        ask = {
            "add": lambda n: client.add(corpus.memory(n)),
            "search": lambda n: client.search(corpus.question(n, 1000)),
        }
        for number in count(first):
            if stop.is_set():
                break
            times.append(timed(lambda number=number: ask[kind](number)))
            time.sleep(_PAUSE_S)
    found.put((kind, times))


def _row(meanwhile: str, adds: list[float], searches: list[float]) -> dict[str, Any]:
    row: dict[str, Any] = {"meanwhile": meanwhile}
    for kind, times in (("add", adds), ("search", searches)):
        row |= {
            f"{kind} p50 ms": percentile(times, 50),
            f"{kind} p99 ms": percentile(times, 99),
            f"{kind} worst ms": max(times, default=0.0),
            f"{kind}: count": len(times),
        }
    return row


if __name__ == "__main__":
    main()

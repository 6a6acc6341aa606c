"""Adding: one at a time, from sixteen processes at once, and in bulk; with and without a model.

Every add is on disk when it is acknowledged (synchronous=FULL). Concurrent writers share a transaction, so their rate
is bounded by the disk's sync time and by the embedding, not by their number. `vector known` means that the text was
embedded before, which leaves the price of the store alone. Each text is new to the daemon.
"""

import os
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import corpus
from harness import (
    CLIENTS,
    NO_MODEL,
    Daemon,
    Report,
    give_vectors,
    in_processes,
    median,
    prepared,
    repeated,
    running,
    spread,
    timed,
    vectors,
)

from memoryd.client import Client

_NEW = 10_000_000  # texts from this number on are in no database
_KNOWN = 3_000


def main() -> None:
    """Measure each way of adding."""
    report = Report(__doc__)
    rounds, seconds, bulk = (150, 2.0, 500) if report.quick else (400, 5.0, 2_000)
    numbers = count(_NEW)
    single, together, many = [], [], []
    for size in (0, 10_000):
        for name, config in (("default", ""), ("none", NO_MODEL)):
            with running(size, config) as daemon:
                place = {"memories": size, "model": name}
                single.append({**place, **_single(daemon, numbers, rounds)})
                together.append({**place, **_together(daemon, seconds)})
                many.append({**place, "duplicate check": "yes", **_bulk(daemon, numbers, bulk)})
                many.append({**place, "duplicate check": "no", **_bulk(daemon, numbers, bulk, dedup=False)})
                report.note(f"A 4 KB write and sync beside that database takes {_sync_ms(daemon.folder):.2f} ms.")
    single.append({"memories": 0, "model": "default, vector known", **_known(rounds)})
    report.table("add, one client", single)
    report.table(f"add, {CLIENTS} client processes", together)
    report.table("add_many", many)
    report.close()


def _texts(numbers: Iterator[int], wanted: int) -> list[str]:
    return [corpus.memory(next(numbers)) for _ in range(wanted)]


def _single(daemon: Daemon, numbers: Iterator[int], rounds: int) -> dict[str, float]:
    with daemon.client() as client:
        times = repeated(client.add, _texts(numbers, rounds))
    return {**spread(times), "per s": 1000 * len(times) / sum(times)}


def _together(daemon: Daemon, seconds: float) -> dict[str, float]:
    arguments = [(daemon.socket, _NEW * (client + 2)) for client in range(CLIENTS)]
    found = in_processes(_adds, arguments, seconds)
    return {**spread([took for times in found for took in times]), "per s": sum(map(len, found)) / seconds}


def _adds(deadline: float, path: Path, first: int) -> list[float]:
    times: list[float] = []
    with Client(socket=path, autostart=False) as client:
        for number in count(first):
            if time.monotonic() > deadline:
                break
            text = corpus.memory(number)
            times.append(timed(lambda text=text: client.add(text)))
    return times


def _bulk(daemon: Daemon, numbers: Iterator[int], wanted: int, **options: Any) -> dict[str, float]:
    items = [{"content": text} for text in _texts(numbers, wanted)]
    with daemon.client() as client:
        took_ms = timed(lambda: client.add_many(items, **options))
    return {"in one call": wanted, "ms per memory": took_ms / wanted, "per s": 1000 * wanted / took_ms}


def _known(rounds: int) -> dict[str, float]:
    with prepared() as daemon:
        daemon.start()
        daemon.stop()
        give_vectors(daemon.data, vectors(_KNOWN))
        daemon.start()
        with daemon.client() as client:
            times = repeated(client.add, [corpus.memory(number) for number in range(min(rounds, _KNOWN))])
    return {**spread(times), "per s": 1000 * len(times) / sum(times)}


def _sync_ms(folder: Path) -> float:
    with (folder / "sync").open("wb") as file:

        def write() -> None:
            file.write(bytes(4096))
            file.flush()
            os.fdatasync(file.fileno())

        return median([timed(write) for _ in range(50)])


if __name__ == "__main__":
    main()

"""Adding: one at a time, from sixteen processes at once, and in bulk; with and without a model.

Every add is on disk when it is acknowledged (synchronous=FULL). Concurrent writers share a transaction, so their rate
is bounded by the disk's sync time and by the embedding, not by their number. `vector known` means that the text was
embedded before, which leaves the price of the store alone. Each text is new to the daemon. `--sizes N,N` measures one
client's adds at these sizes alone, beside what embedding and a sync take there, and `add_many` of 100,000 memories
whose vectors are known.
"""

import os
import time
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import corpus
from harness import (
    CLIENTS,
    NO_MODEL,
    Daemon,
    Report,
    database,
    drawn,
    give_vectors,
    in_processes,
    median,
    model_dir,
    prepared,
    repeated,
    running,
    running_on,
    spread,
    timed,
    vectors,
)

from memoryd import models
from memoryd.client import Client
from memoryd.models.catalog import DEFAULT

_NEW = 10_000_000  # texts from this number on are in no database
_KNOWN = 3_000
_BULK = 12_000_000  # numbers of those that are added in bulk


def main() -> None:
    """Measure each way of adding."""
    report = Report(__doc__)
    if report.is_sized:
        _measure_sizes(report)
        return
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


def _measure_sizes(report: Report) -> None:
    rounds, wanted = (150, 10_000) if report.quick else (400, 100_000)
    single, many = [], []
    for size in report.sizes():
        with running_on(database(size, report.kind), partial(_give, wanted=wanted)) as daemon:
            single.append({"memories": size, **_single_beside_least(daemon, rounds)})
            for check, first in (("yes", _BULK), ("no", _BULK + wanted)):
                bulk = _bulk(daemon, count(first), wanted, dedup=check == "yes")
                many.append({"memories": size, "duplicate check": check, **bulk, "load": os.getloadavg()[0]})
    report.table("add, one client", single)
    report.table("add_many, vectors known", many)
    report.close()


def _single_beside_least(daemon: Daemon, rounds: int) -> dict[str, float]:
    """Return the times of adds, and of what each has to do at least: to embed and to sync."""
    embedder = models.load(DEFAULT, model_dir())
    before = daemon.cpu_ms()
    found = _single(daemon, count(_NEW), rounds)
    cost = {"processor ms": (daemon.cpu_ms() - before) / rounds, "load": os.getloadavg()[0]}
    embed_ms = median(repeated(lambda text: embedder.embed_texts([text]), _texts(count(_NEW + 500_000), rounds)))
    sync_ms = _sync_ms(daemon.folder)
    least = {"embed ms": embed_ms, "sync ms": sync_ms, "× embed + sync": found["p50 ms"] / (embed_ms + sync_ms)}
    return {**found, **least, **cost}


def _give(data: Path, wanted: int) -> None:
    for first in range(_BULK, _BULK + 2 * wanted, wanted):
        give_vectors(data, drawn(first, wanted), first)


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
    with Client("", socket=path, autostart=False) as client:
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

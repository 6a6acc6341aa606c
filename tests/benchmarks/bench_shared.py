"""The shared tier on a PostgreSQL server of its own: rows pushed and pulled a second, how soon another machine finds
what was added, what a shared namespace costs a local search.

The way to the server takes so many milliseconds there and back. The server waits for no disk, so its share is small;
both machines and the server share this machine's processors. Local searches are by words and synthetic vectors.
"""

import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
from harness import Report, percentile

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "daemon" / "shared")]

from machines import Machine  # noqa: E402

from memoryd.client.protocol import NewMemory, Search  # noqa: E402
from memoryd.daemon.config import SharedConfig  # noqa: E402
from memoryd.daemon.search import pipeline  # noqa: E402
from memoryd.daemon.shared import exchange, schema, server  # noqa: E402
from memoryd.daemon.shared.line import EngineThread  # noqa: E402
from postgres import Cable, Postgres  # noqa: E402
from workbench import add_many, wait_until  # noqa: E402

_WAY_MS = 30.0


def main() -> None:
    """Measure all of it."""
    report = Report(__doc__)
    count, times = (2_000, 5) if report.quick else (20_000, 20)
    postgres = Postgres()
    try:
        postgres.start()
        owner = server.connect(postgres.address())
        schema.migrate(owner)
        schema.make_root(owner, "acme")
        owner.close()
        with tempfile.TemporaryDirectory(prefix="mb-") as name:
            _measure(report, postgres, Path(name), count, times)
    finally:
        postgres.remove()
    report.close()


def _measure(report: Report, postgres: Postgres, folder: Path, count: int, times: int) -> None:
    cable = Cable(postgres.port, _WAY_MS / 2000)
    way = postgres.address().replace(f"port={postgres.port}", f"port={cable.port}")
    one, two = (Machine(folder, name, way) for name in ("one", "two"))
    try:
        texts = [
            NewMemory(content=f"memory {number} of the team is about topic {number % 97}") for number in range(count)
        ]
        for start in range(0, count, 5_000):
            add_many(one.core, texts[start : start + 5_000], "acme/api", dedup=False)
        pushed_s, pulled_s = _time(one.sync), _time(two.sync)
        rows = [
            {"what": f"push of {count:,} rows", "rows/s": round(count / pushed_s)},
            {"what": "first copy by another machine", "rows/s": round(count / pulled_s)},
        ]
        report.table(f"Exchange, {_WAY_MS:.0f} ms there and back", rows)
        report.table(
            "From add to found on the other machine, ms", [_found(one, two, times, listen) for listen in (False, True)]
        )
        report.table("A local search on the machine that shares, ms", _searches(one, postgres, times * 10))
    finally:
        cable.close()
        for machine in (one, two):
            machine.close()


def _time(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _found(one: Machine, two: Machine, times: int, listen: bool) -> dict[str, Any]:
    """Measure how soon a memory is there: both machines poll every 2 s, or listen as well."""
    settings = SharedConfig(poll_s=2.0, listen=listen)
    lines = [EngineThread(machine.core, machine.engine.root, machine.name, settings) for machine in (one, two)]
    one.core.store.on_change = lines[0].wake
    waits = []
    try:
        for number in range(times):
            wait_until(lambda: all(line.engine.figures.state == "ready" for line in lines))
            time.sleep(1.1)
            id = one.add(f"news {number} {listen}", dedup=False)
            waits.append(1000 * _time(lambda id=id: wait_until(lambda: _has(two, id))))  # type: ignore[misc]
    finally:
        one.core.store.on_change = None
        for line in lines:
            line.close()
    how = "LISTEN and polling" if listen else "polling every 2 s"
    return {"how": how, "median": round(statistics.median(waits)), "longest": round(max(waits))}


def _has(machine: Machine, id: str) -> bool:
    with machine.core.store.reading() as connection:
        return connection.execute("SELECT 1 FROM memories WHERE id = ?", (id,)).fetchone() is not None


def _searches(one: Machine, postgres: Postgres, times: int) -> list[dict[str, Any]]:
    """Measure searches in turn: nothing is exchanged, the root is exchanged, its server has one trouble or another."""
    names = "nothing is exchanged", "it is exchanged", "the server hangs", "it restarts", "its disk is full"
    found: dict[str, list[float]] = {name: [] for name in names}
    count, real = times // 3, exchange.offer
    for turn in range(3):
        _ask(one, found["nothing is exchanged"], count)
        line = EngineThread(one.core, one.engine.root, one.name, SharedConfig(poll_s=0.2))
        one.core.store.on_change = line.wake
        _ask(one, found["it is exchanged"], count)
        exchange.offer = _refuse
        one.add(f"there is no room for this {turn}")
        _ask(one, found["its disk is full"], count)
        exchange.offer = real
        postgres.hang()
        _ask(one, found["the server hangs"], count)
        postgres.resume()
        postgres.sql("CHECKPOINT")
        starting = threading.Thread(target=lambda: (postgres.stop(at_once=True), postgres.start()))
        starting.start()
        _ask(one, found["it restarts"], count)
        starting.join()
        one.core.store.on_change = None
        line.close()
    return [
        {"while": name, "median": round(statistics.median(taken), 2), "p95": round(percentile(taken, 95), 2)}
        for name, taken in found.items()
    ]


def _refuse(*given: Any) -> Any:
    raise psycopg.errors.DiskFull("could not extend file: No space left on device")


def _ask(one: Machine, into: list[float], times: int) -> None:
    for number in range(times):
        call = Search(query=f"which memory is about topic {number % 97}", namespace="acme/api", touch=False)
        into.append(1000 * _time(lambda call=call: pipeline.search(one.core.sources, call)))  # type: ignore[misc]


if __name__ == "__main__":
    main()

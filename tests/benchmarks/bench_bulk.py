"""Others beside each bulk call and job: how long the adds and searches of another client wait at worst.

One client adds (its texts have a vector in the cache), another one searches (its question is embedded by the model),
each with a pause of 10 ms after a reply, while a third one makes bulk calls and runs jobs; a job is interrupted after
20 s, and a call that only reads is repeated for 5 s. A process that only sleeps for 10 ms says how late the machine
itself was at worst. The store holds so many memories; with `--drawn` in several namespaces with vectors drawn from real
ones, else in one, with vectors in random directions. What is imported and added in bulk has vectors in the cache too,
and `add_many` looks for duplicates of each.
"""

import multiprocessing
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import corpus
from harness import Daemon, Report, database, give_vectors, percentile, progress, running_on, synthetic, timed

from memoryd.client import Client, MemorydError, methods, protocol
from memoryd.daemon.jobs.table import list_jobs
from memoryd.daemon.upkeep import examine

_BULK, _OTHERS = 30_000_000, 40_000_000  # numbers of texts that no database holds
_KNOWN = 20_000  # texts of the other client that have a vector
_PAUSE_S = 0.01
_PART = 10_000  # memories of one call
_SMALL = "small/team"  # where one in a hundred memories with drawn vectors lives

_READ_S, _JOB_S = 5.0, 20.0

Work = Callable[[Client], Any]


def main() -> None:
    """Measure every size."""
    report = Report(__doc__)
    for size in [size for size in report.sizes() if size >= 10_000]:
        part = min(_PART, size // 10)
        with running_on(database(size, report.kind or "plain"), lambda data, part=part: _prepare(data, part)) as daemon:
            _warm_up(daemon, size)
            rows = [_row("nobody else", daemon, _rest)]
            for name, work in [*_works(daemon, part), ("nobody else", _rest)]:
                rows.append(_row(name, daemon, work))
                progress(
                    ", ".join(
                        f"{key} {value:.0f}" if isinstance(value, float) else str(value)
                        for key, value in rows[-1].items()
                    )
                )
            report.table(f"Others beside bulk calls and jobs, {size:,} memories", rows)
    report.close()


def _prepare(data: Path, part: int) -> None:
    give_vectors(data, synthetic(_BULK, part), _BULK)
    give_vectors(data, synthetic(_OTHERS, _KNOWN), _OTHERS)


def _warm_up(daemon: Daemon, size: int) -> None:
    with daemon.client() as client:
        for question in corpus.questions(50, size, offset=50_000_000):
            client.search(question)


# What the third client does ------------------------------------------------------------------------------------------


def _works(daemon: Daemon, part: int) -> Iterator[tuple[str, Work]]:
    """Yield bulk calls and jobs; those after which others would have less to do come last."""
    done: list[str | None] = []  # operations to take back
    yield f"add_many of {part:,}", lambda client: done.extend(client.add_many(_new(part)).operations)
    yield "undo of the additions", lambda client: client.undo(done.pop())
    yield "export", lambda client: _repeat(lambda: _export(client, part))
    yield f"import of {part:,}", lambda client: _import(client, part)
    yield "stats", lambda client: _repeat(client.stats)
    yield "tiers, counts, lists", lambda client: _repeat(lambda: _report(client))
    yield "doctor's check of the file", lambda client: examine.read_facts(daemon.data / "memoryd.sqlite", check=True)
    yield "verify", lambda client: client.verify()
    yield "backup, checked as by restore", lambda client: client.backup()
    yield "consolidate a namespace", lambda client: client.call(protocol.Consolidate(namespace=_SMALL, reach="exact"))
    for job in list_jobs():
        yield f"job {job}", partial(_run, job=job)
    yield "topics and nodes of the graph", lambda client: _repeat(lambda: _read_graph(client))
    chosen = {"namespace": _SMALL, "reach": "exact", "type": ["lesson"]}
    where = protocol.Delete(**chosen)
    yield "delete of a namespace", lambda client: done.append(client.call(where).operation)
    yield "undo of the deletions", lambda client: client.undo(done.pop())
    yield "erase of a memory", lambda client: client.erase(ids=[client.list(limit=1).memories[0].id])


def _rest(client: Client) -> None:
    time.sleep(_READ_S)


def _repeat(action: Callable[[], Any]) -> None:
    end = time.monotonic() + _READ_S
    while time.monotonic() < end:
        action()


def _run(client: Client, job: str) -> None:
    """Run a job, for so long at most."""
    done = threading.Event()

    def stop() -> None:
        if not done.wait(_JOB_S):
            with Client("", socket=client.socket_path, autostart=False) as other:
                other.pause_job(job)

    stopping = threading.Thread(target=stop)
    stopping.start()
    client.run_job(job)
    done.set()
    stopping.join()


def _new(part: int) -> list[dict[str, Any]]:
    return [{"content": corpus.memory(_BULK + number)} for number in range(part)]


def _export(client: Client, part: int) -> list[protocol.Record]:
    records: list[protocol.Record] = []
    after: str | None = ""
    while after is not None and len(records) < part:
        found = client.call(protocol.ExportMemories(reach="all", after_id=after))
        records += found.records
        after = found.next
    return records[:part]


def _import(client: Client, part: int) -> None:
    """Import copies of stored memories under other ids, as another machine's export would bring them."""
    records = _export(client, part)
    for record in records:
        record.id, record.relations, record.votes = secrets.token_hex(16), [], []
    client.call(protocol.ImportMemories(records=records))


def _report(client: Client) -> None:
    client.call(protocol.Tiers(reach="all"))
    client.call(protocol.List(reach="all", limit=1))
    client.call(protocol.Namespaces(reach="all"))
    client.list(limit=100)


def _read_graph(client: Client) -> None:
    client.call(methods.graph_topics(reach="all"))
    client.call(methods.graph_nodes(reach="all"))


# The others ----------------------------------------------------------------------------------------------------------


def _row(name: str, daemon: Daemon, work: Work) -> dict[str, Any]:
    """Return what the others wait for while `work` continues, and its time."""
    context = multiprocessing.get_context("fork")
    stop, found = context.Event(), context.Queue()
    kinds = ("add", "search", "sleep")
    children = [context.Process(target=_ask, args=(daemon.socket, stop, found, kind), daemon=True) for kind in kinds]
    for child in children:
        child.start()
    note = ""
    try:
        time.sleep(0.5)
        began, cpu_ms = time.monotonic(), daemon.cpu_ms()
        with daemon.client() as client:
            try:
                work(client)
            except MemorydError as error:
                note = str(error)[:60]
        took_s, cpu_s = time.monotonic() - began, (daemon.cpu_ms() - cpu_ms) / 1000
    finally:
        stop.set()
    waits = dict(found.get(timeout=600) for _ in children)
    for child in children:
        child.join(30)
    row: dict[str, Any] = {"meanwhile": name, "s": took_s, "processor s": cpu_s}
    for kind in ("add", "search"):
        row |= {f"{kind} p50 ms": percentile(waits[kind], 50), f"{kind} p99 ms": percentile(waits[kind], 99)}
        row[f"{kind} worst ms"] = max(waits[kind], default=0.0)
    row["sleeper late, worst ms"] = max(waits["sleep"]) - 1000 * _PAUSE_S
    return row | {"load": os.getloadavg()[0], "RSS MB": daemon.rss_mb(), "note": note}


def _ask(path: Path, stop: Any, found: Any, kind: str) -> None:
    first = _OTHERS + secrets.randbelow(_KNOWN // 2)  # texts of another round have other numbers
    times: list[float] = []
    with Client("", socket=path, autostart=False, timeout_s=600) as client:
        ask: dict[str, Callable[[int], Any]] = {
            "add": lambda n: client.add(corpus.memory(n)),
            "search": lambda n: client.search(corpus.question(n, 1000)),
            "sleep": lambda n: time.sleep(_PAUSE_S),
        }
        for number in count(first):
            if stop.is_set():
                break
            times.append(timed(lambda number=number: ask[kind](number)))
            time.sleep(_PAUSE_S)
    found.put((kind, times))


if __name__ == "__main__":
    main()

"""Start: from exec to the first answers; and resident memory by size.

`first answer by words` is the first search that returns hits, `first answer by meaning` the first that is not degraded.
The files are in the page cache, as they are after a restart of the daemon. The first start is of a copy, for which no
codes of the vectors are kept; the others follow a clean stop. Resident memory is VmRSS, files mapped by SQLite and
shared libraries included, after a clean stop; `released` is after the job `maintain`, which runs every five minutes.
"""

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import corpus
from harness import Daemon, Report, median, prepared, running, size_mb

_LIMIT_S = 300.0


def main() -> None:
    """Measure starts, then memory."""
    report = Report(__doc__)
    rounds, searches = 3 if report.quick else 7, 1000
    sizes = [size for size in report.sizes() if size >= 10_000]
    starts = [row for size in [0, *sizes] for row in _starts(size, rounds, report.kind)]
    report.table("Start: median ms after exec (slowest)", starts)
    report.table("Resident memory", [_memory(size, searches, report.kind) for size in [0, *report.sizes()]])
    report.close()


def _starts(size: int, rounds: int, kind: str) -> Iterator[dict[str, Any]]:
    """Yield the times of the first start of a copy, and the medians of those after a clean stop."""
    with prepared(size, kind=kind) as daemon:
        found: dict[str, list[float]] = {}
        for number in range(rounds + 1):
            for name, took_ms in _start(daemon, size).items():
                found.setdefault(name, []).append(took_ms)
            found.setdefault("processor ms until then", []).append(daemon.cpu_ms())
            daemon.stop()
            if not number:
                yield {"memories": size, "start": "of a copy", **{name: f"{one:.0f}" for name, [one] in found.items()}}
                found = {}
    told = {name: f"{median(times):.0f} ({max(times):.0f})" for name, times in found.items()}
    yield {"memories": size, "start": "after a clean stop", **told}


def _start(daemon: Daemon, size: int) -> dict[str, float]:
    """Start once; return the milliseconds to each first answer."""
    question = corpus.question(0, size or 1000)
    began = time.perf_counter()
    daemon.launch()
    found: dict[str, float] = {}
    with daemon.client(timeout_s=_LIMIT_S) as client:
        while "first answer by meaning" not in found:
            if time.perf_counter() - began > _LIMIT_S:
                raise RuntimeError(f"no answer within {_LIMIT_S} s: {daemon.log()}")
            with suppress(Exception):
                if not found:
                    client.status()
                    found["socket answers"] = (time.perf_counter() - began) * 1000
                hits = client.search(question)
                now = (time.perf_counter() - began) * 1000
                if hits.hits or not size:
                    found.setdefault("first answer by words", now)
                    if not hits.degraded:
                        found["first answer by meaning"] = now
            time.sleep(0.02 if "first answer by words" in found else 0.002)
    return found


def _memory(size: int, searches: int, kind: str) -> dict[str, Any]:
    with running(size, kind=kind) as daemon:
        daemon.stop()
        daemon.start()
        return {"memories": size, **_measure(daemon, size, searches)}


def _measure(daemon: Daemon, size: int, searches: int) -> dict[str, Any]:
    with daemon.client() as client:
        after_start = daemon.rss_mb()
        for question in corpus.questions(50, size or 1000):
            client.search(question)
        warm = daemon.rss_mb()
        for question in corpus.questions(searches, size or 1000, offset=1_000_000):
            client.search(question)
        after = daemon.rss_mb()
        client.run_job("maintain")
        return {
            "MB when ready": after_start,
            "MB after 50 searches": warm,
            f"MB after {searches} more": after,
            "MB, released": daemon.rss_mb(),
            "vector index MB": client.status().index_bytes / 1e6,
            "on disk MB": size_mb(daemon.data),
        }


if __name__ == "__main__":
    main()

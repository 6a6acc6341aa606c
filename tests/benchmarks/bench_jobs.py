"""What background jobs cost a search: its latency while a sweep and clustering work through all memories.

One client asks new questions without a pause, first with nothing else to do, then while the sweep moves every memory
from L1 to L2, then while they are clustered from scratch, then idle again. Every memory is old enough for the sweep.
"""

import threading
import time
from collections.abc import Iterator
from itertools import count
from typing import Any

import corpus
from asking import ask, measure_sizes
from harness import Daemon, percentile

from memoryd.client import Client

JOBS = ("sweep", "cluster")


def main() -> None:
    """Measure every size."""
    measure_sizes(__doc__, _phases, quick_s=5.0, full_s=15.0)


def _phases(daemon: Daemon, size: int, seconds: float) -> list[dict[str, Any]]:
    questions = (corpus.question(number, size) for number in count())
    with daemon.client() as client:
        ask(client, questions, 2.0, touch=False)
        phases = [("idle, all in L1", ask(client, questions, seconds, touch=False), {})]
        phases += [(f"{job} runs", *_during(daemon, client, questions, job)) for job in JOBS]
        phases.append(("idle, all in L2", ask(client, questions, seconds, touch=False), {}))
    quiet = [*phases[0][1], *phases[-1][1]]
    return [
        {
            "meanwhile": name,
            "searches": len(times),
            **{f"p{percent} ms": percentile(times, percent) for percent in (50, 95, 99)},
            "× idle p50": percentile(times, 50) / percentile(quiet, 50),
            "× idle p95": percentile(times, 95) / percentile(quiet, 95),
            "job s": told.get("seconds", ""),
            "job did": told.get("counts", ""),
        }
        for name, times, told in phases
    ]


def _during(daemon: Daemon, client: Client, questions: Iterator[str], job: str) -> tuple[list[float], dict[str, Any]]:
    """Return the times of searches while a job runs until there is nothing left to do, and what it did."""
    told: dict[str, Any] = {"counts": {}}

    def run() -> None:
        began = time.monotonic()
        with daemon.client() as other:
            while True:
                done = other.run_job(job)
                for name, number in done.counts.items():
                    told["counts"][name] = told["counts"].get(name, 0) + number
                if done.outcome != "interrupted":
                    break
        told["seconds"] = time.monotonic() - began

    working = threading.Thread(target=run)
    working.start()
    times: list[float] = []
    while working.is_alive():
        times += ask(client, questions, 0.2, touch=False)
    working.join()
    return times, told


if __name__ == "__main__":
    main()

"""What background jobs cost a search: its latency while a sweep works through all memories and while the graph is made.

One client asks new questions without a pause, first with nothing else to do, then while the sweep moves every memory
from L1 to L2, then for a while as the graph is made anew, each between quiet times. What making the graph takes of a
processor is measured without searches. Every memory is old enough for the sweep.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, NamedTuple

import corpus
from asking import ask, measure_sizes
from harness import Daemon, percentile

from memoryd.client import Client

_PATIENCE_S = 3600.0


class Phase(NamedTuple):
    """The times of searches in milliseconds, and the seconds that a job took, by the clock and of a processor."""

    name: str
    times: list[float]
    job_s: float = 0.0
    cpu_s: float = 0.0


def main() -> None:
    """Measure every size."""
    measure_sizes(__doc__, _phases, quick_s=5.0, full_s=15.0)


def _phases(daemon: Daemon, size: int, seconds: float) -> list[dict[str, Any]]:
    questions = (corpus.question(number, size) for number in count())
    with daemon.client() as client:

        def idle(tier: str) -> Phase:
            return Phase(f"idle, all in {tier}", ask(client, questions, seconds, touch=False))

        ask(client, questions, 2.0, touch=False)
        phases = [idle("L1"), _search_beside(daemon, client, questions, "sweep runs", _sweep), idle("L2")]
        cpu_ms, began = daemon.cpu_ms(), time.monotonic()
        with daemon.client(timeout_s=_PATIENCE_S) as other:
            _make_graph(other)
        spent_s = time.monotonic() - began
        phases += [Phase("graph is made, no searches", [], spent_s, (daemon.cpu_ms() - cpu_ms) / 1000), idle("L2")]
        phases += [_search_beside(daemon, client, questions, "graph is made", _make_graph, 4 * seconds), idle("L2")]
    return list(_compare(phases))


def _compare(phases: list[Phase]) -> Iterator[dict[str, Any]]:
    """Yield a row for each phase; searches beside a job are compared with the quiet times before and after it."""
    for number, phase in enumerate(phases):
        around = phases[number - 1 : number + 2 : 2] if phase.job_s else [phase]
        quiet = [one for each in around for one in each.times]
        row: dict[str, Any] = {"meanwhile": phase.name, "searches": len(phase.times)}
        for percent in (50, 95, 99):
            row[f"p{percent} ms"] = percentile(phase.times, percent) if phase.times else ""
        for percent in (50, 95):
            row[f"× idle p{percent}"] = (
                percentile(phase.times, percent) / percentile(quiet, percent) if phase.times else ""
            )
        yield {**row, "job s": phase.job_s or "", "job's processor s": phase.cpu_s or ""}


def _make_graph(client: Client) -> None:
    client.graph_rebuild(reach="all")


def _sweep(client: Client) -> None:
    while client.run_job("sweep").outcome == "interrupted":
        pass


def _search_beside(
    daemon: Daemon,
    client: Client,
    questions: Iterator[str],
    name: str,
    job: Callable[[Client], None],
    most_s: float = math.inf,
) -> Phase:
    """Return the times of searches while a job runs, for so many seconds, and wait for its end."""

    def run() -> None:
        with daemon.client(timeout_s=_PATIENCE_S) as other:
            job(other)

    began, working, times = time.monotonic(), threading.Thread(target=run), list[float]()
    working.start()
    while working.is_alive() and time.monotonic() - began < most_s:
        times += ask(client, questions, 0.2, touch=False)
    working.join()
    return Phase(name, times, time.monotonic() - began)


if __name__ == "__main__":
    main()

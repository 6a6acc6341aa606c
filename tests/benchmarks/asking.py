"""One client that asks new questions without a pause: what it meets at each number of memories from 10,000 on."""

import time
from collections.abc import Callable, Iterator
from typing import Any

from harness import Daemon, Report, running, timed

from memoryd.client import Client

Phases = Callable[[Daemon, int, float], list[dict[str, Any]]]


def measure_sizes(purpose: str | None, phases: Phases, quick_s: float, full_s: float) -> None:
    """Report the rows of `phases(daemon, memories, seconds of a phase)` for every size."""
    report = Report(purpose)
    for size in [size for size in report.sizes() if size >= 10_000]:
        with running(size, kind=report.kind) as daemon:
            rows = phases(daemon, size, quick_s if report.quick else full_s)
            report.table(f"One searching client, {size:,} memories", rows)
    report.close()


def ask(client: Client, questions: Iterator[str], seconds: float, touch: bool = True) -> list[float]:
    """Return the milliseconds of each search for so long."""
    end = time.monotonic() + seconds
    times: list[float] = []
    while time.monotonic() < end:
        question = next(questions)
        times.append(timed(lambda question=question: client.search(question, touch=touch)))
    return times

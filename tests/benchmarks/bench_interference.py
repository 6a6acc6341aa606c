"""Fairness: what one client's search costs while others import, add and search.

One client asks new questions without a pause. The phases alternate with idle ones, and each is compared with the mean
of the idle phases around it. Embedding an import uses every core, so what the daemon can do is to let a search go
first; other searches have the same right, so with four of them on two cores a factor of 2.5 is the least. The last two
phases are clients that mean harm: eight long calls at a time on one connection.
"""

import asyncio
import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import corpus
from asking import ask, measure_sizes
from harness import Daemon, percentile

from memoryd.client import AsyncClient, Client
from memoryd.client.protocol import Add, NewMemory

_NEW = 20_000_000
_BATCH = 100
_AT_ONCE = 8
_ASSIGNED_CHARS = 1_000_000


def main() -> None:
    """Measure every size."""
    measure_sizes(__doc__, _phases, quick_s=4.0, full_s=10.0)


def _phases(daemon: Daemon, size: int, seconds: float) -> list[dict[str, Any]]:
    questions = (corpus.question(number, size) for number in count())
    others: dict[str, list[Callable[..., None]]] = {
        "one client imports (add_many)": [_import],
        "one client imports, vectors known": [_import_again],
        "four clients add one by one": [_add] * 4,
        "one client observes without a pause": [_observe],
        "one other client searches": [_search],
        "four other clients search": [_search] * 4,
        "8 adds of 1 MB of password=": [_assign],
    }
    with daemon.client() as client:
        ask(client, questions, 2.0)
        idle = ask(client, questions, seconds)
        rows = [{**_row("nobody else", idle, idle, idle), "others do per s": 0}]
        for name, work in others.items():
            with _busy(daemon, work, size) as done:
                time.sleep(0.5)
                first = sum(counter.value for counter in done)
                busy = ask(client, questions, seconds)
                others_per_s = (sum(counter.value for counter in done) - first) / seconds
            time.sleep(0.5)
            before, idle = idle, ask(client, questions, seconds / 2)
            rows.append({**_row(name, busy, before, idle), "others do per s": others_per_s})
    return rows


def _row(name: str, times: list[float], before: list[float], after: list[float]) -> dict[str, Any]:
    quiet = {percent: (percentile(before, percent) + percentile(after, percent)) / 2 for percent in (50, 95)}
    return {
        "meanwhile": name,
        "p50 ms": percentile(times, 50),
        "p95 ms": percentile(times, 95),
        "p99 ms": percentile(times, 99),
        "worst ms": max(times),
        "× idle p50": percentile(times, 50) / quiet[50],
        "× idle p95": percentile(times, 95) / quiet[95],
    }


@contextmanager
def _busy(daemon: Daemon, work: list[Callable[..., None]], size: int) -> Iterator[list[Any]]:
    """Keep processes at work, each with a counter of what it has done, until the block ends."""
    context = multiprocessing.get_context("fork")
    stop = context.Event()
    counters = [context.Value("l", 0) for _ in work]
    children = [
        context.Process(target=function, args=(daemon.socket, stop, counter, number, size), daemon=True)
        for number, (function, counter) in enumerate(zip(work, counters, strict=True))
    ]
    for child in children:
        child.start()
    try:
        yield counters
    finally:
        stop.set()
        for child in children:
            child.join(60)
            child.kill()


def _import(path: Path, stop: Any, done: Any, number: int, size: int) -> None:
    _import_from(path, stop, done, _NEW + int(time.time()) * 1000)


def _import_again(path: Path, stop: Any, done: Any, number: int, size: int) -> None:
    """Import texts that were embedded before into a namespace of their own: the store's part alone."""
    _import_from(path, stop, done, 0, f"again{int(time.time())}")


def _import_from(path: Path, stop: Any, done: Any, first: int, namespace: str = "") -> None:
    with Client(namespace, socket=path, autostart=False, timeout_s=120) as client:
        for start in count(first, _BATCH):
            if stop.is_set():
                break
            client.add_many({"content": corpus.memory(number)} for number in range(start, start + _BATCH))
            done.value += _BATCH


def _add(path: Path, stop: Any, done: Any, number: int, size: int) -> None:
    with Client("", socket=path, autostart=False) as client:
        for text in count(2 * _NEW * (number + 1)):
            if stop.is_set():
                break
            client.add(corpus.memory(text))
            done.value += 1


def _observe(path: Path, stop: Any, done: Any, number: int, size: int) -> None:
    """Observe questions and answers: the judge rates, compares and condenses them meanwhile."""
    with Client("", socket=path, autostart=False) as client:
        for text in count(3 * _NEW):
            if stop.is_set():
                break
            said = {"role": "user", "content": corpus.question(text, size)}
            client.observe([said, {"role": "assistant", "content": corpus.memory(text)}], session=f"s{text // 20}")
            done.value += 2


def _search(path: Path, stop: Any, done: Any, number: int, size: int) -> None:
    with Client("", socket=path, autostart=False) as client:
        for question in count(_NEW * (number + 1)):
            if stop.is_set():
                break
            client.search(corpus.question(question, size))
            done.value += 1


def _assign(path: Path, stop: Any, done: Any, number: int, size: int) -> None:
    text = "password=" * (_ASSIGNED_CHARS // 9)
    asyncio.run(_pipeline(path, stop, done, lambda number: Add(memory=NewMemory(content=f"{text}{number}"))))


async def _pipeline(path: Path, stop: Any, done: Any, call: Callable[[int], Any]) -> None:
    """Keep eight calls under way on one connection; leave without waiting for them."""
    numbers = count()
    async with AsyncClient("", socket=path, autostart=False, timeout_s=300) as client:
        waiting: set[asyncio.Task[Any]] = set()
        while not stop.is_set():
            while len(waiting) < _AT_ONCE:
                waiting.add(asyncio.create_task(client.call(call(next(numbers)))))
            ended, waiting = await asyncio.wait(waiting, timeout=0.1, return_when=asyncio.FIRST_COMPLETED)
            done.value += len(ended)
        for task in waiting:
            task.cancel()


if __name__ == "__main__":
    main()

"""Soak: many mixed calls of several processes on one daemon, and the course of its memory use.

The store is kept at a steady size: what is added and promoted is deleted again. Warm is the daemon after a tenth of the
calls: its caches are full then and the store has its size. At the end its RSS may be 1.2 times that of then.

python tests/benchmarks/soak.py [--calls N] [--clients N] [--memories N] [--no-model]; exits with 1 above the limit.
"""

import argparse
import json
import multiprocessing
import random
import sys
import threading
import time
import traceback
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import corpus
from harness import NO_MODEL, Daemon, machine, markdown, percentile, running

from memoryd.client import Busy, Client, NotFound
from memoryd.client.programs.memctl.progress import ProgressBar
from memoryd.client.protocol import Jobs

LIMIT = 1.2  # RSS at the end over RSS when warm
WARM = 0.1  # share of the calls after which the daemon is warm
NAMESPACES = 4  # of each client
SESSION_CALLS = 200  # calls until a client begins another conversation
QUERIES = 3_000  # different ones; more than the cache of query vectors holds
ROWS = 20
_NEW = 50_000_000  # numbers of memories that no other benchmark has
_WORDS = (*corpus._AREAS, *corpus._PARTS, *corpus._TOOLS, *"the of and to in for on with by after before".split())
_MIX = {"get": 34, "search": 24, "add": 9, "list_": 8, "update": 6, "observe": 7, "context": 5, "delete": 6, "jobs": 1}


def plain(number: int) -> str:
    """Return a text of common words and rare ones; `corpus` takes half a minute to begin with."""
    chosen = random.Random(number)
    words = [chosen.choice(_WORDS) for _ in range(24)]
    return f"Ticket {number}: we decided that {' '.join(words)} comes with release {number % 997}."


def plain_question(number: int, memories: int) -> str:
    """Return a question for such texts."""
    return f"what did we decide on {' '.join(plain(_NEW + number).split()[5:9])}"


class Sample(NamedTuple):
    """The daemon at one moment: calls made so far, its memory in MB."""

    seconds: float
    calls: int
    rss_mb: float
    own_mb: float  # of it not backed by files


class Agent:
    """One client that does mixed calls in its namespaces, and keeps each of them at its size."""

    def __init__(self, daemon: Daemon, number: int, memories: int) -> None:
        self.text_of, self.question = (corpus.memory, corpus.question) if daemon.has_model else (plain, plain_question)
        self.random = random.Random(number)
        self.clients = [daemon.client(f"soak/agent{number}/{place}") for place in range(NAMESPACES)]
        self.target = max(10, memories // NAMESPACES)
        self.ids: list[list[str]] = [[] for _ in self.clients]
        self.next = _NEW + number * 10_000_000
        self.calls = Counter[str]()
        self.times: list[float] = []

    def text(self) -> str:
        self.next += 1
        return self.text_of(self.next)

    def fill(self) -> None:
        """Bring every namespace to its size."""
        for client, ids in zip(self.clients, self.ids, strict=True):
            while len(ids) < self.target:
                size = min(100, self.target - len(ids))
                added = client.add_many([{"content": self.text()} for _ in range(size)], dedup=False)
                ids += [result.id for result in added]

    def step(self) -> None:
        """Do one call; one that is told to come back later is done again."""
        [kind] = self.random.choices(list(_MIX), list(_MIX.values()))
        place = self.random.randrange(NAMESPACES)
        began = time.perf_counter()
        while True:
            try:
                getattr(self, kind)(self.clients[place], self.ids[place])
                break
            except Busy as busy:
                self.calls["busy"] += 1
                time.sleep(busy.data.get("retry_after_ms", 100) / 1000)
            except NotFound:  # a promoted turn that was merged, a memory that the sweep paired
                break
        self.calls[kind] += 1
        self.times.append(time.perf_counter() - began)

    @property
    def session(self) -> str:
        return f"talk {sum(self.calls.values()) // SESSION_CALLS}"

    def add(self, client: Client, ids: list[str]) -> None:
        ids.append(client.add(self.text()).id)

    def get(self, client: Client, ids: list[str]) -> None:
        client.get(self.random.choice(ids))

    def search(self, client: Client, ids: list[str]) -> None:
        client.search(self.question(self.random.randrange(QUERIES), QUERIES), limit=5, session=self.session)

    def list_(self, client: Client, ids: list[str]) -> None:
        """List the oldest, and delete those above the size: also what turns became."""
        page = client.list(limit=100, ascending=True, reach="exact")
        surplus = [memory.id for memory in page][: max(0, page.total - self.target)]
        if surplus:
            client.delete(*surplus)
            ids[:] = [id for id in ids if id not in surplus] or [memory.id for memory in page][-1:]

    def update(self, client: Client, ids: list[str]) -> None:
        client.update(self.random.choice(ids), content=self.text())

    def observe(self, client: Client, ids: list[str]) -> None:
        turns = [{"role": role, "content": self.text()} for role in ("user", "assistant")]
        client.observe(turns, session=self.session)

    def context(self, client: Client, ids: list[str]) -> None:
        client.context(self.question(self.random.randrange(QUERIES), QUERIES), session=self.session)

    def delete(self, client: Client, ids: list[str]) -> None:
        if len(ids) > self.target // 2:
            client.delete(ids.pop(self.random.randrange(len(ids))))

    def jobs(self, client: Client, ids: list[str]) -> None:
        client.call(Jobs())


def work(daemon: Daemon, number: int, memories: int, calls: int, done: Any, filled: Any, results: Any) -> None:
    """Be one process of the soak: fill, wait for the others, call; tell what was done, or what went wrong."""
    try:
        agent = Agent(daemon, number, memories)
        agent.fill()
        filled.wait(1800)
        for _ in range(calls):
            agent.step()
            with done.get_lock():
                done.value += 1
        results.put((agent.calls, percentile(agent.times, 50) * 1000, percentile(agent.times, 95) * 1000))
    except BaseException:
        filled.abort()
        results.put(traceback.format_exc())


def soak(given: argparse.Namespace, daemon: Daemon) -> list[Sample]:
    """Let the clients work and return samples of the daemon, the first one when all are about to begin."""
    context = multiprocessing.get_context("fork")
    done, filled, results = context.Value("q", 0), context.Barrier(given.clients + 1), context.Queue()
    share = given.calls // given.clients
    children = [
        context.Process(
            target=work, args=(daemon, n, given.memories // given.clients, share, done, filled, results), daemon=True
        )
        for n in range(given.clients)
    ]
    for child in children:
        child.start()
    with suppress(threading.BrokenBarrierError):
        filled.wait(1800)
    samples = sampled(daemon, children, done, share * given.clients)
    told = [results.get(timeout=60) for _ in children]
    failures = [one for one in told if isinstance(one, str)]
    if failures:
        raise SystemExit(f"{failures[0]}\n{daemon.log()}")
    calls = sum((one[0] for one in told), Counter[str]())
    print(f"{dict(calls)}; p50 {told[0][1]:.1f} ms, p95 {told[0][2]:.1f} ms of client 0\n", flush=True)
    return samples


def sampled(daemon: Daemon, children: list[Any], done: Any, total: int) -> list[Sample]:
    """Look at the daemon until all clients have ended."""
    samples, began = [], time.monotonic()
    with ProgressBar("calls", total) as bar:
        while any(child.is_alive() for child in children) and done.value < total:
            samples.append(Sample(time.monotonic() - began, done.value, *memory_mb(daemon)))
            bar.update(done.value)
            if not bar.visible and len(samples) % 60 == 0:
                at = samples[-1]
                print(
                    f"  … {at.calls:,} calls, {at.rss_mb:.0f} MB after {at.seconds:.0f} s", file=sys.stderr, flush=True
                )
            time.sleep(min(1.0, 0.05 + total / 100_000))
    samples.append(Sample(time.monotonic() - began, done.value, *memory_mb(daemon)))
    return samples


def memory_mb(daemon: Daemon) -> tuple[float, float]:
    """Return the daemon's RSS in MB, and how much of it no file is behind."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{daemon.pid}/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) / 1024, int(fields["RssAnon"].split()[0]) / 1024


def figures(samples: list[Sample], share: float) -> tuple[float, float]:
    """Return the RSS when warm and at the end: means of the samples around these moments, in MB."""
    total = samples[-1].calls
    warm = [one.rss_mb for one in samples if share * total <= one.calls <= 1.5 * share * total]
    last = [one.rss_mb for one in samples if one.calls >= 0.95 * total]
    return sum(warm) / len(warm), sum(last) / len(last)


def main() -> int:
    """Run the soak and say how it went."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--calls", type=int, default=200_000)
    parser.add_argument("--clients", type=int, default=4, help="processes")
    parser.add_argument("--memories", type=int, default=4_000, help="size of the store")
    parser.add_argument("--warm", type=float, default=WARM, metavar="X", help="share of the calls that warm it up")
    parser.add_argument("--no-model", action="store_true", help="words only")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the samples to a file")
    given = parser.parse_args()
    if not given.no_model:
        corpus.memory(0)  # the children inherit what it reads
    config = "[jobs]\nenabled = true\n" + (NO_MODEL if given.no_model else "")
    print(f"{machine()}\n", flush=True)
    with running(config=config) as daemon:
        samples = soak(given, daemon)
        with daemon.client() as client:
            stats = client.stats()
            print(f"{sum(stats.by_namespace.values()):,} memories at the end\n")
    step = max(1, len(samples) // ROWS)
    shown = [*samples[:-1:step], samples[-1]]
    print(markdown([{"seconds": s.seconds, "calls": s.calls, "RSS MB": s.rss_mb, "own MB": s.own_mb} for s in shown]))
    warm, last = figures(samples, given.warm)
    rate = samples[-1].calls / samples[-1].seconds
    print(f"\nRSS {warm:.1f} MB warm, {last:.1f} MB at the end: × {last / warm:.3f}; {rate:.0f} calls/s", flush=True)
    if given.json:
        given.json.write_text(json.dumps([one._asdict() for one in samples]) + "\n")
    return int(last > LIMIT * warm)


if __name__ == "__main__":
    sys.exit(main())

"""Contexts for prompts, and what a slow language model costs: nothing that a client waits for may wait for it.

Two daemons hold the same memories; one of them has a language model that takes 30 s for each answer. Blocks of calls
on the one and the other alternate, so that a busy moment of the machine falls on both alike; how much the blocks of the
one without differ among themselves says what a difference means. Each search and context asks a new question, each add
and observe says something new. `--sizes N,N` measures contexts and observed turns at these sizes alone.
"""

import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

import corpus
from harness import Daemon, Report, median, percentile, running, spread, timed

from memoryd.client import Client

MEMORIES = 10_000
ANSWER_S = 30.0
_NEW = 40_000_000
_CALLS = 20  # of each kind in a block
_TASKS = "Before we go on: {}"

Calls = dict[str, list[float]]


def main() -> None:
    """Measure contexts by size, then the slow model."""
    report = Report(__doc__)
    rows = []
    for size in report.sizes():
        with running(size, kind=report.kind) as daemon, daemon.client() as client:
            rows += _measure_size(daemon, client, size, 60 if report.quick else 200)
    report.table("By size", rows)
    if not report.is_sized:
        with _slow_model() as (url, asked):
            config = f'[llm]\nurl = "{url}"\nmodel = "slow"\n'
            with running(MEMORIES) as plain, running(MEMORIES, config) as slow:
                rows = _compared(plain, slow, rounds=8 if report.quick else 30)
                report.table(f"A language model that takes {ANSWER_S:g} s for an answer, {MEMORIES:,} memories", rows)
                report.note(f"It was asked {len(asked)} times meanwhile; {_usage(slow)}.")
    report.close()


def _measure_size(daemon: Daemon, client: Client, size: int, calls: int) -> Iterator[dict[str, Any]]:
    kinds: dict[str, Callable[[int], Any]] = {
        "observe, one turn": lambda number: client.observe(_said(number, size)[:1], session=f"s{number // 50}"),
        "context, 800 tokens": lambda number: client.context(corpus.question(_NEW + number, size), max_tokens=800),
    }
    for number in range(30):
        client.context(corpus.question(2 * _NEW + number, size))
    for name, call in kinds.items():
        before = daemon.cpu_ms()
        times = [timed(lambda number=number, call=call: call(number)) for number in range(calls)]
        cost = {"processor ms": (daemon.cpu_ms() - before) / calls, "load": os.getloadavg()[0]}
        yield {"memories": size, "call": name, **spread(times), **cost}


def _said(number: int, size: int) -> list[dict[str, str]]:
    return [
        {"role": "user", "content": corpus.question(number, size)},
        {"role": "assistant", "content": f"Noted: {corpus.memory(number)}"},
    ]


# The slow model ------------------------------------------------------------------------------------------------------


def _compared(plain: Daemon, slow: Daemon, rounds: int) -> list[dict[str, Any]]:
    numbers = count(3 * _NEW)
    without: list[Calls] = []
    with_model: list[Calls] = []
    with plain.client() as one, slow.client() as other:
        _block(one, numbers), _block(other, numbers)
        for number in range(rounds):
            pairs = [(one, without), (other, with_model)]
            for client, blocks in pairs if number % 2 else reversed(pairs):
                time.sleep(0.3)  # the other one's background comes to rest
                blocks.append(_block(client, numbers))
    return [_row(name, without, with_model) for name in without[0]]


def _block(client: Client, numbers: Iterator[int]) -> Calls:
    times: Calls = {"observe": [], "add": [], "search": [], "context": []}
    for _ in range(_CALLS):
        number = next(numbers)
        said = _said(number, MEMORIES)
        session = f"s{number // 50}"
        times["observe"].append(timed(lambda said=said, session=session: client.observe(said, session=session)))
        times["add"].append(timed(lambda number=number: client.add(corpus.memory(_NEW + number))))
        times["search"].append(timed(lambda number=number: client.search(corpus.question(_NEW + number, MEMORIES))))
        task = _TASKS.format(corpus.question(2 * _NEW + number, MEMORIES))
        times["context"].append(timed(lambda task=task: client.context(task, max_tokens=400)))
    return times


def _row(name: str, without: list[Calls], with_model: list[Calls]) -> dict[str, Any]:
    plain, slow = ([time for block in blocks for time in block[name]] for blocks in (without, with_model))
    halves = [percentile([time for block in without[start::2] for time in block[name]], 95) for start in (0, 1)]
    return {
        "call": name,
        "p50 ms without": median(plain),
        "p50 ms with": median(slow),
        "p95 ms without": percentile(plain, 95),
        "p95 ms with": percentile(slow, 95),
        "× p95": percentile(slow, 95) / percentile(plain, 95),
        "× p95 of halves without": max(halves) / min(halves),
    }


def _usage(daemon: Daemon) -> str:
    with daemon.client() as client:
        usage = client.stats().llm
    return f"{usage.answers} answers, {usage.failures} failures" if usage else "no usage is known"


@contextmanager
def _slow_model() -> Iterator[tuple[str, list[str]]]:
    """A loopback server that speaks the chat API and takes its time; give its address and what it was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append(body["messages"][-1]["content"])
            time.sleep(ANSWER_S)
            text = json.dumps(_answer(body["response_format"]["json_schema"]["schema"], asked[-1]))
            data = json.dumps({"choices": [{"message": {"content": text}}]}).encode()
            try:
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except OSError:
                pass  # who asked has gone

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads, server.block_on_close = True, False
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1", asked
    server.shutdown()
    server.server_close()


def _answer(schema: dict[str, Any], question: str) -> Any:
    """Return the least that a schema allows, with one rating for each numbered turn."""
    definitions = schema.get("$defs", {})
    while "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    turns = len(re.findall(r"^\d+\. ", question, re.MULTILINE))
    made: dict[str, Any] = {}
    for name, field in schema.get("properties", {}).items():
        if name == "importances":
            made[name] = [0.5] * turns
        elif name in schema.get("required", ()):
            made[name] = {"array": [], "number": 0, "integer": 0, "boolean": False}.get(field.get("type", ""), "Noted.")
    return made


if __name__ == "__main__":
    main()

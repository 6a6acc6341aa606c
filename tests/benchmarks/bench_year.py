"""What turns that stay cost: a year of 200 short turns a day, and one of 1,000 long turns a day.

`--sizes N,N`: so many turns of each instead of all 73,000 and 365,000. Without `--drawn` the default model embeds them,
which takes some 20 ms a turn and processor. With it they get vectors drawn from real ones by their text, from a server
beside the daemon; so all that the daemon does is the same but for the model itself, and a query takes a request.

With `--drawn` the latest 1,000 turns are observed one a call by a daemon that does all its work: of them are the
embeddings and the times of observing. Those before them are observed by the daemon's own code in this process, a
session a call, and are rated and embedded, without facts, summaries and sentences that stand for them. So all of them
are consolidated at once, which a year in use spreads over its hours. In brackets is the daemon's processor time.

A user asks, and one of his turns in ten says what was decided; an agent answers in prose. Of short turns one in ten is
longer than 250 characters, as in public conversations. Sessions have 40 turns and are ended. Embeddings are counted
where they are made: texts given to the model, without queries and the examples that the rules embed once.
"""

import hashlib
import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import groupby
from typing import Any, NamedTuple

import corpus
import numpy as np
from harness import DIMENSIONS, Daemon, Report, median, prepared, progress, timed, vectors

from memoryd.client import Client
from memoryd.client.protocol import NewTurn, Observe
from memoryd.daemon.config import CognitionConfig, Config, EmbeddingApiConfig, ModelConfig
from memoryd.daemon.conversations import judging, observing
from memoryd.daemon.core.core import Core
from memoryd.daemon.embedding.api import ApiEmbedder

DAY_S = 86400.0
_SESSION = 40  # turns
_ASKED = 60
_REAL = 2_000  # memories whose vectors others are drawn from
_STATED = 10  # one turn of a user in so many states a decision
_LEFT = 100  # turns that may wait to be thought about while others are observed
_LIVED = 1_000  # turns that a daemon takes in as in use, after those that the store is filled with
_AT_ONCE = 64  # turns rated and embedded in one transaction while the store is filled
_JOBS = "promote sweep caps expire cluster embed redact trim maintain".split()
_MODEL, _MAX_TOKENS = "openai:drawn", 575
# A model behind the API counts two bytes to a token: so many are about the 256 tokens of the default model.
_API = f'[model]\nname = "{_MODEL}"\n[embedding_api]\nurl = "http://127.0.0.1:{{port}}"\nmax_tokens = {_MAX_TOKENS}\n'


class Year(NamedTuple):
    """How much is said in a day, and how many sentences more than a short one a turn has."""

    name: str
    per_day: int
    sentences: int


YEARS = (Year("200 short turns a day", 200, 0), Year("1,000 long turns a day", 1000, 8))


def main() -> None:
    """Measure both years."""
    report = Report(__doc__)
    sizes = [365 * year.per_day for year in YEARS]
    if report.quick:
        sizes = [size // 365 for size in sizes]
    elif report.is_sized:
        sizes = report.sizes()
    rows = []
    for year, number in zip(YEARS, sizes, strict=False):
        with _serving() if report.kind else nullcontext() as server:
            config = _API.format(port=server.server_address[1]) if server else ""
            with prepared(config=config) as daemon:
                filled = max(0, number - _LIVED) if server else 0
                if server and filled:
                    _fill(daemon, server, year, filled)
                daemon.start()
                with daemon.client(namespace="acme/api") as client:
                    rows.append(_measure(daemon, client, year, (filled, number), server))
    report.table("A year of turns", rows)
    report.close()


def _measure(daemon: Daemon, client: Client, year: Year, part: tuple[int, int], server: Any) -> dict[str, Any]:
    first, number = part
    rss_mb = [daemon.rss_mb()]
    if server:
        server.counted = 0
    began = time.monotonic()
    observed = _observe(client, year, part)
    took_s = time.monotonic() - began
    consolidated = _run(daemon, client.consolidate)
    _settle(client, 0)
    embedded = server.counted if server else _count_vectors(client)
    rss_mb.append(daemon.rss_mb())
    took = {f"{job} ms": _run(daemon, lambda job=job: client.run_job(job)) for job in _JOBS}
    rss_mb.append(daemon.rss_mb())
    questions = corpus.questions(2 * _ASKED, max(number, 10))
    found = _ask(daemon, lambda question: client.search(question), questions[:_ASKED])
    given = _ask(daemon, lambda question: client.context(question, max_tokens=400), questions[_ASKED:])
    used = client.status().database_used_bytes
    return {
        "year": year.name,
        "of it": f"{number / (365 * year.per_day):.1%}",
        "turns": number,
        "memories": client.stats().memories,
        "bytes per turn": used // number,
        "MB a year": used / number * 365 * year.per_day / 1e6,
        "embeddings per turn": embedded / (number - first),
        "observe p50 ms": median(observed),
        "search p50 ms": found,
        "context p50 ms": given,
        "RSS MB: started, observed, after jobs, asked": " · ".join(f"{mb:.0f}" for mb in [*rss_mb, daemon.rss_mb()]),
        "observed, s": took_s,
        "consolidate ms": consolidated,
        **took,
    }


def _run(daemon: Daemon, action: Callable[[], Any]) -> str:
    """Return the milliseconds of an action, and those of processor that it takes the daemon."""
    before = daemon.cpu_ms()
    return f"{timed(action):,.0f} ({daemon.cpu_ms() - before:,.0f})"


def _ask(daemon: Daemon, ask: Callable[[str], Any], questions: Sequence[str]) -> str:
    """Return the median of the times of questions, and the mean of the processor time that they take the daemon."""
    before = daemon.cpu_ms()
    times = [timed(lambda question=question: ask(question)) for question in questions]
    return f"{median(times):.1f} ({(daemon.cpu_ms() - before) / len(questions):.1f})"


def _fill(daemon: Daemon, server: "Server", year: Year, number: int) -> None:
    """Observe turns in this process by the daemon's own code, before the daemon starts on them."""
    judging._RATED = judging._EMBEDDED = _AT_ONCE
    config = Config(cognition=CognitionConfig(extract=False), model=ModelConfig(name=_MODEL))
    core = Core(daemon.data, config, daemon.data, lambda name, folder: _Drawn(server), None, time.time)
    core.start()
    try:
        while core.embedding.active is None:
            time.sleep(0.01)
        for session, turns in groupby(_list_turns(year, (0, number)), lambda one: one[0]):
            said = Observe(turns=[turn for _, turn in turns], session=session, namespace="acme/api")
            observing.observe(core, said).result()
            while judging.step_at_once(core):
                pass
        while core.embedding.count_pending():
            time.sleep(0.01)
        core.store.write(_leave_out).result()
    finally:
        core.close()


def _leave_out(transaction: Any) -> None:
    """Leave out what else would be made of the turns that a store is filled with."""
    for table in ("cognition", "heard", "thoughts"):
        transaction.connection.execute(f"DELETE FROM {table}")


def _observe(client: Client, year: Year, part: tuple[int, int]) -> list[float]:
    """Observe turns one a call, no faster than they are thought about; return the times."""
    times: list[float] = []
    last = ""
    for session, turn in _list_turns(year, part):
        if last not in ("", session):
            client.end_session(last)
            _settle(client, _LEFT)
        last = session
        times.append(timed(lambda turn=turn, session=session: client.observe([turn], session=session)))
    client.end_session(last)
    _settle(client, 0)
    return times


def _settle(client: Client, left: int) -> None:
    while True:
        report = client.tiers()
        waiting = sum(report.waiting.values()) + sum(report.heard.values()) + client.status().pending_embeddings
        if waiting <= left:
            return
        time.sleep(0.02)


def _count_vectors(client: Client) -> int:
    """Return how many texts were embedded: each has a vector, whatever was done with it."""
    database = sqlite3.connect(f"file:{client.status().data_dir}/memoryd.sqlite?mode=ro", uri=True)
    try:
        return int(database.execute("SELECT seq FROM sqlite_sequence WHERE name = 'vec_embeddings'").fetchone()[0])
    finally:
        database.close()


def _list_turns(year: Year, part: tuple[int, int]) -> Iterator[tuple[str, NewTurn]]:
    """Yield (session, turn) from one number up to another: users and agents in turn, over the days that they take."""
    (first, number), now, apart_s = part, time.time(), DAY_S / year.per_day
    for at in range(first, number):
        if at % 5_000 == 0:
            progress(f"{year.name}: {at:,} of {number:,}")
        role = "assistant" if at % 2 else "user"
        further = year.sentences or (3 if at % 10 == 9 else 0)
        text = _answer(at, further) if at % 2 else _say(at, year.sentences)
        yield f"s{at // _SESSION}", NewTurn(role=role, content=text, created_at=now - (number - at) * apart_s)


def _say(at: int, further: int) -> str:
    stated = corpus.memory(at).partition(". ")[0]
    first = f"{stated.rstrip('.')}." if at // 2 % _STATED == 0 else f"{corpus.question(at, at + 10)}?"
    return " ".join([first, *(_take_prose(at * 16 + n) for n in range(further // 4))])


def _answer(at: int, further: int) -> str:
    return " ".join(_take_prose(at * 16 + n) for n in range(1 + further))


def _take_prose(number: int) -> str:
    """Return what a memory says after its statement: sentences of documentation."""
    return corpus.memory(number).partition(". ")[2] or corpus.memory(number)


# A server of drawn vectors -------------------------------------------------------------------------------------------


class Server(ThreadingHTTPServer):
    """The embeddings API: vectors drawn from real ones by the hash of a text; counts texts."""

    daemon_threads = True
    counted = 0

    def draw(self, text: str) -> list[float]:
        """Return the vector of a text."""
        dice = np.random.default_rng(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]))
        one, other = self.real[dice.integers(len(self.real), size=2)]
        noise = dice.standard_normal(DIMENSIONS, np.float32) / np.float32(np.sqrt(DIMENSIONS))
        made: list[float] = (np.float32(0.8) * one + np.float32(0.4) * other + np.float32(0.3) * noise).tolist()
        return made

    def load(self) -> None:
        """Read the real vectors."""
        self.real = vectors(_REAL)


class _Drawn(ApiEmbedder):
    """The same model without the requests."""

    def __init__(self, server: Server) -> None:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        super().__init__(_MODEL, EmbeddingApiConfig(url=url, max_tokens=_MAX_TOKENS), None, threading.Event())  # type: ignore[arg-type]
        self.learn(DIMENSIONS)
        self._server = server

    def embed(self, texts: Sequence[str], timeout_s: float) -> Any:
        """Return the unit vectors of texts."""
        made = np.array([self._server.draw(text) for text in texts], np.float32)
        return made / np.linalg.norm(made, axis=1, keepdims=True)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer a request for embeddings."""
        server: Any = self.server
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        server.counted += len(texts)
        data = [{"index": at, "embedding": server.draw(text)} for at, text in enumerate(texts)]
        body = json.dumps({"data": data}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *given: Any) -> None:
        """Say nothing."""


@contextmanager
def _serving() -> Iterator[Server]:
    server = Server(("127.0.0.1", 0), _Handler)
    server.load()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    main()

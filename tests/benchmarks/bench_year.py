"""What turns that stay cost: a sample of a year of 200 short turns a day, and of one of 1,000 long turns a day.

A year of either takes too long to be embedded here, so a part of it is observed, one turn a call, and consolidated: one
in 52 of the short year (a week), one in 365 of the long one (a day). Bytes and vectors per turn are those of any part;
latencies and memory are those of a store of the sample's size, `bench_search.py` has those of larger ones.
"""

import sqlite3
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import corpus
from harness import Daemon, Report, median, progress, running, timed

from memoryd.client import Client
from memoryd.client.protocol import NewTurn

DAY_S = 86400.0
_SESSION = 40  # turns
_ASKED = 60
_JOBS = ("sweep", "caps", "cluster", "trim", "optimize", "checkpoint")


class Year(NamedTuple):
    """How much is said in a day, how long a turn is, and which part of a year is observed."""

    name: str
    per_day: int
    sentences: int  # memories of the corpus in one turn
    part: int  # one in so many


YEARS = (Year("200 short turns a day", 200, 1, 52), Year("1,000 long turns a day", 1000, 12, 365))


def main() -> None:
    """Measure both years."""
    report = Report(__doc__)
    rows = []
    for year in YEARS:
        part = year.part * 7 if report.quick else year.part
        with running() as daemon, daemon.client(namespace="acme/api") as client:
            rows.append(_measure(daemon, client, year, 365 * year.per_day // part))
    report.table("A part of a year of turns", rows)
    report.close()


def _measure(daemon: Daemon, client: Client, year: Year, number: int) -> dict[str, Any]:
    before = client.status().database_used_bytes
    observed = [
        timed(lambda turn=turn: client.observe([turn[1]], session=turn[0])) for turn in _list_turns(year, number)
    ]
    while waiting := client.status().pending_embeddings:
        progress(f"{waiting} memories wait for a vector")
        time.sleep(2)
    client.consolidate()
    while client.status().pending_embeddings:
        time.sleep(1)
    took = {job: client.run_job(job).took_ms for job in _JOBS}
    questions = corpus.questions(2 * _ASKED, max(number * year.sentences, 10))
    found = [timed(lambda question=question: client.search(question)) for question in questions[:_ASKED]]
    given = [
        timed(lambda question=question: client.context(question, max_tokens=400)) for question in questions[_ASKED:]
    ]
    used = client.status().database_used_bytes - before
    return {
        "year": year.name,
        "part": f"1 in {365 * year.per_day // number}",
        "turns": number,
        "bytes per turn": used // number,
        "MB a year": used / number * 365 * year.per_day / 1e6,
        "vectors per turn": _count_vectors(client) / number,
        "observe p50 ms": median(observed),
        "search p50 ms": median(found),
        "context p50 ms": median(given),
        "RSS MB": daemon.rss_mb(),
        **{f"{job} ms": ms for job, ms in took.items()},
    }


def _count_vectors(client: Client) -> int:
    """Return how many texts were embedded: each has a vector, whatever became of it."""
    database = sqlite3.connect(f"file:{client.status().data_dir}/memoryd.sqlite?mode=ro", uri=True)
    try:
        return int(database.execute("SELECT seq FROM sqlite_sequence WHERE name = 'vec_embeddings'").fetchone()[0])
    finally:
        database.close()


def _list_turns(year: Year, number: int) -> Iterator[tuple[str, NewTurn]]:
    """Yield (session, turn): users and assistants in turn, over as many days as the number takes."""
    now, apart_s = time.time(), DAY_S / year.per_day
    for at in range(number):
        if at % 200 == 0:
            progress(f"{year.name}: {at} of {number}")
        text = " ".join(corpus.memory(at * year.sentences + n) for n in range(year.sentences))
        role = "assistant" if at % 2 else "user"
        turn = NewTurn(role=role, content=text, created_at=now - (number - at) * apart_s)
        yield f"s{at // _SESSION}", turn


if __name__ == "__main__":
    main()

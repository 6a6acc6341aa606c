"""A home folder of past sessions of three agents, taken in by `memctl backfill`.

400 sessions for 40,000 turns, as many for other `--sizes`; what is said is invented, or of the file of JSON lines
(role, content) that `--conversations FILE` names. By words: how long a run takes; how long searches beside a second
one take, which is killed three times and then made twice; whether the sums agree. Then the same turns are observed in
another database, and the same questions are asked of both. With `--model` the default model is there, and the rate at
which vectors come is compared with that of the model alone.
"""

import argparse
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import itertools

from harness import NO_MODEL, Daemon, Report, model_dir, percentile, prepared, progress, timed

from memoryd.client import Client, linux
from memoryd.client.programs.sessions.building import BETWEEN, HOST, THINKING, TOOLS
from memoryd.models.catalog import DEFAULT
from memoryd.models.embedder import load
from past_sessions import MadeHome, SaidPair, make_home

_TURNS_OF_A_SESSION = 100
_QUESTIONS, _HITS = 60, 5
_KILLS = 3
_SAMPLE = 1500  # texts
_REST_S = 10.0
_EMBEDDED = (
    "SELECT content FROM memories UNION SELECT content FROM contexts"
    " UNION SELECT substr(m.content, 1 + p.start, p.size) FROM parts p JOIN memories m ON m.row = p.memory"
    " WHERE p.number > 0"
)
_OF_FILES = (TOOLS, THINKING, BETWEEN, HOST)  # what was left out before anything was sent


def main() -> None:
    """Measure every size."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--conversations", type=Path)
    parser.add_argument("--model", action="store_true")
    given, sys.argv[1:] = parser.parse_known_args()
    report = Report(__doc__)
    config = "" if given.model else NO_MODEL
    for turns in report.sizes() if report.is_sized else [4_000 if report.quick else 40_000]:
        home = Path(tempfile.mkdtemp(prefix="mb-home-"))
        try:
            made = make_home(home, turns // _TURNS_OF_A_SESSION, turns, _read_pairs(given.conversations))
            progress(f"{made.sessions} sessions with {made.turns:,} turns")
            _measure(report, config, home, made)
        finally:
            shutil.rmtree(home)
    report.close()


def _read_pairs(path: Path | None) -> list[SaidPair] | None:
    """Return what a user said and what was answered, of a file of turns; None where there is none."""
    if path is None:
        return None
    turns = [json.loads(line) for line in path.open()]
    return [
        (asked["content"], answered["content"])
        for asked, answered in itertools.pairwise(turns)
        if asked["role"] == "user" and answered["role"] == "assistant"
    ]


def _measure(report: Report, config: str, home: Path, made: MadeHome) -> None:
    questions = _choose_questions(made)
    with prepared(config=config) as daemon:
        daemon.start()
        dry_s, _ = take_in(daemon, home, "--dry-run")
        whole_s, done = take_in(daemon, home)
        if daemon.has_model:
            report.table("Vectors that come after the words", [_compare_rates(daemon)])
        again_s, again = take_in(daemon, home)
        with daemon.client() as client:
            hits = _count_hits(client, questions)
            began = time.perf_counter()
            client.undo(done["operation"])
            undo_s = time.perf_counter() - began
    rows = [
        {"what": "dry run", "s": dry_s, "turns per s": made.turns / dry_s},
        {"what": "backfill", "s": whole_s, "turns per s": made.turns / whole_s},
        {"what": "once more", "s": again_s, "turns per s": made.turns / again_s},
        {"what": "undo", "s": undo_s, "turns per s": made.turns / undo_s},
    ]
    report.table(f"{made.sessions} sessions, {made.turns:,} turns", rows)
    report.note(f"Taken in {done['taken']:,}, left out {done['left_out']}; once more {again['taken']:,} taken in.")
    with prepared(config=config) as daemon:
        daemon.start()
        _measure_killed(report, daemon, home, made)
    with prepared(config=config) as daemon:
        daemon.start()
        observe_s = _observe(daemon, made)
        if daemon.has_model:
            wait_for_vectors(daemon)
        with daemon.client() as client:
            observed = _count_hits(client, questions)
    rows = [{"by": "backfill", "hit@5": hits}, {"by": "observe", "hit@5": observed}]
    report.table(f"{len(questions)} questions of {made.turns:,} turns", rows)
    report.note(f"To observe them took {observe_s:.0f} s.")


def _compare_rates(daemon: Daemon) -> dict[str, Any]:
    """Return at which rate the daemon makes the vectors that lack, and the model alone those of some of these texts.

    The model is measured on one thread, as in `bench_embed.py`, and on as many as the daemon has.
    """
    with closing(sqlite3.connect(f"file:{daemon.data / 'memoryd.sqlite'}?mode=ro", uri=True)) as connection:
        began, before = time.perf_counter(), _count_vectors(connection)
        wait_for_vectors(daemon)
        took_s, made = time.perf_counter() - began, _count_vectors(connection) - before
        texts = [text for (text,) in connection.execute(_EMBEDDED)]
    embedder = load(DEFAULT, model_dir())
    sample = random.Random(5).sample(texts, min(_SAMPLE, len(texts)))
    embedder.embed_texts(sample[:20])
    one_thread = len(sample) * 1000 / timed(lambda: embedder.embed_texts(sample))
    with ThreadPoolExecutor(linux.count_processors()) as pool:
        whole_ms = timed(lambda: list(pool.map(lambda text: embedder.embed_texts([text]), sample)))
    all_threads = len(sample) * 1000 / whole_ms
    rate = made / took_s
    return {
        "there": before,
        "made": made,
        "s": took_s,
        "per s": rate,
        "model on one thread": one_thread,
        "share %": 100 * rate / one_thread,
        "on all": all_threads,
        "share of these %": 100 * rate / all_threads,
    }


def _count_vectors(connection: sqlite3.Connection) -> int:
    (count,) = connection.execute("SELECT count(*) FROM vec_embeddings").fetchone()
    return int(count)


def _choose_questions(made: MadeHome) -> list[tuple[str, str]]:
    """Return words of questions with the text that answers each."""
    pairs = [pair for _, _, said in made.said for pair in said if pair[0].startswith("What is the ")]
    chosen = random.Random(3).sample(pairs, min(_QUESTIONS, len(pairs)))
    return [(asked.removeprefix("What is the ").replace(" service", ""), answer) for asked, answer in chosen]


def _count_hits(client: Client, questions: list[tuple[str, str]]) -> float:
    """Return the share of questions whose answer is among the first hits."""
    found = 0
    for question, answer in questions:
        found += any(hit.content == answer for hit in client.search(question, limit=_HITS, reach="all"))
    return found / max(1, len(questions))


def _start(daemon: Daemon, home: Path, *words: str) -> "subprocess.Popen[bytes]":
    environment = {**daemon.environment, "HOME": str(home)}
    command = [sys.executable, "-m", "memoryd.client.programs.memctl", "backfill", "--json", "--timeout", "600", *words]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, cwd=home)


def take_in(daemon: Daemon, home: Path, *words: str) -> tuple[float, dict[str, Any]]:
    """Run `memctl backfill` for a home folder; return its seconds and what it reports."""
    began = time.perf_counter()
    out, _ = _start(daemon, home, *words).communicate()
    return time.perf_counter() - began, json.loads(out)


def _measure_killed(report: Report, daemon: Daemon, home: Path, made: MadeHome) -> None:
    """Kill a run three times while somebody searches, then make it twice; report the sums and the searches."""
    with daemon.client() as client:
        take_in(daemon, home, "--agent", "gemini", "--since", "2030-01-01")  # so that memctl is warm
        rows = []
        with _searching(daemon) as times:
            for number in range(_KILLS):
                running = _start(daemon, home)
                while client.stats().memories < made.turns * (number + 1) // (_KILLS + 2):
                    time.sleep(0.02)
                running.kill()
                running.communicate()
            _, done = take_in(daemon, home)
        rows.append({"searches": "beside", "p50 ms": percentile(times, 50), "p95 ms": percentile(times, 95)})
        _, again = take_in(daemon, home)
        with _searching(daemon) as times:
            time.sleep(_REST_S)
        rows.append({"searches": "alone", "p50 ms": percentile(times, 50), "p95 ms": percentile(times, 95)})
        report.table("Searches beside a backfill, and alone after it", rows)
        stored = client.stats().memories
        operations = [one for one in client.operations(limit=100) if one.kind == "backfill" and one.memories]
        read = sum(project["turns"] for project in done["projects"])
        left_out = sum(number for reason, number in done["left_out"].items() if reason not in _OF_FILES)
    report.note(
        f"Killed {_KILLS} times: {stored:,} stored in {len(operations)} operation, of which {done['taken']:,} by the"
        f" last run and {done['known']:,} before; {left_out:,} left out; once more {again['taken']:,} taken in."
    )
    assert stored == done["taken"] + done["known"] == read - left_out, "the sums do not agree"
    assert (again["taken"], len(operations)) == (0, 1), "something was taken in twice"


@contextmanager
def _searching(daemon: Daemon) -> Iterator[list[float]]:
    """Search ten times a second until the block ends; give the milliseconds of each."""
    times: list[float] = []
    ended = threading.Event()

    def search() -> None:
        with daemon.client() as client:
            number = 0
            while not ended.wait(0.1):
                number += 1
                began = time.perf_counter()
                client.search(f"which cache size has the billing module of ticket {number}", reach="all")
                times.append((time.perf_counter() - began) * 1000)

    searching = threading.Thread(target=search)
    searching.start()
    try:
        yield times
    finally:
        ended.set()
        searching.join()


def _observe(daemon: Daemon, made: MadeHome) -> float:
    """Observe all that was said, as hooks would have done; return the seconds."""
    began = time.perf_counter()
    for project, session, said in made.said:
        with daemon.client(project) as client:
            turns = [turn for asked, answer in said for turn in (("user", asked), ("assistant", answer))]
            client.observe([{"role": role, "content": text} for role, text in turns], session=session)
    return time.perf_counter() - began


def wait_for_vectors(daemon: Daemon) -> None:
    """Wait until everything has its vectors."""
    with daemon.client() as client:
        while client.status().pending_embeddings:
            time.sleep(0.5)


if __name__ == "__main__":
    os.environ.pop("MEMORYD_NAMESPACE", None)
    main()

"""Ask for what is known of one person, or of a small project, where little is stored: five to 25 facts each.

`python tests/benchmarks/bench_people.py FILE` (such as `tests/data/people/seen.jsonl`): each line is
`{"facts": [text], "questions": [{"q": text, "answer": [index of a fact]}]}`, and has a namespace of its own.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

import harness

from memoryd.client.confidence import FLOOR
from memoryd.client.protocol import Hit

MODES = ("hybrid", "dense", "lexical")
LIMIT = 10
ANOTHER = 3  # lines on is the one whose questions are asked of somebody of whom nothing answers them


def main(path: Path) -> None:
    """Print a table with a row for each mode, in %."""
    people = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    with harness.running() as daemon:
        for number, person in enumerate(people):
            with daemon.client(place(number)) as client:
                for index, fact in enumerate(person["facts"]):
                    client.put(key(index), fact)
        rows = [measure(daemon, people, mode) for mode in MODES]
    print(harness.markdown(rows))


def place(number: int) -> str:
    """Return the namespace of a person."""
    return f"people/{number}"


def key(index: int) -> str:
    """Return the key of a fact."""
    return f"fact-{index}"


def measure(daemon: harness.Daemon, people: list[dict[str, Any]], mode: str) -> dict[str, Any]:
    """Ask everybody's questions, and those of another one."""
    ranks: list[int] = []
    sure, silent = [], []
    for number, person in enumerate(people):
        with daemon.client(place(number)) as client:
            for question in person["questions"]:
                hits = client.search(question["q"], limit=LIMIT, mode=mode).hits
                right = {key(index) for index in question["answer"]}
                ranks.append(next((rank for rank, hit in enumerate(hits, start=1) if hit.key in right), 0))
                sure.append(any(is_sure(hit) for hit in hits if hit.key in right))
            for question in people[(number + ANOTHER) % len(people)]["questions"]:
                hits = client.search(question["q"], limit=LIMIT, mode=mode).hits
                silent.append(not any(map(is_sure, hits)))
    shares = {
        "at rank 1": [rank == 1 for rank in ranks],
        "among 3": [0 < rank <= 3 for rank in ranks],
        "MRR": [1 / rank if rank else 0 for rank in ranks],
        "above the floor": sure,
        "another one's questions: nothing above it": silent,
    }
    return {"mode": mode, "questions": len(ranks)} | {name: round(100 * fmean(of), 1) for name, of in shares.items()}


def is_sure(hit: Hit) -> bool:
    """Return whether `memctl search` shows a hit."""
    return hit.confidence >= FLOOR


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Ask for what is known of one person, or of a small project, where little is stored: five to 25 facts each.

python tests/quality/people.py FILE

Each line of the file (such as `tests/data/people/seen.jsonl`) is
`{"facts": [text], "questions": [{"q": text, "answer": [index of a fact]}]}` and has a namespace of its own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from temporary import EvaluatedDaemon, run_daemon

from memoryd.client.confidence import FLOOR
from memoryd.client.protocol import Hit

MODES = ("hybrid", "dense", "lexical")
LIMIT = 10
ANOTHER = 3  # lines on is the one whose questions are asked of somebody of whom nothing answers them


def main(path: Path) -> None:
    """Print the figures of each mode, in %."""
    people = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    with run_daemon() as (place, _):
        for number, person in enumerate(people):
            with place.connect(namespace_of(number)) as client:
                for index, fact in enumerate(person["facts"]):
                    client.put(key_of(index), fact)
        place.wait_until_ready()
        for mode in MODES:
            for name, share in measure(place, people, mode).items():
                print(f"{mode:<8} {name:<42} {100 * share:5.1f}")


def namespace_of(number: int) -> str:
    """Return the namespace of a person."""
    return f"people/{number}"


def key_of(index: int) -> str:
    """Return the key of a fact."""
    return f"fact-{index}"


def measure(place: EvaluatedDaemon, people: Sequence[dict[str, Any]], mode: str) -> dict[str, float]:
    """Ask everybody's questions, and those of another one; return shares by name."""
    ranks: list[int] = []
    sure, silent = [], []
    for number, person in enumerate(people):
        with place.connect(namespace_of(number)) as client:
            for question in person["questions"]:
                hits = client.search(question["q"], limit=LIMIT, mode=mode).hits
                right = {key_of(index) for index in question["answer"]}
                ranks.append(next((rank for rank, hit in enumerate(hits, start=1) if hit.key in right), 0))
                sure.append(any(is_sure(hit) for hit in hits if hit.key in right))
            for question in people[(number + ANOTHER) % len(people)]["questions"]:
                hits = client.search(question["q"], limit=LIMIT, mode=mode).hits
                silent.append(not any(map(is_sure, hits)))
    return {
        "at rank 1": fmean(rank == 1 for rank in ranks),
        "among 3": fmean(0 < rank <= 3 for rank in ranks),
        "MRR": fmean(1 / rank if rank else 0 for rank in ranks),
        "above the floor": fmean(sure),
        "another one's questions: nothing above it": fmean(silent),
    }


def is_sure(hit: Hit) -> bool:
    """Return whether `memctl search` shows a hit."""
    return hit.confidence >= FLOOR


if __name__ == "__main__":
    main(Path(sys.argv[1]))

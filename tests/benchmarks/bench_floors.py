"""Measure what a model's cosines mean, to check what its calibration says of it.

`python tests/benchmarks/bench_floors.py MODEL [CONVERSATIONS]`: prints quantiles of the cosine for pairs whose relation
is known. CONVERSATIONS is a LongMemEval-like gzip file of JSON lines (`question`, `sessions` with `turns`, gold turns
marked `has_answer`); without it only the hand-written pairs are measured.

How the floors of the default model followed, which calibration carries over to others (`models/calibration`):
- `duplicate`: the median of rephrasings, far above different statements about one thing. No cosine separates
  look-alikes that differ in a number, a name or a negation: the daemon's guard compares those as text.
- `relevant`: between the 99th and the 99.9th percentile of questions with turns of other conversations.
- `join`, `merge`: bench_join.py measures them. A first estimate of `join` is halfway between the 99th percentile of
  unrelated turns and the median of rephrasings, of `merge` a little above `duplicate`.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memoryd.models import Embedder, default_models_dir, load, pull

REPHRASED = (
    ("The user prefers dark mode in every editor", "In all editors the user likes dark mode better"),
    ("We use Valkey instead of Redis for caching", "For caching we use Valkey, not Redis"),
    ("Tests must pass before merging to main", "Nothing is merged to main before the tests pass"),
    ("Anna is allergic to peanuts", "Anna has a peanut allergy"),
    ("The API rate limit is 100 requests per minute", "The API allows 100 requests per minute"),
    ("Deployments happen every Friday afternoon", "We deploy each Friday in the afternoon"),
    ("The database password is stored in Vault", "Vault is where the database password is kept"),
    ("He moved from Berlin to Lisbon in March", "In March he relocated from Berlin to Lisbon"),
    (
        "Restarting the worker fixes the memory leak for a while",
        "The memory leak goes away for a while after restarting the worker",
    ),
    ("Never commit generated files", "Generated files must never be committed"),
    ("The frontend is written in TypeScript with React", "The frontend uses React and TypeScript"),
    ("The user wants short answers", "The user likes answers to be brief"),
    ("Build times doubled after the compiler upgrade", "After upgrading the compiler, builds take twice as long"),
    ("My dog Biscuit is seven years old", "I have a seven-year-old dog called Biscuit"),
    ("The parser crashes on empty input", "Empty input makes the parser crash"),
    ("Invoices are sent on the first day of the month", "On the first of each month invoices go out"),
)
DIFFERENT = (
    ("The user prefers dark mode in every editor", "The user prefers tabs over spaces in every editor"),
    ("We use Valkey for caching", "We use PostgreSQL for storage"),
    ("Tests must pass before merging to main", "Every merge to main needs a review"),
    ("Anna is allergic to peanuts", "Anna is learning Portuguese"),
    ("The API rate limit is per user", "The API needs an authentication token per user"),
    ("Deployments happen every Friday afternoon", "The team has lunch together every Friday"),
    ("The database password is stored in Vault", "The database is backed up every night"),
    ("He moved from Berlin to Lisbon in March", "He wants to visit Berlin in spring"),
    ("Restarting the worker fixes the memory leak", "The worker needs four gigabytes of memory"),
    ("Never commit generated files", "Generated files are written to the build folder"),
    ("The frontend is written in TypeScript", "The frontend is deployed to a CDN"),
    ("The user wants short answers", "The user wants answers in French"),
    ("Builds got slower after the compiler upgrade", "The compiler upgrade fixed the linker warnings"),
    ("My dog Biscuit is seven years old", "My dog Biscuit loves swimming"),
    ("The parser crashes on empty input", "The parser is slow on large input"),
    ("Invoices are sent on the first of the month", "Invoices are paid within thirty days"),
)
LOOK_ALIKE = (
    ("We run PostgreSQL 14 in production", "We run PostgreSQL 15 in production"),
    ("Force pushing is allowed", "Force pushing is not allowed"),
    ("The timeout is 30 s", "The timeout is 60 s"),
    ("Anna owns the billing service", "Maria owns the billing service"),
    ("The meeting is on Monday", "The meeting is on Tuesday"),
)
QUANTILES = (0.01, 0.1, 0.5, 0.9, 0.99, 0.999)
PER_QUESTION = 40


def main(name: str, conversations: Path | None) -> None:
    """Print the table."""
    pull(name, default_models_dir())
    model = load(name, default_models_dir())
    print(f"| {name} |", " | ".join(f"p{q * 100:g}" for q in QUANTILES), "|")
    print("|---" * (len(QUANTILES) + 1) + "|")
    for label, pairs in (("rephrased", REPHRASED), ("different", DIFFERENT), ("look-alike", LOOK_ALIKE)):
        left, right = (model.embed_texts([pair[side] for pair in pairs]) for side in (0, 1))
        _print(label, (left * right).sum(axis=1))
    if conversations is not None:
        _measure_conversations(model, conversations)


def _measure_conversations(model: Embedder, path: Path) -> None:
    chance = random.Random(0)
    with gzip.open(path, "rt") as file:
        records = [json.loads(line) for line in file]
    questions = np.stack([model.embed_query(record["question"]) for record in records])
    gold, other, neighbours = [], [], []
    for record in records:
        sessions = chance.sample(record["sessions"], min(PER_QUESTION, len(record["sessions"])))
        other.append(model.embed_texts([chance.choice(session["turns"])["content"] for session in sessions]))
        gold.append(model.embed_texts(_gold(record)))
        turns = [turn["content"] for turn in chance.choice(sessions)["turns"][:3:2]]
        neighbours.append(model.embed_texts(turns) if len(turns) == 2 else np.empty((0, model.dimensions)))
    _print("question, gold turn", np.concatenate([g @ q for g, q in zip(gold, questions, strict=True)]))
    _print("question, best gold turn", np.array([max(g @ q) for g, q in zip(gold, questions, strict=True) if len(g)]))
    mixed = np.concatenate(other[1:] + other[:1]).reshape(-1, model.dimensions)
    _print("question, turn elsewhere", (questions @ mixed.T).ravel())
    _print("turns elsewhere", (other[0] @ mixed.T).ravel())
    _print("user turns of one session", np.array([pair[0] @ pair[1] for pair in neighbours if len(pair)]))


def _gold(record: dict[str, list[dict[str, list[dict[str, str]]]]]) -> list[str]:
    turns = (turn for session in record["sessions"] for turn in session["turns"])
    return [turn["content"] for turn in turns if turn.get("has_answer")]


def _print(label: str, cosines: NDArray[np.float32]) -> None:
    print(f"| {label} ({len(cosines)}) |", " | ".join(f"{value:.2f}" for value in np.quantile(cosines, QUANTILES)), "|")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]) if len(sys.argv) > 2 else None)

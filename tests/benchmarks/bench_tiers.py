"""What tiers and graph do to quality: the same conversations observed, and stored as one memory per turn.

Each question's conversations are seeded as turns into a namespace of its own, so that they go their whole way: rated,
from L0 to L1 or L2 by their importance, and clustered. Beside it every turn is
added as a memory of its own, all in L1. An exchange is what a user says and what is answered; figures count exchanges,
in %. The data set is that of `memctl bench eval`.

python tests/benchmarks/bench_tiers.py --data QUESTIONS.jsonl.gz [--questions N]
"""

import argparse
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from harness import markdown, progress, running

from memoryd.client import Client
from memoryd.client.bench.questions import Question, make_by_turn, read_questions, seconds_of
from memoryd.client.bench.scoring import hit_at, ndcg_at, rank_answers, recall_at
from memoryd.client.protocol import Hit, NewTurn
from memoryd.daemon.store.vectors import text_hash

LIMIT = 10
PORTION = 400

Exchange = tuple[int, int]  # number of the session, number of the turn that opens it


class Case(NamedTuple):
    """How a question is asked: in which namespace, with what, and how its hits name exchanges."""

    name: str
    below: str
    options: dict[str, Any]


CASES = (
    Case("turns as memories, all in L1", "one", {"graph": False}),
    Case("observed, all tiers, no graph", "tiers", {"graph": False}),
    Case("observed, all tiers and graph", "tiers", {}),
    Case("… asked again: topics have met", "tiers", {}),
)


def main() -> None:
    """Store, consolidate, ask."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="the questions: a .jsonl or .jsonl.gz file")
    parser.add_argument("--questions", type=int, help="only the first N")
    given = parser.parse_args()
    asked = [
        question
        for question in read_questions(given.data)
        if any(t.has_answer for s in question.sessions for t in s.turns)
    ]
    asked = asked[: given.questions]
    with running() as daemon, daemon.client() as client:
        for number, question in enumerate(asked):
            progress(f"storing question {number + 1} of {len(asked)}")
            _store(daemon, question)
        _settle(client)
        done = client.consolidate()
        print(f"Consolidated in {done.took_ms / 1000:.0f} s: {done}\n")
        _settle(client)
        rows = []
        for case in CASES:
            scores = [_ask(daemon, question, case) for question in asked]
            rows.append({"stored and asked": case.name, **_means(scores)})
            time.sleep(2)  # what the searches left behind is written
        print(markdown(rows))


def _settle(client: Client) -> None:
    while waiting := client.status().pending_embeddings:
        progress(f"{waiting} memories wait for a vector")
        time.sleep(5)


def _store(daemon: Any, question: Question) -> None:
    with daemon.client(f"one/{question.id}") as client:
        client.add_many((item.what for item in make_by_turn(question).items), dedup=False)
    with daemon.client(f"tiers/{question.id}") as client:
        for place, session in enumerate(question.sessions):
            at = seconds_of(session.date)
            turns = [
                NewTurn(
                    role=turn.role, content=turn.content, created_at=at + 30 * number, id=_id(question, place, number)
                )
                for number, turn in enumerate(session.turns)
                if turn.content.strip()
            ]
            for start in range(0, len(turns), PORTION):
                client.seed(turns=turns[start : start + PORTION], session=session.id)


def _id(question: Question, place: int, number: int) -> str:
    return text_hash(f"{question.id} {place} {number}").hex()[:32]


def _ask(daemon: Any, question: Question, case: Case) -> dict[str, float]:
    opened = _exchanges(question)
    by_id = {_id(question, *turn): exchange for turn, exchange in opened.items()}
    gold = dict.fromkeys(
        frozenset([opened[place, number]])
        for place, session in enumerate(question.sessions)
        for number, turn in enumerate(session.turns)
        if turn.has_answer
    )
    with daemon.client(f"{case.below}/{question.id}") as client:
        hits = client.search(question.question, limit=LIMIT, reach="exact", **case.options)
    keys = {session.id: place for place, session in enumerate(question.sessions)}
    found = rank_answers([frozenset(_of(hit, by_id, opened, keys)) for hit in hits], list(gold))
    return {"recall@10": recall_at(LIMIT, found), "hit@5": hit_at(5, found), "nDCG@10": ndcg_at(LIMIT, found)}


def _exchanges(question: Question) -> dict[tuple[int, int], Exchange]:
    """Return for each turn the exchange that it belongs to."""
    opened: dict[tuple[int, int], Exchange] = {}
    for place, session in enumerate(question.sessions):
        first = 0
        for number, turn in enumerate(session.turns):
            first = number if turn.role == "user" else first
            opened[place, number] = (place, first)
    return opened


def _of(
    hit: Hit, by_id: dict[str, Exchange], opened: dict[tuple[int, int], Exchange], keys: dict[str, int]
) -> Iterable[Exchange]:
    if "turn" in hit.metadata:
        return [opened[keys[hit.metadata["session"]], hit.metadata["turn"]]]
    ids = [hit.id, *(one.id for one in hit.related if one.content)]
    return dict.fromkeys(by_id[id] for id in ids if id in by_id)


def _means(scores: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: 100 * fmean(score[name] for score in scores) for name in scores[0]}


if __name__ == "__main__":
    main()

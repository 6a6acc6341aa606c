"""Ask every question of a data set and judge the answers. No printing here, except through a progress bar."""

import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from statistics import fmean
from typing import NamedTuple

import msgspec

from memoryd.client.memctl.bench.dataset import WAYS, Question
from memoryd.client.memctl.bench.metrics import hit_at, ndcg_at, percentile, recall_at, reciprocal_rank
from memoryd.client.memctl.progress import ProgressBar
from memoryd.client.memctl.service import wait_until_ready
from memoryd.client.protocol import Delete
from memoryd.client.sync import Client

LIMIT = 10
DELETE_CHUNK = 500
WAIT_S = 3600.0

Connect = Callable[[str], Client]


class Score(msgspec.Struct):
    """How one question was answered."""

    question: str
    type: str
    way: str
    memories: int
    recall_1: float
    recall_5: float
    recall_10: float
    hit_5: float
    ndcg_10: float
    mrr: float
    latency_ms: float


class Summary(msgspec.Struct):
    """The means over some questions, and percentiles of the search call as the client sees it."""

    questions: int
    memories: int
    recall_1: float
    recall_5: float
    recall_10: float
    hit_5: float
    ndcg_10: float
    mrr: float
    p50_ms: float
    p95_ms: float


class _Stored(NamedTuple):
    """What is stored for one question: where, the key of each id, the keys of the right answers."""

    question: Question
    way: str
    namespace: str
    keys: dict[str, Hashable]
    gold: frozenset[Hashable]


def evaluate(connect: Connect, questions: Sequence[Question], ways: Sequence[str], run: str, keep: bool) -> list[Score]:
    """Store every question's memories in a namespace of its own below `bench-eval/RUN`, then ask them all.

    All are stored before the first is asked: in one database, as in real use, words are weighed by all of it.
    """
    stored: list[_Stored] = []
    try:
        with ProgressBar("storing", len(ways) * len(questions)) as progress:
            for way in ways:
                for question in questions:
                    progress.update(len(stored), label=f"storing, by {way}")
                    stored += _store(connect, question, way, f"bench-eval/{run}/{question.id}/{way}")
        with connect("") as client:
            wait_until_ready(client, WAIT_S)
        with ProgressBar("asking", len(stored)) as progress:
            return [_ask(connect, part, partial(progress.update, done)) for done, part in enumerate(stored)]
    finally:
        if not keep:
            for part in stored:
                _delete(connect, part)


def _store(connect: Connect, question: Question, way: str, namespace: str) -> list[_Stored]:
    """Store a question's memories; a question that has none, or no right answer among them, is left out."""
    items, gold = WAYS[way](question)
    if not gold or not items:
        return []
    with connect(namespace) as client:
        added = client.add_many((item.memory for item in items), dedup=False)
    keys = {result.id: item.key for result, item in zip(added, items, strict=True)}
    return [_Stored(question, way, namespace, keys, gold)]


def _ask(connect: Connect, part: _Stored, show_progress: Callable[[], None]) -> Score:
    show_progress()
    with connect(part.namespace) as client:
        client.status()  # opens the connection, which is not what is timed
        started = time.perf_counter()
        hits = client.search(part.question.question, limit=LIMIT, reach="exact")
        latency_ms = (time.perf_counter() - started) * 1000
    ranked = list(dict.fromkeys(part.keys[hit.id] for hit in hits))
    return Score(
        question=part.question.id,
        type=part.question.type,
        way=part.way,
        memories=len(part.keys),
        recall_1=recall_at(1, ranked, part.gold),
        recall_5=recall_at(5, ranked, part.gold),
        recall_10=recall_at(10, ranked, part.gold),
        hit_5=hit_at(5, ranked, part.gold),
        ndcg_10=ndcg_at(10, ranked, part.gold),
        mrr=reciprocal_rank(ranked, part.gold),
        latency_ms=latency_ms,
    )


def _delete(connect: Connect, part: _Stored) -> None:
    ids = list(part.keys)
    with connect(part.namespace) as client:
        for start in range(0, len(ids), DELETE_CHUNK):
            client.call(Delete(ids=ids[start : start + DELETE_CHUNK]))


def summary(scores: Iterable[Score]) -> Summary:
    """Return means and percentiles of some scores, at least one."""
    chosen = list(scores)
    names = ("recall_1", "recall_5", "recall_10", "hit_5", "ndcg_10", "mrr")
    latencies = [score.latency_ms for score in chosen]
    return Summary(
        questions=len(chosen),
        memories=sum(score.memories for score in chosen),
        p50_ms=percentile(latencies, 0.5),
        p95_ms=percentile(latencies, 0.95),
        **{name: fmean(getattr(score, name) for score in chosen) for name in names},
    )

"""Ask every question of a data set and judge the answers. No printing here, except through a progress bar."""

import time
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean

import msgspec

from memoryd.client.memctl.bench.dataset import WAYS, Item, Material, Question
from memoryd.client.memctl.bench.metrics import hit_at, ndcg_at, percentile, recall_at, reciprocal_rank
from memoryd.client.memctl.progress import ProgressBar
from memoryd.client.memctl.service import wait_until_ready
from memoryd.client.protocol import Delete, Progress
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


def evaluate(connect: Connect, questions: Sequence[Question], ways: Sequence[str], run: str, keep: bool) -> list[Score]:
    """Store, ask and judge each question in each way, each in a fresh namespace below `bench-eval/RUN`."""
    scores = []
    todo = [(way, question) for way in ways for question in questions]
    with ProgressBar("questions", len(todo)) as progress:
        for done, (way, question) in enumerate(todo):
            progress.update(done, label=f"{way}: {question.type}")
            material = WAYS[way](question)
            if not material.gold or not material.items:
                continue
            with connect(f"bench-eval/{run}/{question.id}/{way}") as client:
                scores.append(_ask(client, question, way, material, keep))
    return scores


def _ask(client: Client, question: Question, way: str, material: Material, keep: bool) -> Score:
    keys = _store(client, material.items)
    try:
        wait_until_ready(client, WAIT_S)
        started = time.perf_counter()
        hits = client.search(question.question, limit=LIMIT, reach="exact")
        latency_ms = (time.perf_counter() - started) * 1000
    finally:
        if not keep:
            _delete(client, list(keys))
    ranked = list(dict.fromkeys(keys[hit.id] for hit in hits))
    gold = material.gold
    return Score(
        question=question.id,
        type=question.type,
        way=way,
        memories=len(keys),
        recall_1=recall_at(1, ranked, gold),
        recall_5=recall_at(5, ranked, gold),
        recall_10=recall_at(10, ranked, gold),
        hit_5=hit_at(5, ranked, gold),
        ndcg_10=ndcg_at(10, ranked, gold),
        mrr=reciprocal_rank(ranked, gold),
        latency_ms=latency_ms,
    )


def _store(client: Client, items: Sequence[Item]) -> dict[str, object]:
    """Store the items and return the key of each id."""
    with ProgressBar("storing") as progress:

        def show(event: Progress) -> None:
            progress.update(event.done, event.total, event.stage)

        added = client.add_many((item.memory for item in items), dedup=False, on_progress=show)
    return {result.id: item.key for result, item in zip(added, items, strict=True)}


def _delete(client: Client, ids: Sequence[str]) -> None:
    for start in range(0, len(ids), DELETE_CHUNK):
        client.call(Delete(ids=list(ids[start : start + DELETE_CHUNK])))


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

"""How good answers are, against what is right, and the report of it.

Shares are 0..1; figures follow the usual definitions.

A memory may stand for several turns (a question with its answer, a fact drawn from two turns): found, it counts for
each of them. So all figures of a search come from one thing, the *ranks* of gold: for each right answer, the place of
the first hit that gives it. Of a context only what can be read there counts, whatever ids it has (`reading`).
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from math import inf, log2
from pathlib import Path
from statistics import fmean, median_low
from typing import Any

import msgspec
from printing import format_table, percent
from sets import WAYS

from memoryd.client.confidence import UNLIKELY, word_of
from memoryd.client.errors import Invalid

SMALL_TOKENS = 50  # a context of so many or fewer says next to nothing
KINDS = ("answer", "neighbours", "heads", "rest")  # what tokens are spent on

Keys = Collection[Hashable]
Gold = Sequence[frozenset[Hashable]]


# One question --------------------------------------------------------------------------------------------------------


def rank_answers(hits: Sequence[Keys], gold: Gold) -> list[float]:
    """Return for each right answer the place of the first hit that gives it, from 1; infinite where none does."""
    return [next((place for place, keys in enumerate(hits, 1) if not one.isdisjoint(keys)), inf) for one in gold]


def recall_at(k: int, found: Sequence[float]) -> float:
    """Return the share of the right answers that are among the first `k`."""
    return sum(rank <= k for rank in found) / len(found)


def hit_at(k: int, found: Sequence[float]) -> float:
    """Return 1 when any right answer is among the first `k`."""
    return float(min(found) <= k)


def ndcg_at(k: int, found: Sequence[float]) -> float:
    """Return the discounted gain (1 / log2(rank + 1) for each right answer) over that of a perfect ranking.

    The n-th right answer counts as at rank n at best, so that one hit that gives two of them is no better than perfect.
    """
    best = [max(rank, place) for place, rank in enumerate(sorted(found), 1)]
    perfect = range(1, min(k, len(found)) + 1)
    return sum(1 / log2(rank + 1) for rank in best if rank <= k) / sum(1 / log2(rank + 1) for rank in perfect)


def reciprocal_rank(found: Sequence[float]) -> float:
    """Return 1 / rank of the first right answer, 0 without one."""
    return 1 / min(found)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` of the values lie (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


class ContextScore(msgspec.Struct):
    """What a context of at most `max_tokens` gave, and how long it was.

    `hit`: any of the gold can be read there whole; `recall`: the share of the gold that can; `share`: of its words.
    `kinds`: tokens by what they are spent on (`KINDS`). `disputed`: it says of a memory that another disagrees with it.
    One that is `unasked` is what a hook gives to a prompt.
    """

    max_tokens: int
    latency_ms: float
    hit: float = 0.0
    recall: float = 0.0
    share: float = 0.0
    tokens: int = 0
    kinds: dict[str, int] = {}
    unasked: bool = False
    disputed: bool = False


class RankingFigures(msgspec.Struct, kw_only=True):
    """The figures of a ranking, or their means over several."""

    recall_1: float
    recall_5: float
    recall_10: float
    hit_1: float
    hit_5: float
    ndcg_10: float
    mrr: float
    all_5: float


class Score(RankingFigures, kw_only=True):
    """How one question was answered. `gold` counts its right answers: 0 for a question that nothing answers.

    `kept` is the share of the gold that is still there in any form, found or not; `confidence` that of the first hit.
    """

    question: str
    type: str
    way: str
    memories: int
    latency_ms: float
    empty: bool = False
    kept: float = 0.0
    gold: int = 1
    language: str = ""
    store: str = ""
    confidence: float | None = None
    contexts: list[ContextScore] = []


def rank_figures(hits: Sequence[Keys], gold: Gold) -> dict[str, float]:
    """Return the figures of a ranking by name; all 0 where nothing is right."""
    found = rank_answers(hits, gold) or [inf]
    return {
        "recall_1": recall_at(1, found),
        "recall_5": recall_at(5, found),
        "recall_10": recall_at(10, found),
        "hit_1": hit_at(1, found),
        "hit_5": hit_at(5, found),
        "all_5": float(max(found) <= 5),
        "ndcg_10": ndcg_at(10, found),
        "mrr": reciprocal_rank(found),
    }


def share_held(keys: Keys, gold: Gold) -> float:
    """Return the share of the right answers that some keys give; 0 where nothing is right."""
    return fmean(not one.isdisjoint(keys) for one in gold) if gold else 0.0


# Many questions ------------------------------------------------------------------------------------------------------


class ContextSummary(msgspec.Struct):
    """The means over contexts of one size: share with any gold, share of the gold, tokens; median and small ones.

    `share` is that of the gold's words, `kinds` that of the tokens, `disputed` that of the contexts that claim a
    disagreement.
    """

    hit: float
    recall: float
    share: float
    tokens: float
    kinds: dict[str, float]
    median_tokens: int
    small: float
    p50_ms: float
    disputed: float = 0.0


class Summary(RankingFigures, kw_only=True):
    """The means over some questions, and percentiles of the search call as the client sees it."""

    questions: int
    memories: int
    p50_ms: float
    p95_ms: float
    empty: float
    kept: float
    contexts: dict[str, ContextSummary]


class Unanswerable(msgspec.Struct):
    """The same of questions that nothing answers: an empty result is right, and so is a small context."""

    questions: int
    empty: float
    contexts: dict[str, ContextSummary]


class RightShare(msgspec.Struct):
    """Of how many questions the first result had a word for its confidence, and the share in which it was right."""

    questions: int
    right: float


_MEANS = (*RankingFigures.__struct_fields__, "empty", "kept")


def summarise(scores: Iterable[Score]) -> Summary:
    """Return means and percentiles of some scores, at least one."""
    chosen = list(scores)
    latencies = [score.latency_ms for score in chosen]
    return Summary(
        questions=len(chosen),
        memories=sum({score.store or score.question: score.memories for score in chosen}.values()),
        p50_ms=percentile(latencies, 0.5),
        p95_ms=percentile(latencies, 0.95),
        contexts=_summarise_contexts(chosen),
        **{name: fmean(getattr(score, name) for score in chosen) for name in _MEANS},
    )


def count_right(scores: Iterable[Score]) -> dict[str, RightShare]:
    """Return by word how often a first result is right; where nothing answers a question, it is wrong."""
    found: dict[str, list[float]] = {"likely": [], "maybe": [], "a guess": [], UNLIKELY: []}
    for score in scores:
        if score.confidence is not None:
            found[word_of(score.confidence)].append(score.hit_1)
    return {word: RightShare(len(right), fmean(right)) for word, right in found.items() if right}


def summarise_unanswerable(scores: Sequence[Score]) -> Unanswerable:
    """Return what became of questions that nothing answers, at least one."""
    return Unanswerable(len(scores), fmean(score.empty for score in scores), _summarise_contexts(scores))


def _summarise_contexts(scores: Sequence[Score]) -> dict[str, ContextSummary]:
    names = [f"{one.max_tokens}{' unasked' if one.unasked else ''}" for one in scores[0].contexts]
    return {name: _summarise_context([score.contexts[place] for score in scores]) for place, name in enumerate(names)}


def _summarise_context(made: Sequence[ContextScore]) -> ContextSummary:
    spent = sum(sum(one.kinds.values()) for one in made) or 1
    return ContextSummary(
        hit=fmean(one.hit for one in made),
        recall=fmean(one.recall for one in made),
        share=fmean(one.share for one in made),
        tokens=fmean(one.tokens for one in made),
        kinds={kind: sum(one.kinds.get(kind, 0) for one in made) / spent for kind in KINDS},
        median_tokens=median_low([one.tokens for one in made]),
        small=fmean(one.tokens <= SMALL_TOKENS for one in made),
        p50_ms=percentile([one.latency_ms for one in made], 0.5),
        disputed=fmean(one.disputed for one in made),
    )


def _summarise_groups(scores: Sequence[Score], by: Callable[[Score], str]) -> dict[str, Summary]:
    return {name: summarise(one for one in scores if by(one) == name) for name in sorted({by(one) for one in scores})}


# The report ----------------------------------------------------------------------------------------------------------


def make_report(path: Path, model: str, ways: Sequence[str], scores: list[Score], took_s: float) -> dict[str, Any]:
    """Return all figures: per way the total and each type of question, and each question on its own."""
    parts = {way: _make_part(path, way, [score for score in scores if score.way == way]) for way in ways}
    return {"data": str(path), "model": model, "took_s": round(took_s, 1), "ways": parts, "questions": scores}


def _make_part(path: Path, way: str, scores: Sequence[Score]) -> dict[str, Any]:
    right = [score for score in scores if score.gold]
    wrong = [score for score in scores if not score.gold]
    if not right:
        raise Invalid(f"{path} holds no question with an answer to find by {way}.")
    words = count_right(scores)
    part: dict[str, Any] = {
        "total": summarise(right),
        "words": words,
        "by_type": _summarise_groups(right, lambda score: score.type),
    }
    if any(score.language for score in right):
        part["by_language"] = _summarise_groups(right, lambda score: score.language)
    if wrong:
        part["unanswerable"] = summarise_unanswerable(wrong)
    return part


def report_text(report: dict[str, Any]) -> str:
    """Return the report as tables."""
    lines = [f"{report['data']}, model {report['model']}, {report['took_s']:.0f} s in all; figures in %"]
    for way, part in report["ways"].items():
        total: Summary = part["total"]
        lines.append(f"\n{WAYS[way]}, {total.memories:,} memories")
        lines.append(_types_text({**part["by_type"], **part.get("by_language", {}), "total": total}))
        words = (f"{word} {percent(one.right)} of {one.questions}" for word, one in part["words"].items())
        lines.append(f"first results that are right: {', '.join(words)}")
        lines.append(_contexts_text(total.contexts))
        if wrong := part.get("unanswerable"):
            lines.append(f"{wrong.questions} questions that nothing answers, no result: {percent(wrong.empty)}")
            lines.append(_contexts_text(wrong.contexts))
    return "\n".join(lines)


def _types_text(parts: dict[str, Summary]) -> str:
    shares = {"R@1": "recall_1", "R@5": "recall_5", "R@10": "recall_10", "HIT@1": "hit_1", "HIT@5": "hit_5"}
    shares |= {"NDCG@10": "ndcg_10", "MRR": "mrr", "KEPT": "kept"}
    rows = [
        [
            name,
            f"{part.questions}",
            *(percent(getattr(part, share)) for share in shares.values()),
            f"{part.p50_ms:.1f}",
            f"{part.p95_ms:.1f}",
        ]
        for name, part in parts.items()
    ]
    return format_table(["TYPE", "ASKED", *shares, "P50 MS", "P95 MS"], rows)


def _contexts_text(contexts: dict[str, ContextSummary]) -> str:
    headers = ["CONTEXT", "ANY GOLD", "GOLD", "WORDS", "TOKENS", "MEDIAN", *map(str.upper, KINDS), "DISPUTED", "P50 MS"]
    rows = [
        [
            name,
            *map(percent, (one.hit, one.recall, one.share)),
            f"{one.tokens:.0f}",
            f"{one.median_tokens}",
            *map(percent, (*one.kinds.values(), one.disputed)),
            f"{one.p50_ms:.1f}",
        ]
        for name, one in contexts.items()
    ]
    return format_table(headers, rows)

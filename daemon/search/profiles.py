"""Profiles: named formulas that combine cosine, BM25, age, accesses and importance into one score.

`default` is our own. The others reproduce published systems; where such a formula says "half-life" but computes with a
time constant, it is kept as published and a comment says so. Ages are in days and never negative: a date in the future
counts as now. Pinned memories do not age.
"""

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import L2

DAY_S = 86_400.0
_MAX_HALVINGS = 1000.0
_DATED = re.compile(r"(?:^|/)(\d{4}-\d\d-\d\d|\d{8})\.md$")

# Formulas ------------------------------------------------------------------------------------------------------------


def elapsed_days(then: float, now: float) -> float:
    """Return the days from `then` to `now`, 0 if it is not past yet."""
    return max(0.0, now - then) / DAY_S


def decay_factor(age_days: float, half_life_days: float) -> float:
    """Return 2^(-age / half-life): one half after one half-life. The same as exp(-ln 2 / half-life x age).

    It is never below 2^-1000, and so never 0: among very old memories the better match still comes first.
    """
    return float(2.0 ** -min(age_days / half_life_days, _MAX_HALVINGS))


def saturate(bm25: float, full: float) -> float:
    """Return BM25 / (1 + BM25), memweave's way into 0..1."""
    del full
    return bm25 / (1.0 + bm25)


def normalise(bm25: float, full: float) -> float:
    """Return BM25 as a share of `full`, the score that counts as 1."""
    return bm25 / full if full > 0 else 0.0


def memori_factor(access_count: int, unread_days: float | None) -> float:
    """Return (1 + 0.1 ln(1 + accesses)) x exp(-0.01 x days since the last access); no decay if never accessed.

    One half after ln 2 / 0.01 = 69.3 days.
    """
    decay = 1.0 if unread_days is None else math.exp(-0.01 * unread_days)
    return (1.0 + 0.1 * math.log1p(access_count)) * decay


def swarm_factor(age_days: float, access_count: int, unread_days: float | None) -> float:
    """Return 2^(-age / 14) x (1 + min(accesses / 10, 0.5) x r); r is 1 within 48 h of the last access, else 0.5."""
    fresh = unread_days is not None and unread_days <= 2.0
    return decay_factor(age_days, 14.0) * (1.0 + min(access_count / 10.0, 0.5) * (1.0 if fresh else 0.5))


def cache_score(similarity: float, age_days: float, importance: float, time_constant_days: float) -> float:
    """Return 0.6 similarity + 0.3 exp(-age / constant) + 0.1 importance; the constant is 7 d in L1, 30 d in L2."""
    return 0.6 * similarity + 0.3 * math.exp(-age_days / time_constant_days) + 0.1 * importance


def member_score(similarity: float, age_days: float, importance: float) -> float:
    """Return 0.5 similarity + 0.3 recency + 0.2 importance: how `cache` ranks within a node."""
    return 0.5 * similarity + 0.3 * math.exp(-age_days / 30.0) + 0.2 * importance


# Applying them -------------------------------------------------------------------------------------------------------


class Facet(NamedTuple):
    """The values of one candidate that a profile scores."""

    score: float  # fused
    similarity: float
    row: Row
    now: float
    half_life_days: float | None  # of the call
    by_graph: bool


def date_in(path: str | None) -> float | None:
    """Return the date in the name of a daily file (YYYY-MM-DD.md, YYYYMMDD.md) in UTC seconds, None for other paths."""
    match = _DATED.search(path or "")
    try:
        return datetime.fromisoformat(match[1]).replace(tzinfo=UTC).timestamp() if match else None
    except ValueError:
        return None


def age_days(row: Row, now: float) -> float:
    """Return the age of a memory: of its daily file if it is from one, 0 if it is pinned or from any other file."""
    if row.pinned:
        return 0.0
    date = date_in(row.path) if row.path else row.created_at
    return 0.0 if date is None else elapsed_days(date, now)


def _score_default(facet: Facet) -> float:
    """Return the fused score; age counts only if the call gives a half-life."""
    if facet.half_life_days is None:
        return facet.score
    return facet.score * decay_factor(age_days(facet.row, facet.now), facet.half_life_days)


def _score_memweave(facet: Facet) -> float:
    if facet.row.pinned or (date := date_in(facet.row.path)) is None:
        return facet.score
    return facet.score * decay_factor(elapsed_days(date, facet.now), facet.half_life_days or 30.0)


def _score_memori(facet: Facet) -> float:
    return facet.score * memori_factor(facet.row.access_count, _unread_days(facet))


def _score_swarm(facet: Facet) -> float:
    age = 0.0 if facet.row.pinned else elapsed_days(facet.row.created_at, facet.now)
    return facet.score * swarm_factor(age, facet.row.access_count, _unread_days(facet))


def _score_cache(facet: Facet) -> float:
    age = 0.0 if facet.row.pinned else elapsed_days(facet.row.created_at, facet.now)
    if facet.by_graph:
        return member_score(facet.similarity, age, facet.row.importance)
    constant = 30.0 if facet.row.tier == L2 else 7.0  # as published
    return cache_score(facet.similarity, age, facet.row.importance, facet.half_life_days or constant)


def _unread_days(facet: Facet) -> float | None:
    last = facet.row.last_accessed_at
    if last is None:
        return None
    return 0.0 if facet.row.pinned else elapsed_days(last, facet.now)


# The table -----------------------------------------------------------------------------------------------------------


class Profile(NamedTuple):
    """A set of parameters; those that a call gives take precedence."""

    fusion: Literal["weighted", "rrf", "similarity"] | None = None  # None: weighted
    vector_weight: float | None = None
    words: Callable[[float, float], float] = normalise  # (BM25, the BM25 that counts as 1) -> 0..1
    min_score: float = 0.0
    rank: Callable[[Facet], float] = _score_default
    rows: bool = False  # the rank needs the rows even if the call gives no half-life
    candidates: int | None = None  # times the limit, exactly
    missing_is_last: bool = False  # in `rrf`, a candidate that an arm did not find ranks just below its last one
    enough_in_l1: int | None = None  # with at least this many hits in L1, those of L2 are dropped
    graph: bool = False
    floor: bool = False  # drop hits below the model's floor of relevance
    usefulness: bool = False  # feedback counts
    cues: bool = False  # apply the bonuses of `cues`


PROFILES: dict[str, Profile] = {
    "default": Profile(graph=True, usefulness=True, cues=True),
    "memweave": Profile("weighted", 0.7, saturate, min_score=0.35, rank=_score_memweave, rows=True),
    "memori": Profile("rrf", rank=_score_memori, rows=True, candidates=3, missing_is_last=True),
    "swarm": Profile("similarity", rank=_score_swarm, rows=True, candidates=3),
    "cache": Profile("similarity", rank=_score_cache, rows=True, enough_in_l1=6, graph=True, floor=True),
}

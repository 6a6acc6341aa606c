"""The published formulas, against numbers worked out by hand."""

import math
from datetime import UTC, datetime
from typing import Any

import pytest

from each import each
from memoryd.daemon.search.fuse import rrf
from memoryd.daemon.search.profiles import (
    DAY_S,
    PROFILES,
    Facet,
    cache_score,
    date_in,
    member_score,
    memori_factor,
    swarm_factor,
)
from workbench import make_row, weigh

NOW = datetime(2026, 3, 31, tzinfo=UTC).timestamp()


def facet(score: float = 1.0, half_life_days: float | None = None, by_graph: bool = False, **fields: Any) -> Facet:
    given: dict[str, Any] = {"created_at": NOW, **fields}
    similarity = given.pop("similarity", score)
    return Facet(score, similarity, make_row("", updated_at=NOW, **given), NOW, half_life_days, by_graph)


def ranked(profile: str, *arguments: Any, **fields: Any) -> float:
    return PROFILES[profile].rank(facet(*arguments, **fields))


@each(
    ("path", "date"),
    [
        ("memory/2026-03-01.md", "2026-03-01"),
        ("2024-02-29.md", "2024-02-29"),
        ("memory/a/b/2020-01-01.md", "2020-01-01"),
        ("memory/2026-02-30.md", None),
        ("memory/notes-2026-03-01.md", None),
        ("memory/2026-03-01.txt", None),
        ("MEMORY.md", None),
        (None, None),
    ],
)
def test_only_a_daily_file_has_a_date(path: str | None, date: str | None) -> None:
    expected = datetime.fromisoformat(date).replace(tzinfo=UTC).timestamp() if date else None
    assert date_in(path) == expected


# memweave ------------------------------------------------------------------------------------------------------------


@each(
    ("fields", "expected"),
    [
        ({"path": "memory/2026-03-01.md"}, 0.4),  # 30 days: half of 0.8
        ({"path": "memory/2026-01-30.md"}, 0.2),  # 60 days: a quarter
        ({"path": "memory/2026-03-31.md"}, 0.8),  # today
        ({"path": "memory/2027-01-01.md"}, 0.8),  # the future is now
        ({"path": "MEMORY.md", "created_at": 0.0}, 0.8),  # evergreen
        ({"created_at": 0.0}, 0.8),  # not from a file
        ({"path": "memory/2026-03-01.md", "pinned": 1}, 0.8),
        ({"path": "memory/2025-12-31.md", "half_life_days": 90.0}, 0.4),
    ],
)
def test_memweave_decays_daily_files_alone(fields: dict[str, Any], expected: float) -> None:
    assert ranked("memweave", 0.8, **fields) == pytest.approx(expected)


@each(
    ("similarity", "bm25", "expected"),
    [(1.0, 1.0, 0.85), (0.5, 0.0, 0.35), (0.0, 3.0, 0.225), (0.8, 4.0, 0.8), (None, 9.0, 0.27), (-0.2, 0.0, 0.0)],
)
def test_memweave_weighs_cosine_and_saturated_bm25(similarity: float | None, bm25: float, expected: float) -> None:
    assert weigh(similarity, bm25, 99.0, 0.7, "memweave") == pytest.approx(expected)
    assert PROFILES["memweave"].min_score == 0.35


# memori --------------------------------------------------------------------------------------------------------------


@each(
    ("count", "unread_days", "expected"),
    [
        (0, None, 1.0),  # never accessed
        (0, 69.314718, 0.5),  # ln 2 / 0.01 days
        (1, 0.0, 1.0693147),  # 1 + 0.1 ln 2
        (9, 0.0, 1.2302585),  # 1 + 0.1 ln 10
        (9, 69.314718, 0.6151293),
        (0, 100.0, 0.3678794),  # 1 / e
        (99, None, 1.4605170),
    ],
)
def test_memori_boosts_accesses_and_forgets_in_69_days(count: int, unread_days: float | None, expected: float) -> None:
    assert memori_factor(count, unread_days) == pytest.approx(expected, abs=1e-6)
    last = None if unread_days is None else NOW - unread_days * DAY_S
    assert ranked("memori", 0.5, access_count=count, last_accessed_at=last) == pytest.approx(0.5 * expected, abs=1e-6)


@each(
    ("ranks", "expected"),
    [((1, 1), 2 / 61), ((1, 2), 1 / 61 + 1 / 62), ((5, None), 1 / 65 + 1 / 91), ((None, 30), 1 / 91 + 1 / 90)],
)
def test_memori_counts_what_an_arm_misses_as_just_below_its_last(
    ranks: tuple[int | None, int | None], expected: float
) -> None:
    assert rrf(*ranks, last=30) * 2 / 61 == pytest.approx(expected)
    assert PROFILES["memori"].candidates == 3


# swarm ---------------------------------------------------------------------------------------------------------------


@each(
    ("age", "count", "unread_days", "expected"),
    [
        (0, 0, None, 1.0),
        (14, 0, None, 0.5),
        (28, 0, None, 0.25),
        (0, 5, 1.0, 1.5),  # the largest boost
        (0, 50, 1.0, 1.5),
        (0, 2, 2.0, 1.2),  # 48 hours are still fresh
        (0, 2, 2.1, 1.1),  # later half of it
        (14, 5, 30.0, 0.625),  # 0.5 x 1.25
    ],
)
def test_swarm_halves_in_14_days_and_boosts_accesses(
    age: float, count: int, unread_days: float | None, expected: float
) -> None:
    assert swarm_factor(age, count, unread_days) == pytest.approx(expected)
    last = None if unread_days is None else NOW - unread_days * DAY_S
    fields = {"created_at": NOW - age * DAY_S, "access_count": count, "last_accessed_at": last}
    assert ranked("swarm", 0.6, **fields) == pytest.approx(0.6 * expected)


# cache ---------------------------------------------------------------------------------------------------------------


@each(
    ("similarity", "age", "importance", "constant", "expected"),
    [
        (1.0, 0, 1.0, 7, 1.0),
        (0.8, 0, 0.5, 7, 0.83),
        (0.8, 7, 0.5, 7, 0.48 + 0.3 / math.e + 0.05),
        (0.8, 30, 0.5, 30, 0.48 + 0.3 / math.e + 0.05),
        (0.6, 14, 0.0, 7, 0.36 + 0.3 / math.e**2),
        (0.0, 1e9, 1.0, 7, 0.1),
    ],
)
def test_cache_adds_similarity_recency_and_importance(
    similarity: float, age: float, importance: float, constant: float, expected: float
) -> None:
    assert cache_score(similarity, age, importance, constant) == pytest.approx(expected)


def test_cache_gives_l1_a_week_and_l2_a_month_and_ranks_members_of_a_node_by_their_own_formula() -> None:
    week = {"created_at": NOW - 7 * DAY_S, "importance": 0.5, "similarity": 0.8}
    assert ranked("cache", **week) == pytest.approx(0.48 + 0.3 / math.e + 0.05)
    month = {**week, "created_at": NOW - 30 * DAY_S, "tier": "L2"}
    assert ranked("cache", **month) == pytest.approx(0.48 + 0.3 / math.e + 0.05)
    assert ranked("cache", by_graph=True, **month) == pytest.approx(0.4 + 0.3 / math.e + 0.1)
    assert member_score(1.0, 0.0, 1.0) == pytest.approx(1.0)
    assert ranked("cache", pinned=1, **week) == pytest.approx(0.48 + 0.3 + 0.05)
    assert ranked("cache", **{**week, "created_at": NOW + DAY_S}) == pytest.approx(0.83)


# default -------------------------------------------------------------------------------------------------------------


@each(
    ("fields", "expected"),
    [
        ({"created_at": 0.0}, 0.8),  # no age unless asked
        ({"created_at": NOW - 90 * DAY_S, "half_life_days": 90.0}, 0.4),
        ({"created_at": NOW + 90 * DAY_S, "half_life_days": 90.0}, 0.8),
        ({"created_at": 0.0, "pinned": 1, "half_life_days": 90.0}, 0.8),
        ({"path": "memory/2025-12-31.md", "half_life_days": 90.0}, 0.4),
        ({"path": "memory/topics.md", "created_at": 0.0, "half_life_days": 90.0}, 0.8),
    ],
)
def test_the_default_decays_only_when_a_half_life_is_asked_for(fields: dict[str, Any], expected: float) -> None:
    assert ranked("default", 0.8, **fields) == pytest.approx(expected)

"""A half-life at work: a book club's notes of 18 months, most of them votes that no longer hold."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoryd import models
from memoryd.client.demo.decay import EVERGREEN, QUESTION, make_notes
from memoryd.client.protocol import NewMemory
from memoryd.daemon.core.core import Core
from workbench import Clock, add_many, no_model, running, search

TODAY = "memory/2027-01-15.md"  # of the tests' clock
ENDLESS = 1e9  # `memweave` has a half-life of its own


def remember(core: Core) -> Core:
    found = [NewMemory(content=n.text, path=n.path, start_line=1, created_at=n.at) for n in make_notes(core.clock())]
    assert add_many(core, found, "club").merged == 0
    return core


@pytest.fixture
def words_only(folder: Path) -> Iterator[Core]:
    with running(folder, no_model, ready=False) as core:
        yield remember(core)


@pytest.fixture
def meaning(folder: Path, model_dir: Path) -> Iterator[Core]:
    """With the real default model."""
    with running(folder, lambda name, where: models.load(name, model_dir)) as core:
        yield remember(core)


@pytest.fixture(params=["words_only", "meaning"])
def club(request: pytest.FixtureRequest) -> Core:
    core: Core = request.getfixturevalue(request.param)
    return core


def ranking(core: Core, question: str = QUESTION, **options: Any) -> list[str | None]:
    return [hit.path for hit in search(core, question, limit=5, touch=False, **options)]


@pytest.mark.parametrize("options", [{}, {"profile": "memweave", "half_life_days": ENDLESS}])
def test_without_decay_a_stale_vote_wins(club: Core, options: dict[str, Any]) -> None:
    first = ranking(club, **options)[0]
    assert first is not None
    assert first.startswith(("memory/2025-", "memory/2026-0"))  # half a year old at least


@pytest.mark.parametrize("profile", ["default", "memweave"])
def test_with_a_half_life_today_is_first_and_the_file_without_a_date_stays(club: Core, profile: str) -> None:
    paths = ranking(club, profile=profile, half_life_days=90.0)
    assert paths[0] == TODAY
    assert EVERGREEN in paths[:3]


@pytest.mark.parametrize("profile", ["default", "memweave"])
def test_of_notes_so_old_that_nothing_is_left_the_better_match_is_first(words_only: Core, profile: str) -> None:
    texts = {"memory/2020-01-02.md": "The ferry timetable of the island", "memory/2020-01-01.md": "The ferry was late"}
    found = [NewMemory(content=text, path=path, start_line=1, created_at=1577836800.0) for path, text in texts.items()]
    add_many(words_only, found, "club")
    paths = ranking(words_only, "ferry timetable of the island", profile=profile, half_life_days=1.0)
    assert [path for path in paths if path in texts] == list(texts)


@pytest.mark.parametrize("question", ["What are we reading now?", "Which genre won the last vote?"])
@pytest.mark.parametrize("profile", ["default", "memweave"])
def test_today_is_first_however_a_person_asks(meaning: Core, question: str, profile: str) -> None:
    assert ranking(meaning, question, profile=profile, half_life_days=90.0)[0] == TODAY


def test_the_notes_count_back_from_the_day_that_is_given() -> None:
    found = list(make_notes(Clock().now))
    assert (found[0].path, found[-1].path) == (EVERGREEN, TODAY)
    assert found[1].path == "memory/2025-07-17.md"
    assert found[0].at == found[1].at == found[-1].at - 547 * 86400

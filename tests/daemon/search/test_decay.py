"""A half-life at work: a book club's notes of 18 months, most of them votes that no longer hold."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from each import each
from memoryd import models
from memoryd.client.protocol import NewMemory
from memoryd.daemon.core.core import Core
from workbench import add_many, no_model, running, search

TODAY = "memory/2027-01-15.md"  # of the tests' clock
ENDLESS = 1e9  # `memweave` has a half-life of its own

QUESTION = "What genre did the club vote for?"

EVERGREEN = "memory/reading-list.md"
READING_LIST = (
    "Reading list, by genre: science fiction, mysteries, historical novels, fantasy, memoirs, poetry. Below each "
    "the titles that somebody proposed; whoever proposes one to the club brings a copy."
)

# Days before today → what was written down on that day.
LOG: tuple[tuple[int, str], ...] = (
    (547, "The club votes for its first genre: science fiction, by 7 of 9. What did we do before?"),
    (533, "Half of us have finished the first novella; we talked about its ending for an hour."),
    (519, "The library lends us eight copies if we order two weeks ahead."),
    (491, "Book club vote: we are reading science fiction for another two months, 6 votes to 3."),
    (470, "The heating in the back room is broken; we met in the kitchen, with soup."),
    (456, "The genre we are reading in the book club is still science fiction; a space opera comes next."),
    (435, "Vote on the genre: the book club is reading mysteries from now on, 5 to 4. Science fiction came second."),
    (414, "Nobody guessed the murderer. Long talk about unreliable narrators."),
    (393, "We meet on Thursdays from now on, at half past seven."),
    (372, "Book club vote on the genre we are reading: mysteries again, 8 to 1."),
    (351, "Two new members; both had read the book already."),
    (330, "Summer break: no meeting until the library opens again."),
    (302, "We are tired of murders. The book club votes for historical novels as the genre we read, 6 to 3."),
    (281, "The map on the endpapers was the best part, most of us thought."),
    (260, "Dues are ten a year, for tea and the room."),
    (239, "Genre vote of the book club: historical novels stay what we are reading, 5 to 4 against fantasy."),
    (218, "Talk about what is invented and what is not in a novel about a real queen."),
    (197, "The back room is warm again."),
    (176, "The club votes for fantasy as its genre, 6 to 3: dragons after all."),
    (155, "The trilogy is too long for one evening; first volume only."),
    (134, "The printed list of members is in the drawer of the tea table."),
    (113, "Vote: fantasy remains our genre in the book club for the winter, 5 to 4."),
    (92, "Audio versions count as read; that was agreed without a vote."),
    (71, "The members cannot finish eight hundred pages a month; the shorter the better."),
    (50, "Someone proposed short stories or memoirs for the time after the trilogy; we vote before long."),
    (29, "Snow, only five came. We read the first chapter aloud."),
    (14, "The library has sent the reminder for last month's copies."),
    (0, "Minds have changed: memoirs, by 7 votes to 2, are now the genre of the club. No more dragons."),
)


class Note(NamedTuple):
    """One note: its file, its text, when it was written (UTC seconds)."""

    path: str
    text: str
    at: float


def make_notes(now: float) -> Iterator[Note]:
    """Yield the notes as of a day, the oldest first; the evergreen file was written at the very beginning."""
    today = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    yield Note(EVERGREEN, READING_LIST, (today - timedelta(days=LOG[0][0])).timestamp())
    for days, text in LOG:
        day = today - timedelta(days=days)
        yield Note(f"memory/{day:%Y-%m-%d}.md", text, day.timestamp())


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


@each("options", [{}, {"profile": "memweave", "half_life_days": ENDLESS}])
def test_without_decay_a_stale_vote_wins(club: Core, options: dict[str, Any]) -> None:
    first = ranking(club, **options)[0]
    assert first is not None
    assert first.startswith(("memory/2025-", "memory/2026-0"))  # half a year old at least


@each("profile", ["default", "memweave"])
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

"""The notes of a book club: dated files of eighteen months in which it changes its mind, and one that stays true.

`memctl demo --decay` and a test ask them a question. Days count back from the day that is taken for today.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

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
    begun = today - timedelta(days=LOG[0][0])
    yield Note(EVERGREEN, READING_LIST, begun.timestamp())
    for days, text in LOG:
        day = today - timedelta(days=days)
        yield Note(f"memory/{day:%Y-%m-%d}.md", text, day.timestamp())

"""demo --decay: a book club asks its notes what it voted for, without decay and with a half-life of 90 days.

Its notes are dated files of eighteen months in which it changes its mind, and one that stays true.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from pathlib import Path
from time import time
from typing import Any, NamedTuple

from memoryd.client.demo.model import CONFIG, prepare_model
from memoryd.client.memctl.output import columns, paint, say
from memoryd.client.memctl.private import run_private_daemon
from memoryd.client.memctl.service import wait_until_ready
from memoryd.client.memctl.table import count_text, pad, wrap
from memoryd.client.protocol import Hit, NewMemory
from memoryd.client.transport.sync import Client

NAMESPACE = "book-club"
HALF_LIFE_DAYS = 90.0
ENDLESS_DAYS = 1e9  # `memweave` has a half-life of its own, 30 days; this one outlives every file
SHOWN = 4
LINES = 2  # of a text
READY_LIMIT_S = 300.0
GAP = 3

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


class DemoNote(NamedTuple):
    """One note: its file, its text, when it was written (UTC seconds)."""

    path: str
    text: str
    at: float


def make_notes(now: float) -> Iterator[DemoNote]:
    """Yield the notes as of a day, the oldest first; the evergreen file was written at the very beginning."""
    today = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    yield DemoNote(EVERGREEN, READING_LIST, (today - timedelta(days=LOG[0][0])).timestamp())
    for days, text in LOG:
        day = today - timedelta(days=days)
        yield DemoNote(f"memory/{day:%Y-%m-%d}.md", text, day.timestamp())


class Ranking(NamedTuple):
    """The best hits of a profile, without decay and with it."""

    profile: str
    without: list[Hit]
    decayed: list[Hit]


def show_decay(quiet: bool) -> tuple[dict[str, Any], Path]:
    """Show it; return the figures and the folder that the daemon had."""
    missing = prepare_model()
    with run_private_daemon(config=CONFIG) as daemon, daemon.client(NAMESPACE) as client:
        today = store_notes(client)
        if not missing:
            wait_until_ready(client, READY_LIMIT_S)
        rankings = ask(client)
        model = "words only" if missing else client.status().model.name
    if not quiet:
        _print_rankings(rankings, today)
    return _figures(rankings, model), daemon.folder


def store_notes(client: Client) -> str:
    """Store the notes as of today; return the path of today's."""
    search = list(make_notes(time()))
    client.add_many(NewMemory(content=n.text, type="note", path=n.path, start_line=1, created_at=n.at) for n in search)
    return search[-1].path


def ask(client: Client) -> list[Ranking]:
    """Ask the question in both profiles, without decay and with it."""

    def search(profile: str, half_life_days: float | None) -> list[Hit]:
        return client.search(QUESTION, limit=SHOWN, profile=profile, half_life_days=half_life_days, touch=False).hits

    return [
        Ranking("default", search("default", None), search("default", HALF_LIFE_DAYS)),
        Ranking("memweave", search("memweave", ENDLESS_DAYS), search("memweave", HALF_LIFE_DAYS)),
    ]


def _print_rankings(rankings: list[Ranking], today: str) -> None:
    say(paint("A book club, its notes of 18 months, and one question", "bold"))
    say(f"   {count_text(len(LOG), 'dated file')} memory/YYYY-MM-DD.md and {EVERGREEN}, which does not age.")
    say(f"   “{paint(QUESTION, 'cyan')}”")
    for ranking in rankings:
        say(f"\n{paint(f'Profile {ranking.profile}', 'bold')}")
        size = (columns() - GAP - 3) // 2
        heads = paint(pad("without decay", size), "dim"), paint(f"half-life {HALF_LIFE_DAYS:g} days", "dim")
        say(f"   {heads[0]}{' ' * GAP}{heads[1]}")
        for left, right in zip_longest(ranking.without, ranking.decayed):
            for one, other in zip(_format_hit(left, today, size), _format_hit(right, today, size), strict=True):
                say(f"   {pad(one, size)}{' ' * GAP}{other}".rstrip())
    say(f"\n{_verdict_text(rankings[0], today)}")


def _format_hit(hit: Hit | None, today: str, size: int) -> list[str]:
    """Return a hit as lines of `size` columns: score, date, the beginning of the text."""
    if hit is None:
        return [""] * LINES
    about = f"{hit.score:.3f}  {_date_text(hit, today):<10}  "
    text = wrap(hit.content, size - len(about), LINES)
    starts = [about, *[" " * len(about)] * (LINES - 1)]
    return [f"{start}{line}" for start, line in zip_longest(starts, text, fillvalue="")]


def _date_text(hit: Hit, today: str) -> str:
    return {today: "today", EVERGREEN: "evergreen"}.get(hit.path or "", Path(hit.path or "").stem)


def _verdict_text(ranking: Ranking, today: str) -> str:
    first, paths = ranking.without[0], [hit.path for hit in ranking.decayed]
    command = paint(f'memctl search "…" --half-life-days {HALF_LIFE_DAYS:g}', "cyan")
    return (
        f"Without decay a note of {_date_text(first, today)} wins by its words. With a half-life today's note is "
        f"{_place_text(today, paths)},\nthe reading list, which has no date, {_place_text(EVERGREEN, paths)}. "
        f"Try it: {command}"
    )


def _place_text(path: str, paths: list[str | None]) -> str:
    return f"number {paths.index(path) + 1}" if path in paths else "not among them"


def _figures(rankings: list[Ranking], model: str) -> dict[str, Any]:
    def list_hits(hits: list[Hit]) -> list[dict[str, Any]]:
        return [{"score": round(hit.score, 3), "path": hit.path, "content": hit.content} for hit in hits]

    search = [
        {"profile": r.profile, "without_decay": list_hits(r.without), "half_life_90_days": list_hits(r.decayed)}
        for r in rankings
    ]
    return {"question": QUESTION, "model": model, "rankings": search}

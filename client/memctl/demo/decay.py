"""demo --decay: a book club asks its notes what it voted for, without decay and with a half-life of 90 days."""

from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from memoryd.client.memctl.demo.bookclub import EVERGREEN, LOG, QUESTION, notes
from memoryd.client.memctl.demo.model import CONFIG, prepare_model
from memoryd.client.memctl.output import columns, paint, say
from memoryd.client.memctl.private import private_daemon
from memoryd.client.memctl.service import wait_until_ready
from memoryd.client.memctl.table import count, pad, wrap
from memoryd.client.protocol import Hit, NewMemory
from memoryd.client.transport.sync import Client

NAMESPACE = "book-club"
HALF_LIFE_DAYS = 90.0
ENDLESS_DAYS = 1e9  # `memweave` has a half-life of its own, 30 days; this one outlives every file
SHOWN = 4
LINES = 2  # of a text
READY_LIMIT_S = 300.0
GAP = 3


class Ranking(NamedTuple):
    """The best hits of a profile, without decay and with it."""

    profile: str
    without: list[Hit]
    decayed: list[Hit]


def decay(quiet: bool) -> tuple[dict[str, Any], Path]:
    """Show it; return the figures and the folder that the daemon had."""
    missing = prepare_model()
    with private_daemon(config=CONFIG) as daemon, daemon.client(NAMESPACE) as client:
        today = remember(client)
        if not missing:
            wait_until_ready(client, READY_LIMIT_S)
        rankings = ask(client)
        model = "words only" if missing else client.status().model.name
    if not quiet:
        _tell(rankings, today)
    return _figures(rankings, model), daemon.folder


def remember(client: Client) -> str:
    """Store the notes as of today; return the path of today's."""
    from time import time

    found = list(notes(time()))
    client.add_many(NewMemory(content=n.text, type="note", path=n.path, start_line=1, created_at=n.at) for n in found)
    return found[-1].path


def ask(client: Client) -> list[Ranking]:
    """Ask the question in both profiles, without decay and with it."""

    def found(profile: str, half_life_days: float | None) -> list[Hit]:
        return client.search(QUESTION, limit=SHOWN, profile=profile, half_life_days=half_life_days, touch=False).hits

    return [
        Ranking("default", found("default", None), found("default", HALF_LIFE_DAYS)),
        Ranking("memweave", found("memweave", ENDLESS_DAYS), found("memweave", HALF_LIFE_DAYS)),
    ]


def _tell(rankings: list[Ranking], today: str) -> None:
    say(paint("A book club, its notes of 18 months, and one question", "bold"))
    say(f"   {count(len(LOG), 'dated file')} memory/YYYY-MM-DD.md and {EVERGREEN}, which does not age.")
    say(f"   “{paint(QUESTION, 'cyan')}”")
    for ranking in rankings:
        say(f"\n{paint(f'Profile {ranking.profile}', 'bold')}")
        size = (columns() - GAP - 3) // 2
        heads = paint(pad("without decay", size), "dim"), paint(f"half-life {HALF_LIFE_DAYS:g} days", "dim")
        say(f"   {heads[0]}{' ' * GAP}{heads[1]}")
        for left, right in zip_longest(ranking.without, ranking.decayed):
            for one, other in zip(_lines(left, today, size), _lines(right, today, size), strict=True):
                say(f"   {pad(one, size)}{' ' * GAP}{other}".rstrip())
    say(f"\n{_verdict(rankings[0], today)}")


def _lines(hit: Hit | None, today: str, size: int) -> list[str]:
    """Return a hit as lines of `size` columns: score, date, the beginning of the text."""
    if hit is None:
        return [""] * LINES
    about = f"{hit.score:.3f}  {_date(hit, today):<10}  "
    text = wrap(hit.content, size - len(about), LINES)
    starts = [about, *[" " * len(about)] * (LINES - 1)]
    return [f"{start}{line}" for start, line in zip_longest(starts, text, fillvalue="")]


def _date(hit: Hit, today: str) -> str:
    return {today: "today", EVERGREEN: "evergreen"}.get(hit.path or "", Path(hit.path or "").stem)


def _verdict(ranking: Ranking, today: str) -> str:
    first, paths = ranking.without[0], [hit.path for hit in ranking.decayed]
    command = paint(f'memctl search "…" --half-life-days {HALF_LIFE_DAYS:g}', "cyan")
    return (
        f"Without decay a note of {_date(first, today)} wins by its words. With a half-life today's note is "
        f"{_place(today, paths)},\nthe reading list, which has no date, {_place(EVERGREEN, paths)}. Try it: {command}"
    )


def _place(path: str, paths: list[str | None]) -> str:
    return f"number {paths.index(path) + 1}" if path in paths else "not among them"


def _figures(rankings: list[Ranking], model: str) -> dict[str, Any]:
    def lines(hits: list[Hit]) -> list[dict[str, Any]]:
        return [{"score": round(hit.score, 3), "path": hit.path, "content": hit.content} for hit in hits]

    found = [
        {"profile": r.profile, "without_decay": lines(r.without), "half_life_90_days": lines(r.decayed)}
        for r in rankings
    ]
    return {"question": QUESTION, "model": model, "rankings": found}

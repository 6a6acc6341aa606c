"""The command `log`: list what was done, session by session."""

import os
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from datetime import datetime, timedelta

from memoryd.client.methods import get_log
from memoryd.client.programs.memctl.arguments import add_reach, parse_date, parse_limit
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.link import show_result
from memoryd.client.programs.memctl.output import columns, make_printable, paint
from memoryd.client.programs.memctl.source_file import short_path
from memoryd.client.programs.memctl.text_table import GAP, count_text, shorten, to_one_line, wrap
from memoryd.client.protocol import LoggedSession, SessionLog
from memoryd.client.times import iso

_AGO = re.compile(r"(\d{1,5})(h|d|w)")
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_FILES = 8  # files listed for each session
_NONE = "No session matches; `memctl tiers --skipped` lists turns that were not recorded, and why."


def _declare(parser: ArgumentParser) -> None:
    add_since(parser, "only from this time on")
    parser.add_argument("--until", type=parse_moment, metavar="WHEN", help="only before this time")
    parser.add_argument("--path", default="", metavar="FILE", help="only sessions that wrote this file")
    parser.add_argument("--session", metavar="ID", help="only this conversation; its first 4 characters are enough")
    parser.add_argument("--limit", type=parse_limit, default=20, metavar="N", help="sessions at most (default: 20)")
    add_reach(parser)


def add_since(parser: ArgumentParser, about: str) -> None:
    """Declare `--since`."""
    how = "today, yesterday, 12h, 3d, 2w or a date"
    parser.add_argument("--since", type=parse_moment, metavar="WHEN", help=f"{about}: {how}")


def parse_moment(text: str, now: datetime | None = None) -> float:
    """Return UTC seconds for a date or a time in the past such as `yesterday` or `3d`, by the local clock."""
    now = now or datetime.now().astimezone()
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    days = {"today": 0, "yesterday": 1}
    if text in days:
        return (today - timedelta(days=days[text])).timestamp()
    if ago := _AGO.fullmatch(text):
        return (now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})).timestamp()
    return parse_date(text)


def _show_log(args: Namespace) -> None:
    path = os.path.abspath(args.path) if os.path.exists(args.path) else args.path
    call = get_log(since=args.since, until=args.until, path=path, session=args.session, limit=args.limit)
    show_result(args, call, _log_text, lambda log: log.sessions)


def _log_text(log: SessionLog) -> str:
    return "\n\n".join("\n".join(_session_lines(session)) for session in log) or _NONE


def _session_lines(session: LoggedSession) -> Iterator[str]:
    about = [iso(session.began_at) or "", to_one_line(session.namespace), count_text(session.turns, "turn")]
    yield f"{paint(to_one_line(session.session), 'cyan')}  {paint(GAP.join(filter(None, about)), 'dim')}"
    room = columns() - 2
    if session.summary:
        for line in session.summary.splitlines():
            yield from (f"  {part}" for part in wrap(make_printable(line), room, 2))
    elif session.asked:
        yield from (f"  {part}" for part in wrap(to_one_line(session.asked), room, 2))
    for one in session.outcomes:
        yield f"  {paint(one.id[:8], 'cyan')}  {shorten(to_one_line(one.content), room - 10)}"
    for path in session.files[:_FILES]:
        yield f"  {paint(to_one_line(short_path(path)), 'dim')}"
    if len(session.files) > _FILES:
        yield paint(f"  and {count_text(len(session.files) - _FILES, 'more file')}", "dim")


COMMANDS = {
    "log": Command(
        _declare,
        _show_log,
        "  memctl log --since yesterday\n  memctl log --path src/importer.py\n  memctl log --session 5d0e --json",
    )
}

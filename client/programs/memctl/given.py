"""The commands `given` and `usefulness`: list the memories that sessions were shown, and count those that were used."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from memoryd.client.methods import list_given, measure_usefulness
from memoryd.client.programs.memctl.arguments import add_reach, parse_limit
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.link import show_result
from memoryd.client.programs.memctl.log import add_since
from memoryd.client.programs.memctl.output import columns, paint
from memoryd.client.programs.memctl.text_table import GAP, format_table, shorten, to_one_line
from memoryd.client.protocol import GivenList, GivenSession, UsefulnessReport
from memoryd.client.times import iso

_HEADERS = ["month", "project", "sessions", "told", "used", "said again", "corrected"]


def _declare_given(parser: ArgumentParser) -> None:
    add_since(parser, "only memories shown since then")
    parser.add_argument("--limit", type=parse_limit, default=20, metavar="N", help="sessions at most (default: 20)")
    add_reach(parser)


def _show_given(args: Namespace) -> None:
    show_result(args, list_given(args.since, args.limit), _given_text, lambda given: given.sessions)


def _given_text(given: GivenList) -> str:
    return "\n\n".join("\n".join(_session_lines(one)) for one in given.sessions) or "No session was shown any memory."


def _session_lines(session: GivenSession) -> Iterator[str]:
    about = [iso(session.at) or "", to_one_line(session.namespace) or "/", to_one_line(session.agent)]
    yield f"{paint(to_one_line(session.session), 'cyan')}  {paint(GAP.join(filter(None, about)), 'dim')}"
    for line in session.lines:
        yield f"  {paint(line.id[:8], 'cyan')}  {shorten(to_one_line(line.text), columns() - 12)}"


def _declare_usefulness(parser: ArgumentParser) -> None:
    add_since(parser, "only lines shown since")
    add_reach(parser)


def _show_usefulness(args: Namespace) -> None:
    show_result(args, measure_usefulness(args.since), _months_text, lambda report: report.months)


def _months_text(report: UsefulnessReport) -> str:
    if not report.months:
        return "There is nothing to count yet: no session was shown a line and had a turn after it."
    rows = [
        [one.month, one.namespace or "/", *map(str, (one.sessions, one.told, one.used, one.said_again, one.corrected))]
        for one in report.months
    ]
    return format_table(_HEADERS, rows, flexible=1, right=range(2, len(_HEADERS)))


COMMANDS = {
    "given": Command(_declare_given, _show_given, "  memctl given --since today\n  memctl given --limit 1 --json"),
    "usefulness": Command(
        _declare_usefulness,
        _show_usefulness,
        "  memctl usefulness\n  memctl usefulness --reach all --since 2026-01-01 --json",
    ),
}

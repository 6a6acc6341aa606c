"""The command `usefulness`: count the lines shown to sessions that were used, by project and month."""

from argparse import ArgumentParser, Namespace

from memoryd.client.methods import measure_usefulness
from memoryd.client.programs.memctl.arguments import add_reach
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.link import show_result
from memoryd.client.programs.memctl.log import parse_moment
from memoryd.client.programs.memctl.text_table import format_table
from memoryd.client.protocol import UsefulnessReport

_HEADERS = ["month", "project", "sessions", "told", "used", "said again", "corrected"]


def _declare(parser: ArgumentParser) -> None:
    since = "today, yesterday, 12h, 3d, 2w or a date"
    parser.add_argument("--since", type=parse_moment, metavar="WHEN", help=f"only lines shown since: {since}")
    add_reach(parser)


def _show_usefulness(args: Namespace) -> None:
    show_result(args, measure_usefulness(args.since), _describe, lambda report: report.months)


def _describe(report: UsefulnessReport) -> str:
    if not report.months:
        return "There is nothing to count yet: no session was shown a line and had a turn after it."
    rows = [
        [one.month, one.namespace or "/", *map(str, (one.sessions, one.told, one.used, one.said_again, one.corrected))]
        for one in report.months
    ]
    return format_table(_HEADERS, rows, flexible=1, right=range(2, len(_HEADERS)))


COMMANDS = {
    "usefulness": Command(
        _declare,
        _show_usefulness,
        "  memctl usefulness\n  memctl usefulness --reach all --since 2026-01-01 --json",
    ),
}

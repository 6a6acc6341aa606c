"""The command `given`: list the memories that sessions were shown."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from memoryd.client.methods import list_given
from memoryd.client.programs.memctl.arguments import add_reach, parse_limit
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.link import show_result
from memoryd.client.programs.memctl.log import parse_moment
from memoryd.client.programs.memctl.output import columns, paint
from memoryd.client.programs.memctl.text_table import GAP, shorten, to_one_line
from memoryd.client.protocol import GivenList, GivenSession
from memoryd.client.times import iso


def _declare(parser: ArgumentParser) -> None:
    since = "today, yesterday, 12h, 3d, 2w or a date"
    parser.add_argument("--since", type=parse_moment, metavar="WHEN", help=f"only memories shown since then: {since}")
    parser.add_argument("--limit", type=parse_limit, default=20, metavar="N", help="sessions at most (default: 20)")
    add_reach(parser)


def _show_given(args: Namespace) -> None:
    show_result(args, list_given(args.since, args.limit), _given_text, lambda given: given.sessions)


def _given_text(given: GivenList) -> str:
    texts = ["\n".join(_session_lines(session)) for session in given.sessions]
    return "\n\n".join(texts) or "No session was shown any memory."


def _session_lines(session: GivenSession) -> Iterator[str]:
    about = [iso(session.at) or "", to_one_line(session.namespace) or "/", to_one_line(session.agent)]
    yield f"{paint(to_one_line(session.session), 'cyan')}  {paint(GAP.join(filter(None, about)), 'dim')}"
    for line in session.lines:
        yield f"  {paint(line.id[:8], 'cyan')}  {shorten(to_one_line(line.text), columns() - 12)}"


COMMANDS = {
    "given": Command(_declare, _show_given, "  memctl given --since today\n  memctl given --limit 1 --json"),
}

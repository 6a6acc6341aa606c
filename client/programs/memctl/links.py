"""The command `links`: list memories that contradict each other, dismiss such a link or restore it."""

from argparse import ArgumentParser, Namespace

from memoryd.client import methods
from memoryd.client.programs.memctl.arguments import add_reach, parse_limit
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.link import show_result
from memoryd.client.programs.memctl.output import paint
from memoryd.client.programs.memctl.text_table import to_one_line
from memoryd.client.protocol import Disagreements, Memory
from memoryd.client.times import iso


def _declare_links(parser: ArgumentParser) -> None:
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--dismiss", nargs=2, metavar="ID", help="these two do not contradict each other")
    choice.add_argument("--restore", nargs=2, metavar="ID", help="take the dismissal of these two back")
    parser.add_argument("--limit", type=parse_limit, default=20, metavar="N", help="links shown (default: 20)")
    add_reach(parser)


def _show_links(args: Namespace) -> None:
    if ids := args.dismiss or args.restore:
        show_result(args, methods.dismiss_link(ids[0], ids[1], bool(args.restore)), lambda report: report.message)
    else:
        show_result(args, methods.links(args.limit), _text, lambda page: page.links)


def _text(page: Disagreements) -> str:
    lines = [f"{_line(link.newer)}\n  disagrees with {_line(link.older)}" for link in page.links]
    return "\n".join(lines) or "No memories contradict each other."


def _line(memory: Memory) -> str:
    return f"{paint(memory.id[:8], 'cyan')}  {(iso(memory.created_at) or '')[:10]}  {to_one_line(memory.content)}"


COMMANDS = {"links": Command(_declare_links, _show_links, "  memctl links\n  memctl links --dismiss 3f9a 81c2")}

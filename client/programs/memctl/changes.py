"""The commands `links` and `changes`: memories that contradict each other, or that a later statement may change."""

from argparse import ArgumentParser, Namespace

from memoryd.client import methods
from memoryd.client.programs.memctl.arguments import add_reach, parse_limit
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.link import own_origin, send, show_result
from memoryd.client.programs.memctl.output import make_printable, paint, print_note
from memoryd.client.programs.memctl.text_table import to_one_line
from memoryd.client.prompt_text import say_later
from memoryd.client.protocol import ChangedMemories, Disagreements, GetStatus, Memory
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
        show_result(args, methods.links(args.limit), _links_text, lambda page: page.links)


def _links_text(page: Disagreements) -> str:
    lines = [f"{_line(link.newer)}\n  disagrees with {_line(link.older)}" for link in page.links]
    return "\n".join(lines) or "No memories contradict each other."


def _line(memory: Memory) -> str:
    return f"{paint(memory.id[:8], 'cyan')}  {(iso(memory.created_at) or '')[:10]}  {to_one_line(memory.content)}"


def _declare_changes(parser: ArgumentParser) -> None:
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--new", metavar="ID", help="the later statement holds: it replaces the memory ID")
    choice.add_argument("--both", metavar="ID", help="both hold: do not list the memory ID for this statement again")
    choice.add_argument("--open", metavar="ID", help="take --both back")
    parser.add_argument("--limit", type=parse_limit, default=20, metavar="N", help="memories shown (default: 20)")
    add_reach(parser)


def _show_changes(args: Namespace) -> None:
    for verdict in ("new", "both", "open"):
        if id := getattr(args, verdict):
            show_result(args, methods.settle_change(id, verdict, origin=own_origin()), lambda settled: settled.message)
            return
    page = show_result(args, methods.list_changes(args.limit), _changes_text, lambda page: page.memories)
    if not page.memories and (state := send(args, GetStatus()).model.state) in ("loading", "fetching"):
        print_note(f"memctl: nothing is compared until the embedding model is there; it is {state}.")


def _changes_text(page: ChangedMemories) -> str:
    if not page.memories:
        return "No later statement seems to change a saved memory."
    lines = []
    for memory in page.memories:
        lines.append(_line(memory))
        lines += [f"  {make_printable(say_later(memory.later))}"] if memory.later else []
    if page.total > len(page.memories):
        lines.append(f"… and {page.total - len(page.memories):,} more")
    id = page.memories[0].id[:8] if len(page.memories) == 1 else "ID"
    lines.append(f"The later one holds: memctl changes --new {id}. Both hold: memctl changes --both {id}.")
    return "\n".join(lines)


COMMANDS = {
    "links": Command(_declare_links, _show_links, "  memctl links\n  memctl links --dismiss 3f9a 81c2"),
    "changes": Command(
        _declare_changes, _show_changes, "  memctl changes\n  memctl changes --new 3f9a\n  memctl changes --both 81c2"
    ),
}

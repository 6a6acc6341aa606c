"""The command `changes`: list saved memories that a later statement seems to change, and record which one holds."""

from argparse import ArgumentParser, Namespace

from memoryd.client import methods
from memoryd.client.programs.memctl.arguments import add_reach, parse_limit
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.link import own_origin, send, show_result
from memoryd.client.programs.memctl.output import make_printable, paint, print_note
from memoryd.client.programs.memctl.text_table import to_one_line
from memoryd.client.prompt_text import say_later
from memoryd.client.protocol import ChangedMemories, GetStatus, Memory
from memoryd.client.times import iso


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
    page = show_result(args, methods.list_changes(args.limit), _text, lambda page: page.memories)
    if not page.memories and (state := send(args, GetStatus()).model.state) in ("loading", "fetching"):
        print_note(f"memctl: nothing is compared until the embedding model is there; it is {state}.")


def _text(page: ChangedMemories) -> str:
    if not page.memories:
        return "No later statement seems to change a saved memory."
    lines = [line for memory in page.memories for line in _lines(memory)]
    if page.total > len(page.memories):
        lines.append(f"… and {page.total - len(page.memories):,} more")
    id = page.memories[0].id[:8] if len(page.memories) == 1 else "ID"
    lines.append(f"The later one holds: memctl changes --new {id}. Both hold: memctl changes --both {id}.")
    return "\n".join(lines)


def _lines(memory: Memory) -> list[str]:
    about = f"{paint(memory.id[:8], 'cyan')}  {(iso(memory.created_at) or '')[:10]}  {to_one_line(memory.content)}"
    return [about, f"  {make_printable(say_later(memory.later))}"] if memory.later else [about]


COMMANDS = {
    "changes": Command(
        _declare_changes, _show_changes, "  memctl changes\n  memctl changes --new 3f9a\n  memctl changes --both 81c2"
    )
}

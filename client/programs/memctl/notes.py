"""The commands `remember` and `forget`: notes in the files of workspaces."""

import os
import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace

from memoryd.client.programs.memctl.arguments import Usage, add_reach, add_secrets
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.link import show_result
from memoryd.client.programs.memctl.memories import read_content
from memoryd.client.programs.memctl.output import make_printable, paint, undo_text
from memoryd.client.programs.memctl.source_file import make_link, short_path
from memoryd.client.programs.memctl.text_table import count_text, to_one_line
from memoryd.client.protocol import workspaces as calls

SHOWN_COLUMNS = 80


def resolve_place(name: str) -> str:
    """Return a workspace or file as the daemon expects it: a path is made absolute, a name is not changed."""
    return os.path.realpath(os.path.expanduser(name)) if name.startswith((".", "/", "~")) else name


# remember ------------------------------------------------------------------------------------------------------------


def _declare_remember(parser: ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", help="the note; `-` reads standard input")
    parser.add_argument("--workspace", metavar="W", default=".", help="its namespace or a path inside (default: here)")
    parser.add_argument(
        "--file", metavar="NAME", default="today", help="MEMORY.md, cache, alpha/today … (default: today)"
    )
    add_secrets(parser)


def _remember(args: Namespace) -> None:
    file = resolve_place(args.file)
    call = calls.Remember(text=read_content(args.text), workspace=resolve_place(args.workspace), file=file)
    show_result(args, call, _remembered_text)


def _remembered_text(written: calls.Remembered) -> str:
    lines = _lines_text(written.start_line, written.end_line)
    held = paint(written.id, "cyan") if written.id else "removed from the file again"
    return f"Written: {_place_text(written.path, lines)} ({held})"


def _place_text(path: str, lines: str) -> str:
    return make_link(to_one_line(f"{short_path(path)}:{lines}"), path)


def _lines_text(start: int, end: int) -> str:
    return str(start) if start == end else f"{start}-{end}"


# forget --------------------------------------------------------------------------------------------------------------


def _declare_forget(parser: ArgumentParser) -> None:
    parser.add_argument("ids", nargs="+", metavar="ID", help="ids or their first digits")
    parser.add_argument("--text", metavar="TEXT", help="only the list item or line of the file with this text")
    parser.add_argument("--lines", type=_parse_range, metavar="A-B", help="only these lines of the file")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be removed")
    add_reach(parser)


def _parse_range(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"([1-9]\d{0,15})(?:-([1-9]\d{0,15}))?", text)
    if not found:
        raise ArgumentTypeError(f"{text!r} is not a range of lines such as 12 or 12-14")
    return int(found[1]), int(found[2] or found[1])


def _forget(args: Namespace) -> None:
    if args.text is not None and args.lines:
        raise Usage("give either --text or --lines.")
    start, end = args.lines or (None, None)
    call = calls.Forget(ids=args.ids, text=args.text, start_line=start, end_line=end, dry_run=args.dry_run)
    show_result(args, call, _forgotten_text)


def _forgotten_text(gone: calls.Forgotten) -> str:
    parts = [_removed_text(part, gone.dry_run) for part in gone.removed]
    if gone.deleted and gone.dry_run:
        parts.append(f"Would delete {count_text(len(gone.deleted), 'memory')}.")
    elif gone.operation:
        deleted = count_text(len(gone.deleted), "memory")
        parts.append(f"Deleted {deleted}; {undo_text(gone.operation)} brings back what was deleted.")
    return "\n".join(parts)


def _removed_text(part: calls.RemovedLines, is_dry: bool) -> str:
    verb = "Would remove from" if is_dry else "Removed from"
    where = _place_text(part.path, _lines_text(part.start_line, part.end_line))
    lines = "".join(f"- {line}\n" for line in make_printable(part.text).splitlines())
    return f"{verb} {where}\n{paint(lines.rstrip(), 'red')}"


COMMANDS = {
    "remember": Command(
        _declare_remember,
        _remember,
        '  memctl remember "The cache is Valkey" --workspace notes\n'
        '  memctl remember "Never deploy on Friday" --file MEMORY.md\n'
        "  git log -1 --format=%B | memctl remember - --workspace ~/notes --file releases",
    ),
    "forget": Command(
        _declare_forget,
        _forget,
        '  memctl forget 3f9a --dry-run\n  memctl forget 3f9a --text "old cache"\n  memctl forget 3f9a --lines 12-14',
    ),
}

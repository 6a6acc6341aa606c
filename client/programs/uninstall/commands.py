"""The command `uninstall`: show the parts of memoryd on this machine, and remove them."""

import os
import shlex
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

import msgspec

from memoryd.client.errors import MemorydError
from memoryd.client.extras import advise
from memoryd.client.programs.hooks import folders
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.confirming import confirm
from memoryd.client.programs.memctl.local import is_installed
from memoryd.client.programs.memctl.output import complain, make_printable, paint, show
from memoryd.client.programs.memctl.source_file import shorten_home
from memoryd.client.programs.memctl.text_table import pad, size_text
from memoryd.client.programs.uninstall.finding import Installation, Part, Remains, find

_SHOWN = 10  # listed items that stay
_TOOLS = {("pipx", "venvs"): "pipx", ("uv", "tools"): "uv tool"}  # where a tool keeps the environments of programs


class _Report(msgspec.Struct):
    """The report for --json: the parts that are removed (`parts`), and those that stay (`remains`).

    `then` is the command that removes the program itself.
    """

    dry_run: bool
    parts: list[dict[str, str | int]]
    remains: list[dict[str, str | bool]]
    then: str


def _declare(parser: ArgumentParser) -> None:
    parser.add_argument("--keep-data", action="store_true", help="leave the memories and the settings where they are")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be removed")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def _uninstall(args: Namespace) -> int:
    there = find(args, args.keep_data)
    if args.dry_run or not there.parts:
        report = _make_report(there, dry_run=args.dry_run)
        show(args, report, lambda: _format(there, report.then, "Would be removed", "dim"))
        return 0 if args.dry_run else _judge(there)
    if not args.yes:
        warning = _make_warning(there, args.keep_data)
        preview = f"{_format(there, '', 'To be removed')}\nmemctl: {warning}"  # on stderr, which has no colours
        confirm("uninstall", warning, preview, "Nothing was removed.")
    folders.note_removal()
    for part in there.parts:
        part.remove()
    folders.remove_empty(there.made)
    _check_gone(there.parts)
    report = _make_report(there, dry_run=False)
    show(args, report, lambda: _format(there, report.then, "Removed", "dim"))
    return _judge(there)


def _judge(there: Installation) -> int:
    """Return the exit code; if it is not 0, print the reason to stderr."""
    return complain("Not all of memoryd is gone: see what stays.", 1) if there.is_unfinished else 0


def _make_warning(there: Installation, keep_data: bool) -> str:
    if keep_data:
        return "This removes memoryd; its memories and settings stay."
    kept = there.kept or "all memories"
    return f"This removes memoryd with {kept}; it cannot be undone. To take them along, {_advise_export(there)}."


def _advise_export(there: Installation) -> str:
    if is_installed() or any(part.what == "daemon" for part in there.parts):
        return "run `memctl export` first"
    return f"{advise('daemon')}; then run `memctl export`"


def _check_gone(parts: list[Part]) -> None:
    """Raise `MemorydError` if a daemon was started again meanwhile, since an agent is still running."""
    again = next((part.path for part in parts if part.what == "socket" and part.path.exists()), None)
    if again:
        raise MemorydError(
            f"{again} is there again: an agent that still runs has started the daemon anew. "
            "End its sessions, then run `memctl uninstall` again."
        )


def _make_report(there: Installation, dry_run: bool) -> _Report:
    parts: list[dict[str, str | int]] = [
        {"what": part.what, "path": str(part.path), "note": part.note, "size_bytes": part.size_bytes}
        for part in there.parts
    ]
    return _Report(dry_run, parts, [remain._asdict() for remain in there.remains], _find_program_command())


def _find_program_command() -> str:
    """Return the command that removes the program, which depends on where it is installed."""
    environment = Path(sys.prefix)
    tool = _TOOLS.get((environment.parent.parent.name, environment.parent.name))
    if tool:
        return f"{tool} uninstall {environment.name}"
    return f"{shlex.quote(os.path.abspath(sys.executable))} -m pip uninstall memoryd"


def _format(there: Installation, then: str, heading: str, *styles: str) -> str:
    lines = [f"{heading}:" if there.parts else "There is nothing to remove here but the program."]
    lines += [f"  {paint(pad(part.what, 8), *styles)}  {_format_part(part)}" for part in there.parts]
    if there.remains:
        lines += ["Stays:", *map(_format_remains, there.remains[:_SHOWN])]
    if len(there.remains) > _SHOWN:
        lines.append(f"  … and {len(there.remains) - _SHOWN} more (--json names all)")
    if then:
        lines.append(_format_then(then))
    return "\n".join(lines)


def _format_part(part: Part) -> str:
    words = [word for word in (part.note, size_text(part.size_bytes) if part.size_bytes else "") if word]
    path = make_printable(shorten_home(str(part.path)))
    return f"{path}  ({', '.join(words)})" if words else path


def _format_remains(remains: Remains) -> str:
    return f"  {make_printable(shorten_home(remains.name))}: {remains.reason}"


def _format_then(command: str) -> str:
    return f"The program itself: {paint(command, 'cyan')}"


COMMANDS = {
    "uninstall": Command(
        _declare,
        _uninstall,
        "  memctl uninstall --dry-run\n  memctl uninstall\n  memctl uninstall --keep-data --yes",
    ),
}

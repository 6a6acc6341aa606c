"""The commands `backup` and `restore`: make verified copies of the database, and restore one."""

import os
import shlex
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from pathlib import Path

from memoryd.client.calls import backup as backup_call
from memoryd.client.errors import Invalid, MemorydError
from memoryd.client.programs.memctl.arguments import Usage, add_optional
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.local import BACKUPS, Copy, list_copies, list_with_former
from memoryd.client.programs.memctl.output import make_printable, paint, show
from memoryd.client.programs.memctl.progress import ProgressBar, send_with_bar
from memoryd.client.programs.memctl.spooled import send_spooled
from memoryd.client.programs.memctl.text_table import count_kept, count_text, format_table, size_text
from memoryd.client.programs.memctl.upkeep.restart import exchange, folder_of, get_status, rescue
from memoryd.client.projects import known as projects
from memoryd.client.protocol import BackedUp
from memoryd.client.rescue import RescueReport
from memoryd.client.times import iso
from memoryd.client.transport import paths

LIMIT_S = 3600.0  # without progress; the daemon verifies the whole copy
FILE_NAME = "memoryd.sqlite"


def _declare_backup(parser: ArgumentParser) -> None:
    add_optional(parser, "path", "a new file or a folder (default: beside the database)")
    parser.add_argument("--list", action="store_true", help="list the copies and former databases")


def _backup(args: Namespace) -> None:
    if args.list:
        if args.path:
            raise Usage("--list takes no PATH.")
        folder = folder_of(get_status(args))
        found = list_with_former(folder)
        return show(args, found, lambda: _copies_text(found, folder))
    send_spooled(args, autostart=True)
    made = send_with_bar(args, backup_call(args.path or ""), "backup", "", LIMIT_S)
    return show(args, made, lambda: _made_text(made))


def _copies_text(copies: list[Copy], folder: Path) -> str:
    if not copies:
        return f"There are no copies in {folder / BACKUPS} yet; `memctl backup` makes one."
    table = format_table(["MADE", "MEMORIES", "SIZE", "NAME"], list(map(_build_row, copies)), flexible=0, right=(1, 2))
    former = f", `before-…` in {folder}" if any(copy.former for copy in copies) else ""
    where = f"The copies are in {folder / BACKUPS}{former}."
    return f"{table}\n`{paint('memctl restore NAME', 'cyan')}` restores one. {where}"


def _build_row(copy: Copy) -> list[str]:
    made = iso(copy.made_at) or ""
    memories = "unreadable" if copy.memories is None else f"{copy.memories:,}"
    return [made, memories, size_text(copy.size_bytes), copy.name]


def _made_text(made: BackedUp) -> str:
    contents = f"{count_kept(made.memories, made.turns, made.parts)} ({size_text(made.size_bytes)})"
    command = paint(f"memctl restore {shlex.quote(made.path)}", "cyan")
    return f"Copied {contents} to {made.path}; checked.\n`{command}` restores it."


def _declare_restore(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a file, a name from `memctl backup --list`, or `latest`")
    parser.add_argument("--tokens", action="store_true", help="also restore tokens of the copy that are not valid here")


def _restore(args: Namespace) -> None:
    if not args.file:
        raise Usage("FILE is empty: name a copy (`memctl backup --list`), or `latest`.")
    status = get_status(args)
    folder = folder_of(status)
    file = choose_copy(folder, args.file)
    with ProgressBar(f"restoring {file.name}", 2) as bar:
        bar.update(1)
        report = rescue(folder, "restore", str(file), *(["--tokens"] if args.tokens else []))
        report = exchange(args, status, report)
    with suppress(OSError, MemorydError):  # `memctl doctor` checks that file
        report.projects, report.lost_folders = projects.take_over(report.projects)
    show(args, report, lambda: _restored_text(report, file, bool(status)))


def choose_copy(folder: Path, name: str) -> Path:
    """Return the file of a copy, given by a path or by its name in the list of copies; raise `Invalid`."""
    if name == "latest":
        if not (found := list_copies(folder)):
            raise Invalid(f"There are no copies in {folder / BACKUPS}.")
        return Path(found[-1].path)
    given = Path(paths.make_absolute(name))
    files = [given, given / FILE_NAME]
    if "/" not in name:
        files += [folder / BACKUPS / name, folder / BACKUPS / f"{name}.sqlite", folder / name / FILE_NAME]
    for file in filter(Path.is_file, files):
        if os.path.realpath(file) == os.path.realpath(folder / FILE_NAME):
            raise Invalid(f"{file} is the database in use, not a copy; `memctl backup --list` shows the copies.")
        return file
    if given.is_dir():
        raise Invalid(
            f"{given} is a folder without a copy: there is no {FILE_NAME} in it. If `memctl export` wrote it:"
            f" `memctl import {shlex.quote(str(given))}`."
        )
    raise Invalid(f"There is no file {given}. `memctl backup --list` shows the names of all copies.")


def _restored_text(report: RescueReport, file: Path, ran: bool) -> str:
    changed = f", last changed {iso(report.changed_at)}" if report.changed_at else ""
    lines = [f"Restored {count_kept(report.memories, report.turns, report.parts)} from {file}{changed}; checked."]
    if report.dropped:
        names = make_printable(", ".join(report.dropped))
        lines.append(f"Dropped from it, because it is not memoryd's: {names}. Do you know who made this file?")
    if report.tokens:
        names = make_printable(", ".join(report.tokens))
        again = make_printable(f"memctl restore {shlex.quote(str(file))} --tokens")
        lines.append(
            f"Left out tokens that are not valid here: {names}. To keep them run `{again}` now, before anything new is"
            " stored here."
        )
    if report.workspaces:
        parts = f", with {count_text(report.chunks, 'part')} of files" if report.chunks else ""
        lines.append(f"Left out workspaces that are not indexed here{parts}. To index them:")
        lines += [_build_adding(root, namespace) for root, namespace in report.workspaces.items()]
    if report.pauses:
        names = make_printable(", ".join(report.pauses))
        lines.append(
            f"Paused folders that are not on this machine: {names}. At their new paths turns are recorded until you run"
            " `memctl observe off --folder PATH`; `memctl observe on --folder OLDPATH` removes the old path from the"
            " list."
        )
    if report.kept_pauses:
        names = make_printable(", ".join(report.kept_pauses))
        lines.append(f"Still not observed, because it was paused here after the copy: {names}.")
    for folder, namespace in report.lost_folders.items():
        again = f"memctl project rename {shlex.quote(folder)}"
        lines.append(
            make_printable(
                f"No longer a folder of {namespace}, which is another project in the copy: {folder}. If both are the"
                f" same project: `{again} {shlex.quote(namespace)} --join`. If not: `{again} NEW` gives this one"
                " another name."
            )
        )
    if report.projects:
        names = ", ".join(
            one["namespace"] + (f" ({one['remote']})" if one["remote"] else "") for one in report.projects
        )
        lines.append(
            f"Projects without a folder here: {make_printable(names)}. A checkout of the same remote is one of them"
            " by itself; for another folder: `memctl project move NAME FOLDER`."
        )
    if report.erased:
        erased = f"Erased again, because erased here since the copy: {count_text(len(report.erased), 'memory')}."
        rest = f" `memctl erase {report.erased[0][:8]} --copies` rewrites all copies in the data folder."
        lines.append(f"{erased}{rest if report.copies else ''}")
        if report.parts:
            lines.append(
                "Words that an indexed file had when the copy was made, and has no more, may stay in free space of the"
                " database: `memctl erase --matching -` with the word clears them."
            )
    if ran:
        lines.append("The daemon was restarted for it.")
    if report.kept:
        later = ", with all changes after the copy," if report.changed_at else ""
        lines.append(f"The former database{later} is kept in {report.kept}; delete that folder if you do not need it.")
    return "\n".join(lines)


def _build_adding(root: str, namespace: str) -> str:
    """Return the command that adds a workspace of the copy again; its folder may have moved."""
    is_here = Path(root).is_dir()
    path, name = shlex.quote(root) if is_here else "PATH", shlex.quote(namespace)
    where = "" if is_here else f"  # PATH is where {root} is now"
    return make_printable(f"  memctl workspace add {path} --namespace {name}{where}")


COMMANDS = {
    "backup": Command(
        _declare_backup,
        _backup,
        "  memctl backup\n  memctl backup ~/safe/memories.sqlite\n  memctl backup --list",
    ),
    "restore": Command(_declare_restore, _restore, "  memctl restore latest\n  memctl restore ~/safe/memories.sqlite"),
}

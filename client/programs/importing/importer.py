"""Run `memctl import --from`: read the memories of another system, check them, and import them in one operation."""

import signal
import subprocess
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import msgspec

from memoryd.client.errors import Invalid
from memoryd.client.programs.importing import child
from memoryd.client.programs.importing.systems import SYSTEMS
from memoryd.client.programs.memctl.confirming import confirm
from memoryd.client.programs.memctl.link import named_namespace
from memoryd.client.programs.memctl.output import make_printable, print_note, say, say_json, to_plain
from memoryd.client.programs.memctl.progress import ProgressBar
from memoryd.client.programs.memctl.sending import SHOWN, Item, open_spool, report_text, require_file, send
from memoryd.client.protocol import Imported, Record

_CHILD = "memoryd.client.programs.importing.child"


class ReaderNotes(msgspec.Struct):
    """The last line of the child process: skipped entries by reason, and notes."""

    skipped: dict[str, int]
    notes: list[str]


def import_from(args: Namespace) -> None:
    """Run `memctl import --from SYSTEM PATH`."""
    path = Path(args.source).expanduser()
    if args.source == "-" or not path.exists():
        kind = SYSTEMS[args.system].path
        raise Invalid(f"{args.source}: there is no such file or folder. --from {args.system} takes {kind}.")
    if not path.is_dir():
        require_file(path)
    with open_spool() as spool:
        _read_in_child(args, path, spool)
        total, reader_notes, places = _check_spool(spool, path)
        if not total and not reader_notes.skipped:
            raise Invalid(f"{path} has nothing to import.")
        done = send(args, lambda: _read_spool(spool), total)
    for note in reader_notes.notes[:SHOWN]:
        print_note(note)
    if len(reader_notes.notes) > SHOWN:
        print_note(f"… and {len(reader_notes.notes) - SHOWN:,} more.")
    _show(args, done, reader_notes)
    if done.created and places and not args.json:
        print_note(_describe_places(sorted(places), args.dry_run))


def _describe_places(places: list[str], dry_run: bool) -> str:
    """Describe in which namespaces the memories are, and which sessions see them."""
    named = ", ".join(map(make_printable, places[:SHOWN])) + (" …" if len(places) > SHOWN else "")
    verb = "Would be kept" if dry_run else "Kept"
    each = "the project" if len(places) == 1 else "a project"
    return f"memctl: {verb} in {named}: agents see them in {each} of this name. With --to / all projects see them."


def _read_in_child(args: Namespace, path: Path, spool: IO[bytes]) -> None:
    """Read the source in the child process; if it refers to folders elsewhere, ask first."""
    done = _run_child(args, path, spool, args.yes)
    if done.returncode == child.UNCONFIRMED:
        _confirm(path, done.stderr.decode(errors="replace").split("\n"))
        done = _run_child(args, path, spool, confirmed=True)
    if done.returncode:
        raise Invalid(_explain(path, done))


def _run_child(args: Namespace, path: Path, spool: IO[bytes], confirmed: bool) -> "subprocess.CompletedProcess[bytes]":
    words = [args.system, str(path), named_namespace(args) or "", *(["--confirmed"] if confirmed else [])]
    words += [] if args.to is None else [f"--to={args.to.strip('/')}"]
    spool.seek(0)
    spool.truncate()
    with ProgressBar(f"reading {args.system}", 1) as bar:
        bar.update(0)
        command = [sys.executable, "-P", "-m", _CHILD, *words]
        return subprocess.run(command, stdout=spool, stderr=subprocess.PIPE, check=False)


def _confirm(path: Path, folders: list[str]) -> None:
    """Ask whether to read the folders that a database refers to; raise an error if not."""
    named = "\n".join(f"  {make_printable(folder)}" for folder in folders if folder)
    warning = f"{path} refers to folders elsewhere, whose notes would be read:\n{named}"
    confirm("yes", f"{warning}\n", f"memctl: {warning}", "Nothing was imported.")


def _explain(path: Path, done: "subprocess.CompletedProcess[bytes]") -> str:
    """Return the error message for a failed child process."""
    message = done.stderr.decode(errors="replace").strip()
    if done.returncode == child.FAILED and message:
        return message
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"Reading {path} takes longer than an import may take ({child.PROCESSOR_S} s). Nothing was imported."
    reason = message.splitlines()[-1] if message else "the reading process ended"
    return f"{path} cannot be read: {reason}. Nothing was imported."


def _check_spool(spool: IO[bytes], path: Path) -> tuple[int, ReaderNotes, set[str]]:
    """Check each line of the child process; return the number of memories, the skipped entries, and the namespaces."""
    places: set[str] = set()
    spool.seek(0)
    total, last = 0, b""
    for line in spool:
        if last:
            record = _to_item(last).record
            places.update([record.namespace] if record and record.namespace else [])
            total += 1
        last = line
    try:
        return total, msgspec.json.decode(last, type=ReaderNotes), places
    except msgspec.DecodeError:
        raise Invalid(f"{path} could not be read to its end. Nothing was imported.") from None


def _read_spool(spool: IO[bytes]) -> Iterator[Item]:
    spool.seek(0)
    last = b""
    for line in spool:
        if last:
            yield _to_item(last)
        last = line


def _to_item(line: bytes) -> Item:
    where, time, fields = msgspec.json.decode(line)
    return Item(where, msgspec.convert(fields, Record), time)


def _show(args: Namespace, done: Imported, reader_notes: ReaderNotes) -> None:
    if args.json:
        result: dict[str, Any] = to_plain(done)
        say_json({**result, "left_out": reader_notes.skipped, "notes": reader_notes.notes})
        return
    say(report_text(done))
    for reason, number in Counter(reader_notes.skipped).most_common():
        say(f"{number:,} left out: {reason}.")

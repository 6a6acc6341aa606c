"""import: memories of an export back into a daemon, from JSON lines or from a folder of Markdown files."""

import os
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec

from memoryd.client.batches import batches
from memoryd.client.calls import import_memories
from memoryd.client.errors import Invalid
from memoryd.client.memctl.commands import Command
from memoryd.client.memctl.link import client_for
from memoryd.client.memctl.output import note, paint, show
from memoryd.client.memctl.progress import ProgressBar
from memoryd.client.memctl.record_text import from_json, from_markdown
from memoryd.client.memctl.table import count
from memoryd.client.protocol import Imported, Record

PER_CALL = 500
MAX_FILE_BYTES = 16 * 1024 * 1024
SHOWN = 10  # files that are named one by one


class Item(NamedTuple):
    """A record and where it stands; without one, a file that holds no memory."""

    where: str
    record: Record | None


Items = Callable[[], Iterator[Item]]


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("source", metavar="DIR|FILE", help="a folder of an export, JSON lines, or `-` for stdin")
    parser.add_argument("--overwrite", action="store_true", help="what is imported wins, also over later changes")
    parser.add_argument("--dry-run", action="store_true", help="tell what would be done, change nothing")


def _import(args: Namespace) -> None:
    with tempfile.TemporaryFile() as spool:
        items = _source(args.source, spool)
        total, foreign = _check(items)  # all of it, before anything is sent
        done = _send(args, items, total)
    for where in foreign[:SHOWN]:
        note(f"{where}: not a memory of an export, left out")
    if len(foreign) > SHOWN:
        note(f"{len(foreign) - SHOWN:,} more files are no memories of an export")
    show(args, done, lambda: _text(done))


def _source(name: str, spool: IO[bytes]) -> Items:
    """Return what yields the records of a source, as often as it is asked."""
    path = Path(name).expanduser()
    if name != "-" and path.is_dir():
        return lambda: _folder(path)
    if name != "-":
        return lambda: _lines(name, path.open("rb"))
    if sys.stdin is None:
        raise Invalid("There is no standard input to read from.")
    for line in sys.stdin.buffer:
        spool.write(line)

    def again() -> Iterator[Item]:
        spool.seek(0)
        return _lines("standard input", spool, close=False)

    return again


def _lines(name: str, file: IO[bytes], close: bool = True) -> Iterator[Item]:
    """Yield the records of JSON lines, or of the one JSON list that `export --json` prints."""
    try:
        for number, line in enumerate(file, start=1):
            if number == 1 and line.lstrip().startswith(b"["):
                for place, item in enumerate(_list(name, line + file.read()), start=1):
                    yield Item(f"{name}, entry {place}", _parsed(f"{name}, entry {place}", item, from_json))
            elif line.strip():
                yield Item(f"{name}, line {number}", _parsed(f"{name}, line {number}", line, from_json))
    finally:
        if close:
            file.close()


def _list(name: str, data: bytes) -> list[msgspec.Raw]:
    try:
        return msgspec.json.decode(data, type=list[msgspec.Raw])
    except msgspec.DecodeError as error:
        raise Invalid(f"{name}: Not a JSON list: {error}. Nothing was imported.") from None


def _folder(folder: Path) -> Iterator[Item]:
    for path in _files(folder):
        name = str(path)
        if path.stat().st_size > MAX_FILE_BYTES:
            yield Item(name, None)
        else:
            yield Item(name, _parsed(name, path.read_bytes(), from_markdown))


def _files(folder: Path) -> Iterator[Path]:
    """Yield the Markdown files below a folder in order: no hidden ones, nothing through symlinks."""

    def refuse(error: OSError) -> None:
        raise error

    for here, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(here, name)
            if name.endswith(".md") and not name.startswith(".") and not path.is_symlink():
                yield path


def _parsed(where: str, data: Any, parse: Callable[[Any], Record | None]) -> Record | None:
    try:
        return parse(data)
    except Invalid as error:
        raise Invalid(f"{where}: {error.message} Nothing was imported.") from None


def _check(items: Items) -> tuple[int, list[str]]:
    """Read everything once; return how many memories there are and which files hold none; raise `Invalid`."""
    seen: dict[str, str] = {}
    foreign: list[str] = []
    for where, record in items():
        if record is None:
            foreign.append(where)
        elif first := seen.get(record.id):
            raise Invalid(f"{where} and {first} hold the same memory {record.id[:8]}. Nothing was imported.")
        else:
            seen[record.id] = where
    if not seen:
        raise Invalid("There are no memories to import.")
    return len(seen), foreign


def _send(args: Namespace, items: Items, total: int) -> Imported:
    done = Imported(dry_run=args.dry_run)
    with client_for(args) as client, ProgressBar("import", total) as bar:
        sent = 0
        for batch in batches((item for item in items() if item.record), PER_CALL, lambda item: item.record):
            call = import_memories(
                [item.record for item in batch if item.record],
                overwrite=args.overwrite,
                dry_run=args.dry_run,
                operation=done.operation,
            )
            try:
                _count(done, client.call(call))
            except Invalid as error:
                raise _named(error, batch, done) from None
            sent += len(batch)
            bar.update(sent)
    return done


def _count(done: Imported, part: Imported) -> None:
    done.created += part.created
    done.replaced += part.replaced
    done.unchanged += part.unchanged
    done.skipped += part.skipped
    done.kept += part.kept
    done.operation = part.operation or done.operation


def _named(error: Invalid, batch: list[Item], done: Imported) -> Invalid:
    """Return an error of the daemon with the place of the record that it means."""
    index = error.data.get("index")
    if not isinstance(index, int) or index >= len(batch):
        return error
    reason = error.message.removeprefix(f"Memory {index}: ")
    before = f" What came before is imported: `memctl undo {done.operation}`." if done.operation else ""
    return Invalid(f"{batch[index].where}: {reason}{before}", error.data)


def _text(done: Imported) -> str:
    would = "Would import" if done.dry_run else "Imported"
    lines = [
        f"{would} {count(done.created + done.replaced, 'memory')}: {done.created:,} new, {done.replaced:,} changed."
    ]
    if done.unchanged:
        lines.append(f"{count(done.unchanged, 'memory')} already as imported.")
    if done.kept:
        lines.append(
            f"{count(len(done.kept), 'memory')} kept as stored, being as new or newer (--overwrite replaces them): "
            f"{', '.join(id[:8] for id in done.kept[:SHOWN])}{' …' if len(done.kept) > SHOWN else ''}"
        )
    if done.skipped:
        lines.append(f"{count(done.skipped, 'chunk')} of files left out: add their folder as a workspace.")
    if done.operation:
        lines.append(f"`{paint(f'memctl undo {done.operation}', 'cyan')}` takes it back.")
    return "\n".join(lines)


COMMANDS = {
    "import": Command(
        _arguments,
        _import,
        "  memctl import memories.jsonl\n"
        "  memctl import ~/notes/memories --dry-run\n"
        "  memctl export | memctl import - --socket /run/other.sock",
    )
}

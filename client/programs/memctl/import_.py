"""The command `import`: read memories from an export (JSON lines, Markdown files) or from another system."""

import os
import shlex
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import IO, Any

import msgspec

from memoryd.client.errors import Invalid
from memoryd.client.programs.importing.importer import import_from
from memoryd.client.programs.importing.systems import SYSTEMS
from memoryd.client.programs.memctl.arguments import Usage, add_secrets
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.escapes import decode_json
from memoryd.client.programs.memctl.import_lines import import_lines, is_new
from memoryd.client.programs.memctl.link import check_person
from memoryd.client.programs.memctl.output import print_note, show
from memoryd.client.programs.memctl.record_text import parse_json, parse_markdown
from memoryd.client.programs.memctl.sending import (
    SHOWN,
    Item,
    Items,
    open_spool,
    read_lines,
    report_text,
    require_file,
    send,
)
from memoryd.client.protocol import Record

MAX_FILE_BYTES = 16 * 1024 * 1024
MAX_LIST_BYTES = 512 * 1024 * 1024
MAX_SPOOL_BYTES = 4 * 1024**3
_DATABASE = b"SQLite format 3\0"  # the first bytes of a SQLite database


def _declare(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("source", metavar="PATH", help="an export: a folder, JSON lines or `-`; or JSON lines with `content`")
    system = f"PATH belongs to another system: {', '.join(SYSTEMS)}"
    add("--from", dest="system", choices=tuple(SYSTEMS), metavar="SYSTEM", help=system)
    add(
        "--to",
        metavar="NS",
        help="with --from: import everything into this namespace, such as / (default: one per project or user)",
    )
    add_secrets(parser)
    add(
        "--overwrite",
        action="store_true",
        help="imported memories win, even if they were changed, deleted or erased here",
    )
    add(
        "--mine",
        action="store_true",
        help="PATH is your own: keep the origins and confirmations of an export; other lines count as your words",
    )
    add("--yes", action="store_true", help="with --from: read folders that the database refers to without asking")
    add("--dry-run", action="store_true", help="only report what would be imported")


def _import(args: Namespace) -> None:
    if args.mine:
        check_person("Run `memctl import --mine`")
    if args.system:
        return import_from(args)
    if args.to is not None:
        raise Usage("--to is for --from; the memories of an export are imported below --namespace.")
    with open_spool() as spool:
        source = _open_source(args.source, spool)
        if (lines := _find_new_lines(args.source, spool)) is not None:
            return import_lines(args, "standard input" if args.source == "-" else args.source, lines)
        items = _move_below(source, (args.namespace or "").strip("/"))
        total, foreign = _check(items)  # checks all records before the first is sent
        report = send(args, items, total)
    for where in foreign[:SHOWN]:
        print_note(f"{where}: not a memory of an export, left out")
    if len(foreign) > SHOWN:
        print_note(f"{len(foreign) - SHOWN:,} more files are not memories of an export")
    return show(args, report, lambda: report_text(report))


def _find_new_lines(name: str, spool: IO[bytes]) -> list[bytes] | None:
    """Return the lines of a source that is not an export but has a `content` in each line; None for other sources."""
    path = Path(name).expanduser()
    if name != "-" and path.is_dir():
        return None
    spool.seek(0)
    with path.open("rb") if name != "-" else nullcontext(spool) as file:
        lines = read_lines(file, name)
        first = next((line for line in lines if line.strip()), b"")
        if not is_new(first):
            return None
        return [first, *lines]


def _move_below(items: Items, namespace: str) -> Items:
    """Return a function that yields the same records, with their namespaces moved below `namespace`."""
    if not namespace:
        return items

    def move_each() -> Iterator[Item]:
        for item in items():
            if item.record is not None:
                item.record.namespace = f"{namespace}/{item.record.namespace}".rstrip("/")
            yield item

    return move_each


def _open_source(name: str, spool: IO[bytes]) -> Items:
    """Return a function that yields the records of a source each time it is called."""
    path = Path(name).expanduser()
    if name != "-" and path.is_dir():
        return lambda: _read_folder(path)
    if name != "-":
        require_file(path)
        with path.open("rb") as file:
            is_database = file.read(len(_DATABASE)) == _DATABASE
        if is_database:
            raise Invalid(
                f"{path} is a database. If `memctl backup` made it, `memctl restore {shlex.quote(str(path))}` replaces"
                " the database here with it; for another system's give --from SYSTEM. Nothing was imported."
            )
        return lambda: _read_lines(name, path.open("rb"))
    if sys.stdin is None:
        raise Invalid("There is no standard input to read from.")
    size = 0
    for line in read_lines(sys.stdin.buffer, "standard input"):
        size += len(line)
        if size > MAX_SPOOL_BYTES:
            raise Invalid(f"Standard input is longer than {MAX_SPOOL_BYTES >> 30} GiB. Nothing was imported.")
        spool.write(line)

    def read_again() -> Iterator[Item]:
        spool.seek(0)
        return _read_lines("standard input", spool, close=False)

    return read_again


def _read_lines(name: str, file: IO[bytes], close: bool = True) -> Iterator[Item]:
    """Yield the records of JSON lines, or of the one JSON list that `export --json` prints."""
    try:
        for number, line in enumerate(read_lines(file, name), start=1):
            if number == 1 and line.lstrip().startswith(b"["):
                data = line + file.read(MAX_LIST_BYTES)
                for place, item in enumerate(_read_list(name, data), start=1):
                    yield Item(f"{name}, entry {place}", _parse(f"{name}, entry {place}", item, parse_json))
            elif line.strip():
                yield Item(f"{name}, line {number}", _parse(f"{name}, line {number}", line, parse_json))
    finally:
        if close:
            file.close()


def _read_list(name: str, data: bytes) -> list[msgspec.Raw]:
    if len(data) > MAX_LIST_BYTES:
        raise Invalid(f"{name}: A JSON list has at most {MAX_LIST_BYTES >> 20} MiB; `memctl export` makes JSON lines.")
    try:
        return decode_json(data, list[msgspec.Raw])
    except (msgspec.DecodeError, RecursionError) as error:
        raise Invalid(f"{name}: Not a JSON list: {error}. Nothing was imported.") from None


def _read_folder(folder: Path) -> Iterator[Item]:
    for path in _list_files(folder):
        name = str(path)
        is_large = path.stat().st_size > MAX_FILE_BYTES
        yield Item(name, None if is_large else _parse(name, path.read_bytes(), parse_markdown))


def _list_files(folder: Path) -> Iterator[Path]:
    """Yield the Markdown files below a folder in order, without hidden ones and without following symlinks."""

    def refuse(error: OSError) -> None:
        raise error

    for here, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(here, name)
            if name.endswith(".md") and not name.startswith(".") and path.is_file() and not path.is_symlink():
                yield path


def _parse(where: str, data: Any, parse: Callable[[Any], Record | None]) -> Record | None:
    try:
        return parse(data)
    except Invalid as error:
        raise Invalid(f"{where}: {error.message} Nothing was imported.") from None


def _check(items: Items) -> tuple[int, list[str]]:
    """Read everything once; return how many memories there are and which files have none; raise `Invalid`."""
    places: dict[str, str] = {}
    foreign: list[str] = []
    for where, record, _ in items():
        if record is None:
            foreign.append(where)
        elif first := places.get(record.id):
            raise Invalid(f"{where} and {first} have the same memory {record.id[:8]}. Nothing was imported.")
        else:
            places[record.id] = where
    if not places:
        raise Invalid("There are no memories to import.")
    return len(places), foreign


COMMANDS = {
    "import": Command(
        _declare,
        _import,
        "  memctl import memories.jsonl\n"
        "  memctl import ~/notes/memories --dry-run\n"
        "  memctl export | memctl import - --socket /run/other.sock\n"
        "  memctl import --from claude-mem ~/.claude-mem --namespace work --dry-run\n"
        "  memctl import --from mcp-memory memory.jsonl\n"
        "  memctl import --from memory-md ~/.claude/projects/-home-me-api --namespace api",
    )
}

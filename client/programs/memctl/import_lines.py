"""The command `import` for JSON lines that are not an export but new memories: `{"content": …}`."""

from argparse import Namespace
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from memoryd.client import protocol
from memoryd.client.errors import Invalid
from memoryd.client.fields import new_memory
from memoryd.client.programs.memctl.escapes import decode_json
from memoryd.client.programs.memctl.link import client_for, namespace_of, say_redacted
from memoryd.client.programs.memctl.output import make_printable, show
from memoryd.client.programs.memctl.progress import ProgressBar
from memoryd.client.programs.memctl.text_table import count_text
from memoryd.client.protocol import MemoryOrigin
from memoryd.client.times import is_past
from memoryd.client.transport.batches import split_batches, sum_kinds

PER_CALL = 200  # lines per call
SHOWN = 5  # listed namespaces


class Line(NamedTuple):
    """A memory to add, and its namespace."""

    namespace: str
    memory: protocol.NewMemory


class Report(msgspec.Struct):
    """The outcome of the import."""

    created: int = 0
    merged: int = 0
    redacted: protocol.Redacted = {}
    dry_run: bool = False


def is_new(line: bytes) -> bool:
    """Return whether a line is a new memory; a line of an export also has the time of the last change."""
    try:
        item = decode_json(line, dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return "content" in item and "updated_at" not in item and "role" not in item


def import_lines(args: Namespace, name: str, data: Iterable[bytes]) -> None:
    """Add the memories of JSON lines; all are checked before the first is sent."""
    here = namespace_of(args)
    origin: MemoryOrigin = "person" if args.mine else "import"
    lines = [_parse(here, name, number, line, origin) for number, line in enumerate(data, start=1) if line.strip()]
    report = Report(dry_run=args.dry_run)
    if not args.dry_run:
        with client_for(args) as client, ProgressBar("import", len(lines)) as progress:
            for call in _build_calls(lines):
                added = client.call(msgspec.structs.replace(call, allow_secrets=args.allow_secrets))
                report.created += added.created
                report.merged += added.merged
                report.redacted = sum_kinds((report.redacted, added.redacted))
                progress.update(progress.done + len(call.memories))
    say_redacted(report.redacted)
    show(args, report, lambda: _describe(report, lines))


def _parse(here: str, name: str, number: int, line: bytes, origin: MemoryOrigin) -> Line:
    try:
        item = decode_json(line, dict[str, Any])
        return Line(str(item.pop("namespace", here)).strip("/"), new_memory({**item, "origin": origin}))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"Line {number} of {name} is not a JSON object: {error}. Nothing was imported.") from None
    except Invalid as error:
        raise Invalid(f"Line {number} of {name}: {error.message} Nothing was imported.") from None


def _build_calls(lines: list[Line]) -> Iterator[protocol.AddMany]:
    """Yield the calls that send the lines in their order."""
    for namespace, group in groupby(lines, key=lambda line: line.namespace):
        for part in split_batches([line.memory for line in group], PER_CALL):
            yield protocol.AddMany(namespace=namespace, memories=part)


def _describe(report: Report, lines: list[Line]) -> str:
    names = list(dict.fromkeys(line.namespace for line in lines))
    where = make_printable(", ".join(name or "/" for name in names[:SHOWN])) + " …" * (len(names) > SHOWN)
    if report.dry_run:
        return f"{count_text(len(lines), 'memory')} would be added in {where}. Nothing was changed."
    merged = f", {report.merged:,} merged into others" if report.merged else ""
    expired = sum(is_past(line.memory.expires_at) and not line.memory.pinned for line in lines)
    note = f"\n{expired:,} of them have expired: no search finds these, `memctl list --all-states` shows them."
    return f"Added in {where}: {count_text(report.created, 'memory')}{merged}.{note * bool(expired)}"

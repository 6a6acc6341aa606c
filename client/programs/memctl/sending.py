"""Send records to a daemon as one operation in several calls, and report the outcome."""

import stat
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import IO, Literal, NamedTuple

from memoryd.client.calls import import_memories
from memoryd.client.errors import Invalid
from memoryd.client.programs.memctl.link import client_for, say_redacted
from memoryd.client.programs.memctl.output import paint
from memoryd.client.programs.memctl.progress import ProgressBar
from memoryd.client.programs.memctl.text_table import count_text, list_ids
from memoryd.client.protocol import Imported, Record
from memoryd.client.transport import paths
from memoryd.client.transport.batches import count_bytes, split_batches, sum_kinds
from memoryd.client.transport.spawn import make_private
from memoryd.client.transport.sync import Client

PER_CALL = 500
MAX_LINE_BYTES = 64 * 1024 * 1024
SHOWN = 10  # ids or files that are listed


Time = Literal["own", "file", "unknown"]


class Item(NamedTuple):
    """A record and where it was read; the record is None for a file without a memory.

    `time` says where its times are from. `own`: the record has them. `file`: the file's time, so that a memory that is
    stored with the same content stays as it is. `unknown`: the id is derived from the content, and a stored memory
    stays as it is.
    """

    where: str
    record: Record | None
    time: Time = "own"


Items = Callable[[], Iterator[Item]]


def open_spool() -> IO[bytes]:
    """Return a nameless file in the data directory for memories that are read once and sent later."""
    folder = paths.data_dir() / "tmp"
    for path in (folder.parent, folder):
        make_private(path)
    return tempfile.TemporaryFile(dir=folder)


def require_file(path: Path) -> None:
    """Raise `Invalid` for a folder, and for a pipe or a device, which may have no end."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        what = "a folder, not a file" if stat.S_ISDIR(mode) else "neither a file nor a folder"
        raise Invalid(f"{path} is {what}. Nothing was imported.")


def read_lines(file: IO[bytes], name: str) -> Iterator[bytes]:
    """Yield the lines of a file; raise `Invalid` for a line that is longer than an export can have."""
    for number in count(1):
        line = file.readline(MAX_LINE_BYTES + 1)
        if not line:
            return
        if len(line) > MAX_LINE_BYTES:
            raise Invalid(f"{name}, line {number} is longer than {MAX_LINE_BYTES >> 20} MiB. Nothing was imported.")
        yield line


def send(args: Namespace, items: Items, total: int) -> Imported:
    """Send all items as one operation, with a progress bar; raise `Invalid` naming the place of an invalid one."""
    report = Imported(dry_run=args.dry_run)
    with client_for(args) as client, ProgressBar("import", total) as bar:
        number = 0
        records = (item for item in items() if item.record)
        for batch in split_batches(records, PER_CALL, lambda item: count_bytes(item.record)):
            fresh = _drop_known(client, batch, args, report)
            call = import_memories(
                [item.record for item in fresh if item.record],
                overwrite=args.overwrite,
                dry_run=args.dry_run,
                operation=report.operation,
                allow_secrets=args.allow_secrets,
                mine=getattr(args, "mine", False) and not getattr(args, "system", None),
            )
            try:
                part = client.call(call) if fresh else Imported()
            except Invalid as error:
                raise _locate_error(error, fresh, report) from None
            report.add(part)
            report.redacted = sum_kinds((report.redacted, part.redacted))
            number += len(batch)
            bar.update(number)
    say_redacted(report.redacted)
    return report


def _drop_known(client: Client, batch: list[Item], args: Namespace, report: Imported) -> list[Item]:
    """Return the items to send: all except undated ones that are stored already with the same content."""
    undated = [item.record.id for item in batch if item.record and item.time != "own"]
    if not undated or args.overwrite:
        return batch
    by_id = {record.id: record for record in client.export_memories(ids=undated, limit=PER_CALL, reach="all")}
    fresh = []
    for item in batch:
        present = by_id.get(item.record.id) if item.record and item.time != "own" else None
        if item.record is None or present is None:
            fresh.append(item)
        elif item.time == "unknown" or present.content == item.record.content:
            report.unchanged += 1
        else:
            item.record.created_at = present.created_at
            fresh.append(item)
    return fresh


def _locate_error(error: Invalid, batch: list[Item], report: Imported) -> Invalid:
    """Return an error of the daemon with the place of the record that it is about."""
    index = error.data.get("index")
    if not isinstance(index, int) or index >= len(batch):
        return error
    reason = error.message.removeprefix(f"Memory {index}: ")
    undo = report.operation and f"`memctl undo {report.operation[:8]}`"
    before = f" The memories before it are imported; {undo} takes them back." if undo else ""
    return Invalid(f"{batch[index].where}: {reason}{before}", error.data)


def report_text(report: Imported) -> str:
    """Describe what an import did."""
    verb = "Would import" if report.dry_run else "Imported"
    number = count_text(report.created + report.replaced, "memory")
    lines = [f"{verb} {number}: {report.created:,} new, {report.replaced:,} changed."]
    if report.changed:
        lines.append(f"Changed: {list_ids(report.changed)}. `memctl history ID` shows what was here before.")
    if report.unchanged:
        lines.append(f"{count_text(report.unchanged, 'memory')} unchanged.")
    if report.kept:
        lines.append(
            f"{count_text(len(report.kept), 'memory')} left as stored, because the stored ones are as new or newer"
            f" (--overwrite replaces them): {list_ids(report.kept)}"
        )
    if report.erased:
        were = "was" if report.erased == 1 else "were"
        lines.append(
            f"{count_text(report.erased, 'memory')} left out that {were} erased here (--overwrite imports them)."
        )
    if report.deleted:
        were = "was" if len(report.deleted) == 1 else "were"
        lines.append(
            f"{count_text(len(report.deleted), 'memory')} left out that {were} deleted here: {list_ids(report.deleted)}"
            " (--overwrite imports them)."
        )
    if report.skipped:
        lines.append(f"{count_text(report.skipped, 'chunk')} of files left out: add their folder as a workspace.")
    if report.operation:
        lines.append(f"`{paint(f'memctl undo {report.operation[:8]}', 'cyan')}` takes it back.")
    return "\n".join(lines)

"""The command `export`: write all memories as JSON lines to stdout, or as a folder of Markdown files."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

from memoryd.client.calls import export_memories
from memoryd.client.errors import Forbidden
from memoryd.client.programs.memctl.arguments import Usage, add_filters, add_origin, filters_of
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.export_folder import ExportFolder, Report
from memoryd.client.programs.memctl.link import apply_options, client_for, named_namespace, reach_of
from memoryd.client.programs.memctl.output import complain, print_note, say_bytes, say_json, show
from memoryd.client.programs.memctl.progress import ProgressBar
from memoryd.client.programs.memctl.record_text import format_json, to_plain
from memoryd.client.programs.memctl.text_table import count_kept, count_text
from memoryd.client.protocol import Exported, History, Operations

SHOWN = 10  # files that are listed
_MOST = 1000  # operations in a reply, or changes of one operation


def _declare(parser: ArgumentParser) -> None:
    parser.add_argument("--markdown", metavar="DIR", help="write a Markdown file per memory into this folder")
    parser.add_argument("--force", action="store_true", help="also overwrite files that were changed since the export")
    add_origin(add_filters(parser))


def _export(args: Namespace) -> int:
    if args.markdown is not None:
        return _export_markdown(args)
    if args.force:
        raise Usage("--force is for --markdown.")
    records: list[dict[str, Any]] = []
    left_out: dict[str, int] = {}
    number = turns = 0
    for part in _fetch_parts(args):
        left_out, turns = part.left_out, part.turns
        number += len(part)
        if args.json:
            records += [to_plain(record) for record in part]
        else:
            say_bytes(b"".join(format_json(record) for record in part))
    if args.json:
        say_json(records)
    else:
        print_note(f"memctl: Exported {count_kept(max(number - turns, 0), turns)}.")
    if warning := _left_out_text(left_out):
        print_note(warning)
    return 0


def _fetch_parts(args: Namespace) -> Iterator[Exported]:
    filters = filters_of(args)
    with client_for(args) as client, ProgressBar("export") as bar:
        after, number = "", 0
        while True:
            part = client.call(apply_options(args, export_memories(after, **filters)))
            yield part
            number += len(part)
            bar.update(number, max(part.total, number))
            if part.next is None:
                return
            after = part.next


def _export_markdown(args: Namespace) -> int:
    scope = {"namespace": named_namespace(args) or "", "reach": reach_of(args) or "", **filters_of(args)}
    folder = Path(args.markdown).expanduser()
    parts = _fetch_parts(args)
    first = next(parts)  # fetched first, so that the folder is not touched if the daemon does not answer
    with ExportFolder(folder, scope, args.force) as target:
        for part in chain([first], parts):
            for record in part:
                target.put(record)
        report = target.finish(lambda: _find_erased(args))
    report.left_out = first.left_out
    show(args, report, lambda: _text(report, first.turns))
    return complain(_problems_text(report), 1) if report.edited or report.stale else 0


def _find_erased(args: Namespace) -> set[str]:
    """Return the ids of erased memories that the operation log still has."""
    ids = set[str]()
    with client_for(args) as client, suppress(Forbidden):
        for one in client.call(Operations(kind=["erase"], limit=_MOST, namespace="", reach="all")).operations:
            for offset in range(0, one.memories, _MOST):
                call = History(operation=one.id, limit=_MOST, offset=offset, namespace="", reach="all")
                ids |= {change.id for change in client.call(call).changes}
    return ids


def _text(report: Report, turns: int) -> str:
    total = count_kept(max(report.written + report.unchanged - turns, 0), turns)
    changes = f"{report.written:,} written, {report.unchanged:,} unchanged, {report.removed:,} removed"
    sentence = f"Exported {total} to {report.folder}: {changes}."
    return "\n".join(filter(None, [sentence, _left_out_text(report.left_out)]))


def _problems_text(report: Report) -> str:
    lines = []
    if report.edited:
        more = f" and {len(report.edited) - SHOWN:,} more" if len(report.edited) > SHOWN else ""
        names = ", ".join(report.edited[:SHOWN])
        lines.append(f"Files that were edited are left as they are: {names}{more}. Import them, or give --force.")
    if report.stale:
        files = count_text(report.stale, "file")
        lines.append(f"{files} of deleted memories stay, because they are most of the folder; --force removes them.")
    return " ".join(lines)


def _left_out_text(counts: dict[str, int]) -> str:
    chunks, inside = counts.get("documents", 0), counts.get("inside", 0)
    lines = (
        [f"Left out: {count_text(chunks, 'part')} of workspace files, which are in the files themselves."]
        if chunks
        else []
    )
    lines += [f"Left out: {count_text(inside, 'memory')} inside the namespace: `--reach subtree`."] if inside else []
    return "\n".join(lines)


COMMANDS = {
    "export": Command(
        _declare,
        _export,
        "  memctl export > memories.jsonl\n"
        "  memctl export --markdown ~/notes/memories\n"
        "  memctl export --namespace acme --reach subtree --markdown acme",
    )
}

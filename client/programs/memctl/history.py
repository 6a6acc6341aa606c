"""The commands `history` and `undo`: list changes, and undo operations."""

import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from memoryd.client import methods
from memoryd.client.errors import AmbiguousId, NotFound
from memoryd.client.programs.memctl.arguments import Usage, add_optional, parse_date, parse_limit
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.link import send, show_result
from memoryd.client.programs.memctl.output import TIMES, make_printable, paint, print_note, show, undo_text
from memoryd.client.programs.memctl.text_table import count_kept, format_table, shorten, text_of
from memoryd.client.protocol import Change, Changes, Operation
from memoryd.client.times import iso

SHOWN = 10  # memories listed before an undo is confirmed
VALUE_COLUMNS = 40  # the width of an old or new value


def _declare_history(parser: ArgumentParser) -> None:
    add_optional(parser, "id", "a memory, even a deleted one; left out: the operation log")
    parser.add_argument("--operation", metavar="OP", help="list the changes of this operation")
    parser.add_argument("--limit", type=parse_limit, default=20, metavar="N", help="operations shown (default: 20)")
    parser.add_argument("--after", type=parse_date, metavar="DATE", help="only operations after this date")
    parser.add_argument("--before", type=parse_date, metavar="DATE", help="only operations before this date")
    parser.add_argument(
        "--kind", action="append", metavar="K", help="only this kind: add, delete, job:sweep (a run of the job) …"
    )


def _show_history(args: Namespace) -> None:
    if args.operation is not None:
        if args.id is not None:
            raise Usage("give an ID or --operation OP, not both.")
        one = methods.history(operation=args.operation, limit=args.limit)
        show_result(args, one, _operation_text)
    elif args.id is None:
        call = methods.operations(args.limit, after=args.after, before=args.before, kind=args.kind or [])
        show_result(args, call, lambda log: _operations_text(log.operations), lambda log: log.operations)
    else:
        try:
            show_result(args, methods.history(args.id), _changes_text)
        except NotFound:
            _refuse_operation(args)
            raise


def _refuse_operation(args: Namespace) -> None:
    """Raise `NotFound` if the given id is that of an operation instead of a memory."""
    try:
        operation = send(args, methods.history(operation=args.id, limit=1)).operation
    except (AmbiguousId, NotFound):
        return
    short = operation.id[:8] if operation else ""
    raise NotFound(f"{short} is an operation, not a memory: `memctl history --operation {short}`.") from None


def _operations_text(operations: list[Operation]) -> str:
    rows = []
    for o in operations:
        undone = "" if o.undone_by is None else f"by {o.undone_by[:8]}"
        rows.append([o.id[:8], iso(o.at) or "", o.kind, _actor_text(o), f"{o.memories}", o.namespace or "/", undone])
    headers = ["OP", "AT", "KIND", "BY", "MEMORIES", "NAMESPACE", "UNDONE"]
    return format_table(headers, rows, "No operations match.", flexible=5, right=(4,))


def _changes_text(history: Changes) -> str:
    rows = [[c.operation[:8], iso(c.at) or "", c.kind, c.action, _actor_text(c), _changed_text(c)] for c in history]
    table = format_table(["OP", "AT", "KIND", "ACTION", "BY", "CHANGED"], rows, "It has not changed.")
    return f"{paint(history.id, 'cyan')}\n{table}"


def _operation_text(detail: Changes) -> str:
    return f"{_operations_text([detail.operation] if detail.operation else [])}\n\n{_steps_text(detail.changes)}"


def _actor_text(change: Change | Operation) -> str:
    """Return who made a change: the token, else the program; a dash if it was the daemon, or a caller out of reach."""
    return change.token or change.process.partition(" (")[0] or "–"


def _steps_text(changes: list[Change]) -> str:
    rows = [[c.id[:8], c.action, c.namespace or "/", _changed_text(c)] for c in changes]
    return format_table(["ID", "ACTION", "NAMESPACE", "CHANGED"], rows)


def _changed_text(change: Change) -> str:
    if change.action != "updated":
        old, new = change.changed.get("content", ("", ""))
        return str(new or old)
    return "; ".join(
        f"{name}: {_format_value(name, old)} → {_format_value(name, new)}"
        for name, (old, new) in change.changed.items()
    )


def _format_value(name: str, value: Any) -> str:
    if name in TIMES and isinstance(value, float | int):
        return iso(value) or ""
    return "–" if value is None else shorten(text_of(value), VALUE_COLUMNS)


def _declare_undo(parser: ArgumentParser) -> None:
    parser.add_argument(
        "operation", nargs="?", metavar="OP", help="its id (default: the latest within reach, whoever did it)"
    )
    parser.add_argument("--yes", action="store_true", help="without OP: do not ask")


def _undo(args: Namespace) -> None:
    asks = args.operation is None and not (args.yes or args.json) and sys.stdin is not None and sys.stdin.isatty()
    operation = _ask_for_latest(args) if asks else args.operation
    if asks and operation is None:
        print("Nothing was undone.")
        return
    undone = send(args, methods.undo(operation))
    sentence = f"Undid operation {undone.undone[:8]} ({count_kept(len(undone.ids) - undone.turns, undone.turns)})"
    show(args, undone, lambda: f"{sentence}; {undo_text(undone.operation)} does it again.")


def _ask_for_latest(args: Namespace) -> str | None:
    """Show the operation that an undo takes back, and who did it; return its id if the person agrees."""
    log = send(args, methods.operations(100))
    mine = (one for one in log.operations if one.kind not in ("undo", "redo") and not one.kind.startswith("job:"))
    latest = next((one for one in mine if one.undone_by is None), None)
    if latest is None:
        return None
    if latest.kind == "erase":  # the daemon refuses it and says why
        return latest.id
    detail = send(args, methods.history(operation=latest.id, limit=SHOWN))
    by = ", ".join(filter(None, [latest.token, latest.session, latest.process])) or "the daemon itself"
    print(f"{_operations_text([latest])}\nby {make_printable(by)}\n\n{_steps_text(detail.changes)}")
    print_note(f"Undo operation {latest.id[:8]}? [y/N]")
    return latest.id if sys.stdin.readline().strip().lower() in ("y", "yes") else None


COMMANDS = {
    "history": Command(
        _declare_history, _show_history, "  memctl history\n  memctl history 3f9a\n  memctl history --operation 7c20"
    ),
    "undo": Command(_declare_undo, _undo, "  memctl undo\n  memctl undo 7c20"),
}

"""The commands `verify`, `repair` and `reset`: check the database, repair it, or start with an empty one."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path

from memoryd.client.calls import backup as backup_call
from memoryd.client.errors import Internal, MemorydError, StorageFailed, Unavailable
from memoryd.client.methods import verify as verify_call
from memoryd.client.programs.memctl.arguments import declare_nothing
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.confirming import confirm
from memoryd.client.programs.memctl.link import client_for, named_namespace
from memoryd.client.programs.memctl.local import Copy, list_copies
from memoryd.client.programs.memctl.output import complain, make_printable, paint, show
from memoryd.client.programs.memctl.progress import ProgressBar, send_with_bar
from memoryd.client.programs.memctl.text_table import count_text
from memoryd.client.programs.memctl.upkeep import restart
from memoryd.client.programs.memctl.upkeep.backup import FILE_NAME, LIMIT_S
from memoryd.client.protocol import Delete, Deleted, Done, Turns, Verification
from memoryd.client.rescue import RescueReport, find_damage
from memoryd.client.times import iso
from memoryd.client.transport.batches import split_evenly
from memoryd.client.transport.sync import Client

EVERYTHING = "everything"
_PER_CALL = 500
_LOCK_S = 10.0
RECOVER = "memctl repair --recover"


def _verify(args: Namespace) -> int:
    found = _check(args, repair=False)
    show(args, found, lambda: _verified_text(found))
    if find_damage(found):
        advice = f"the file itself is damaged: `{RECOVER}` copies its readable rows into a new one"
        return _report_verdict(found, advice)
    return _report_verdict(found, "`memctl repair` rebuilds indexes and all derived data")


def _declare_repair(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--recover",
        action="store_true",
        help="copy all readable rows of a damaged file into a new one; the daemon is stopped meanwhile",
    )


def _repair(args: Namespace) -> int:
    if args.recover:
        return _recover(args)
    try:
        found = _check(args, repair=True)
    except (Unavailable, StorageFailed, Internal) as error:  # the daemon does not start, or fails to read the database
        advice = "" if RECOVER in error.message else f" If the file is damaged: {RECOVER}"
        raise type(error)(error.message + advice, error.data) from None
    show(args, found, lambda: f"Done: {', '.join(found.repaired)}.\n{_verified_text(found)}")
    return _report_verdict(found, f"the file itself is damaged: `{RECOVER}`; a copy may have the rows that this loses")


def _check(args: Namespace, repair: bool) -> Verification:
    return send_with_bar(args, verify_call(repair=repair), "checking", least_s=LIMIT_S)


def _report_verdict(verification: Verification, advice: str) -> int:
    if not verification.problems:
        return 0
    return complain(f"{count_text(len(verification.problems), 'problem')}: {advice}.", 1)


def _verified_text(verification: Verification) -> str:
    if verification.problems:
        return "\n".join(f"{paint('wrong', 'red')}  {make_printable(problem)}" for problem in verification.problems)
    pending = f", {verification.pending_embeddings:,} without a vector yet" if verification.pending_embeddings else ""
    return f"All is well: {count_text(verification.memories, 'memory')}{pending}."


def _recover(args: Namespace) -> int:
    status = restart.get_status(args)
    folder = restart.folder_of(status)
    if status:
        restart.stop(args, status)
    report: RescueReport | None = None
    try:
        with ProgressBar("reading rows", 2) as bar:
            bar.update(1)
            report = restart.rescue(folder, "recover", wait_s=_LOCK_S)
    finally:
        if status:
            with (
                nullcontext() if report else suppress(MemorydError)
            ):  # if `rescue` failed, its error is more helpful than that of the start
                restart.start(args, status.options)
    show(args, report, lambda: _recovered_text(report))
    return complain(_lost_text(report, list_copies(folder)), 1) if report.damaged else 0


def _recovered_text(report: RescueReport) -> str:
    lost = report.former - report.memories
    number = f"{report.memories:,} of {report.former:,} memories" if lost > 0 else count_text(report.memories, "memory")
    whole = "" if report.damaged else " All rows could be read."
    return f"Read {number} into a new database.{whole}\nThe former one is kept in {report.kept}."


def _lost_text(report: RescueReport, copies: list[Copy]) -> str:
    advice = "There is no copy that may have the lost rows."
    if copies:
        made_at = iso(Path(copies[-1].path).stat().st_mtime)
        advice = f"The latest copy, made {made_at}, may have the lost rows: `memctl restore latest` restores it."
    return f"Not all rows could be read of: {', '.join(report.damaged)}. {advice}"


def _declare_reset(parser: ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument(
        "--no-backup",
        action="store_true",
        help="make no copy first; with --namespace deleted memories stay in the history",
    )


def _reset(args: Namespace) -> None:
    if named_namespace(args):
        return _reset_namespace(args)
    status = restart.get_status(args)
    folder = restart.folder_of(status)
    if not status and not (folder / FILE_NAME).exists():
        return show(args, Done(message="Nothing to delete."), lambda: f"There is no database in {folder}.")
    memories = f"the {count_text(status.memories, 'memory')}" if status else "all memories"
    _ask(args, EVERYTHING, f"This deletes {memories} in {folder}, with their history, tokens and workspaces.")
    report = restart.rescue(folder, "reset", *(["--discard"] if args.no_backup else []))
    report = restart.exchange(args, status, report)
    kept = f"The former database is kept in {report.kept}." if report.kept else "Nothing was kept."
    return show(args, report, lambda: f"There are no memories any more. {kept}")


def _reset_namespace(args: Namespace) -> None:
    namespace = named_namespace(args) or ""
    with client_for(args) as client:
        ids = list(_list_ids(client))
        if not ids:
            return show(args, Done(message="Nothing to delete."), lambda: f"There is nothing in {namespace}.")
        _ask(args, namespace, f"This deletes {count_text(len(ids), 'memory')} in {namespace} and below it.")
        copied = "" if args.no_backup else _copy_database(client)
        operations = _delete(client, ids)
        while turns := _list_turns(client):  # there may be more turns than one reply contains
            ids += turns
            operations += _delete(client, turns)
    undo = " and ".join(f"memctl undo {operation[:8]}" for operation in operations)
    text = f"Deleted {count_text(len(ids), 'memory')} of {namespace}; `{paint(undo, 'cyan')}` takes it back.{copied}"
    text += f"\nTo erase them: `{paint(f'memctl erase --namespace {namespace} --reach subtree --copies', 'cyan')}`."
    return show(args, Deleted(count=len(ids), ids=ids, operation=operations[-1]), lambda: text)


def _list_ids(client: Client) -> Iterator[str]:
    """Yield the memories in a namespace and below, including the turns in L0."""
    after: str | None = ""
    while after is not None:
        part = client.export_memories(after, limit=_PER_CALL, reach="subtree")
        yield from (record.id for record in part)
        after = part.next


def _list_turns(client: Client) -> list[str]:
    return [turn.id for turn in client.call(Turns(reach="subtree", limit=1000))]


def _copy_database(client: Client) -> str:
    before, client.timeout_s = client.timeout_s, max(client.timeout_s, LIMIT_S)
    made = client.call(backup_call())
    client.timeout_s = before
    return f"\nThe database was copied to {made.path} first."


def _delete(client: Client, ids: list[str]) -> list[str]:
    operations: list[str] = []
    gone: set[str] = set()  # derived memories, which the daemon deleted with their turns
    with ProgressBar("deleting", len(ids)) as bar:
        for part in split_evenly(ids, _PER_CALL):
            if present := [id for id in part if id not in gone]:
                deleted = client.call(Delete(ids=present, reach="subtree"))
                operations.append(deleted.operation or "")
                gone.update(deleted.derived)
            bar.update(bar.done + len(part))
    return operations


def _ask(args: Namespace, name: str, warning: str) -> None:
    """Ask the user to type `name`, unless `--yes` is given; raise `Usage` without a terminal."""
    if args.yes:
        return
    confirm(name, warning, f"memctl: {warning}", "Nothing was deleted.")


COMMANDS = {
    "verify": Command(declare_nothing, _verify, "  memctl verify\n  memctl verify --json"),
    "repair": Command(_declare_repair, _repair, "  memctl repair\n  memctl repair --recover"),
    "reset": Command(
        _declare_reset,
        _reset,
        "  memctl reset\n  memctl reset --namespace acme/trial --yes\n  memctl reset --yes --no-backup",
    ),
}

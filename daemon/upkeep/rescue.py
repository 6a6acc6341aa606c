"""Replace the database offline: restore a copy, recover a damaged database, or start with an empty one.

`python -m memoryd.daemon.upkeep.rescue restore FILE | recover | reset | take-up | cancel --data-dir DIR` prints one
JSON document; memctl runs it. The new database is prepared next to the present one and checked. It is put in place at
once if the lock of the directory is free, else by the daemon at its next start (`swap.py`).
"""

import argparse
import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import apsw
import msgspec

from memoryd.client.errors import Conflict, MemorydError, StorageFailed
from memoryd.client.rescue import RescueReport
from memoryd.client.transport import paths
from memoryd.daemon.erasing.tables import erasing, leftovers
from memoryd.daemon.erasing.tables.erasing import ErasureRecord
from memoryd.daemon.erasing.tables.mentions import OtherTraces
from memoryd.daemon.rooms import list_rooms
from memoryd.daemon.store import fulltext, jobs, known_projects, pauses, sent, turns, vectors
from memoryd.daemon.store.actor import Actor, act_as
from memoryd.daemon.store.connection import open_writer, read_pragma
from memoryd.daemon.store.copies import find_faults, open_plain, read_counts
from memoryd.daemon.store.history import ERASE
from memoryd.daemon.store.migrations import check_version, migrate, restore_schema
from memoryd.daemon.store.pauses import PauseRecord
from memoryd.daemon.store.schema import DERIVED, VERSION
from memoryd.daemon.store.store import FILE_NAME, Store
from memoryd.daemon.store.tiers import DOCUMENTS, WAITING
from memoryd.daemon.store.writer import Transaction
from memoryd.daemon.system import listen, process
from memoryd.daemon.upkeep import salvage, swap
from memoryd.daemon.upkeep.salvage import SalvagedTable

T = TypeVar("T")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code."""
    options = _build_parser().parse_args(arguments)
    os.umask(0o077)
    folder = paths.data_dir(options.data_dir)
    try:
        report = _COMMANDS[options.command](folder, options)
    except MemorydError as error:
        return _give_up(folder, error.message)
    except OSError as error:
        return _give_up(folder, f"{error.filename or folder}: {error.strerror}.")
    print(msgspec.json.encode(report).decode())
    return 0


def _give_up(folder: Path, reason: str) -> int:
    """Print the reason, and delete the unfinished database, since the disk may be full."""
    shutil.rmtree(swap.part_folder(folder), ignore_errors=True)
    print(reason, file=sys.stderr)
    return 1


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m memoryd.daemon.upkeep.rescue", description=__doc__)
    parser.add_argument("command", choices=tuple(_COMMANDS))
    parser.add_argument("file", nargs="?", type=Path, help="the copy to restore")
    parser.add_argument("--data-dir", metavar="DIR", help="folder of the database (MEMORYD_DATA_DIR)")
    parser.add_argument("--discard", action="store_true", help="do not keep the former database")
    parser.add_argument("--tokens", action="store_true", help="keep tokens of the copy that are not in force here")
    parser.add_argument("--wait-s", type=float, default=0.0, help="time to wait for the lock of the directory")
    return parser


def _restore(folder: Path, options: argparse.Namespace) -> RescueReport:
    if options.file is None:
        raise StorageFailed("Give the file to restore.")
    place = _begin(folder)
    restored = restore(options.file, place, folder / FILE_NAME, options.tokens)
    swap.mark_ready(folder, "restore", options.discard)
    report = RescueReport(restored.memories, dropped=restored.dropped, changed_at=restored.changed_at)
    report = msgspec.structs.replace(report, turns=restored.turns, parts=restored.parts, **restored.left_out)
    report.parts -= report.chunks  # they are deleted with their workspaces
    if report.erased:
        report.copies = list(map(str, leftovers.find_copies(folder, report.erased, OtherTraces())))
    return _take_up(folder, options, report)


def _recover(folder: Path, options: argparse.Namespace) -> RescueReport:
    """Wait for the lock, so that no daemon writes to the present database meanwhile, and recover it."""
    file = folder / FILE_NAME
    if not file.is_file():
        raise StorageFailed(f"There is no database in {folder}.")
    lock = listen.lock(folder / "memoryd.lock", f"the data directory {folder}", options.wait_s)
    try:
        place = _begin(folder)
        recovered = recover(file, place, lambda table: print(f"reading {table}", file=sys.stderr))
        swap.mark_ready(folder, "recovery", discard=False)
        former = swap.take_up(folder, time.time())
    finally:
        os.close(lock)
    return RescueReport(
        recovered.rows["memories"], True, str(former or ""), recovered.rows, recovered.damaged, recovered.memories
    )


def _reset(folder: Path, options: argparse.Namespace) -> RescueReport:
    Store(_begin(folder)).close()
    swap.mark_ready(folder, "reset", options.discard)
    return _take_up(folder, options)


def _cancel(folder: Path, options: argparse.Namespace) -> RescueReport:
    swap.cancel(folder)
    return RescueReport()


def _take_up(folder: Path, options: argparse.Namespace, made: RescueReport | None = None) -> RescueReport:
    report = made or RescueReport()
    try:
        lock = listen.lock(folder / "memoryd.lock", f"the data directory {folder}", options.wait_s)
    except Conflict:
        return report
    try:
        former = swap.take_up(folder, time.time())
    finally:
        os.close(lock)
    report.taken_up, report.kept = True, str(former or "")
    return report


def _begin(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    process.keep_temporary_files(folder)
    return swap.begin(folder)


_PAGES = 1024  # copied at once
_HEAD_BYTES = 100  # the header of a database, which has its size
_COMMANDS: dict[str, Callable[[Path, Any], RescueReport]] = {
    "restore": _restore,
    "recover": _recover,
    "reset": _reset,
    "take-up": _take_up,
    "cancel": _cancel,
}


# Restoring a copy -----------------------------------------------------------------------------------------------------
# The copy is read as a whole, checked, migrated to the present schema, and checked again.


class Restored(NamedTuple):
    """The result: counts, objects dropped from the copy's schema, and the parts of it that are not in force here.

    `changed_at` is the time of the last change, None if there was none.
    """

    memories: int
    turns: int
    parts: int
    dropped: list[str]
    left_out: dict[str, Any]
    changed_at: float | None


_PAUSED_FOLDERS = "SELECT name FROM pauses WHERE kind = 'folder' ORDER BY name"
_TOKENS = "SELECT hash FROM tokens"
# Since the copy was made, memories that waited for a shared root may have been sent, or deleted here.
_ASK_BEFORE_SENDING = (
    "INSERT INTO sends (memory, refused, at) SELECT id, 'it comes from a copy that was restored', ? FROM memories"
    f" WHERE tier = '{WAITING}' ON CONFLICT (memory) DO UPDATE SET refused = excluded.refused"
)
_OF_ERASED = (
    "SELECT * FROM applied WHERE id IN (SELECT h.memory FROM history h JOIN operations o ON o.number = h.operation"
    f" WHERE o.kind = '{ERASE}')"
)
_KEEP_APPLIED = "INSERT OR IGNORE INTO applied VALUES (?, ?, ?, ?, ?, ?, ?)"
_WORKSPACES = "SELECT root, namespace, globs, created_at, device FROM workspaces"
_ADD_WORKSPACE = "INSERT OR IGNORE INTO workspaces (root, namespace, globs, created_at, device) VALUES (?, ?, ?, ?, ?)"
_LAST_CHANGE = "SELECT max(at) FROM (SELECT at FROM operations UNION ALL SELECT created_at FROM turns)"
_CHUNKS = f"SELECT count(*) FROM memories WHERE tier = {DOCUMENTS!r} AND path >= ? AND path < ?"


def restore(file: Path, folder: Path, former: Path | None = None, keep_tokens: bool = False) -> Restored:
    """Check `file` and restore it into `folder`; raise `StorageFailed`.

    Tokens and workspaces that the `former` database does not have are deleted, since somebody else may have made the
    file, and tokens may have been revoked since (`keep_tokens` keeps them). Erasures and pauses of the former database
    are applied again, so that nothing erased comes back.
    """
    if not file.is_file():
        raise StorageFailed(f"{file}: there is no such file.")
    with closing(_open(file, apsw.SQLITE_OPEN_READONLY)) as source:
        try:
            version = read_pragma(source, "user_version")
            if version < 1:
                raise StorageFailed(f"{file} is not a database of memoryd. Nothing was changed.")
            check_version(version, str(file))
            faults, dropped = _copy_pages(source, folder / FILE_NAME)
        except apsw.FullError:
            raise StorageFailed(f"There is no room for {file} in {folder.parent}. Nothing was changed.") from None
        except apsw.NotADBError:
            raise StorageFailed(
                f"{file} is not a database. If `memctl export` wrote it: `memctl import {shlex.quote(str(file))}`."
                " Nothing was changed."
            ) from None
        except apsw.Error as error:
            raise StorageFailed(f"{file} cannot be read: {error}.{_missing_text(file)} Nothing was changed.") from None
    if faults:
        raise StorageFailed(f"{file} is damaged: {faults[0]}.{_missing_text(file)} Nothing was changed.")
    restored = _open_restored(folder, file, former, keep_tokens)
    return restored._replace(dropped=dropped)


def _missing_text(file: Path) -> str:
    """Return a message if a file is shorter than its header says, which explains damage; else empty."""
    with file.open("rb") as opened:
        head = opened.read(_HEAD_BYTES)
    page_bytes, pages = int.from_bytes(head[16:18]), int.from_bytes(head[28:32])
    size, whole = file.stat().st_size, page_bytes * pages
    if size >= whole:
        return ""
    return f" It has {size:,} of {whole:,} bytes, so it may have arrived incomplete: copy it again."


def _read_former(path: Path | None, read: Callable[[apsw.Connection], T], nothing: T) -> T:
    """Return what `read` finds in a database; `nothing` if it is missing or cannot be read."""
    if path is not None and path.is_file():
        with suppress(apsw.Error, msgspec.MsgspecError), closing(open_plain(path)) as connection:
            return read(connection)
    return nothing


def _read_rows(path: Path | None, sql: str) -> list[Any]:
    return _read_former(path, lambda connection: connection.execute(sql).fetchall(), [])


def _delete_tokens(connection: apsw.Connection, hashes: Collection[bytes] | None) -> dict[str, Any]:
    """Delete the tokens whose hash is not in `hashes` (None: keep all); return the fields of the report."""
    tokens: Any = connection.execute("SELECT id, hash, name, role, namespace FROM tokens").fetchall()
    removed = [one for one in tokens if hashes is not None and one[1] not in hashes]
    connection.executemany("DELETE FROM tokens WHERE id = ?", [(id,) for id, *_ in removed])
    return {
        "tokens": [f"{name} ({role} of {place or 'the root'})" for _, _, name, role, place in removed],
        "projects": known_projects.read(connection),
        "pauses": [name for (name,) in connection.execute(_PAUSED_FOLDERS) if not Path(name).is_dir()],
    }


def _delete_workspaces(connection: apsw.Connection, here: Sequence[Any]) -> dict[str, Any]:
    """Delete the workspaces of a restored copy that are not in `here`, and add missing ones of `here`; report both.

    The chunks of deleted ones, which are counted, are removed at the next start. A workspace of the copy whose folder
    is missing, and whose namespace one of `here` has, was moved and is not reported.
    """
    roots = {root for root, *_ in here}
    found: Any = connection.execute("SELECT id, root, namespace FROM workspaces").fetchall()
    left = [one for one in found if one[1] not in roots]
    moved = {one[1] for one in here if one[0] not in {root for _, root, _ in found} and Path(one[0]).is_dir()}
    connection.executemany("DELETE FROM workspaces WHERE id = ?", [(number,) for number, *_ in left])
    connection.executemany(_ADD_WORKSPACE, [one for one in here if Path(one[0]).is_dir()])
    chunks = sum(
        int(connection.execute(_CHUNKS, (f"{root.rstrip('/')}/", f"{root.rstrip('/')}0")).get) for _, root, _ in left
    )
    missing = {root: place for _, root, place in left if place not in moved or Path(root).is_dir()}
    return {"workspaces": missing, "chunks": chunks}


def _copy_pages(source: apsw.Connection, target: Path) -> tuple[list[str], list[str]]:
    """Copy all pages and migrate them to the present schema; return faults, and objects dropped from the schema."""
    with closing(apsw.Connection(str(target))) as made:
        with made.backup("main", source, "main") as backup:
            while not backup.done:
                backup.step(_PAGES)
        made.pragma("journal_mode", "delete")
        made.pragma("trusted_schema", False)
        faults = find_faults(made)
        if faults:
            return faults, []
        migrate(made)
        dropped = restore_schema(made)
        return faults, dropped


def _open_restored(folder: Path, file: Path, former: Path | None, keep_tokens: bool) -> Restored:
    """Open the copy like the daemon does, rebuild derived data that is inconsistent, and apply the former state."""
    erased = _read_former(former, erasing.read_record, ErasureRecord([], []))
    paused = _read_former(former, pauses.read_record, PauseRecord([], []))
    with closing(Store(folder)) as store:
        if store.find_problems():
            store.rebuild().result()
        if problems := store.find_problems():
            raise StorageFailed(f"{file} is damaged: {problems[0]}. Nothing was changed.")
        with store.reading() as connection:
            changed_at: Any = connection.execute(_LAST_CHANGE).get
        kept_pauses = store.write(lambda one: pauses.carry_over(one.connection, paused)).result()
        hashes = None if keep_tokens else {key for (key,) in _read_rows(former, _TOKENS)}
        left_out = store.write(lambda one: _delete_tokens(one.connection, hashes)).result()
        here = _read_rows(former, _WORKSPACES)
        left_out |= store.write(lambda one: _delete_workspaces(one.connection, here)).result()
        left_out["kept_pauses"] = kept_pauses
        store.write(lambda one: one.connection.execute(_ASK_BEFORE_SENDING, (time.time(),))).result()
        store.write(lambda one: sent.remove_others(one.connection, [], 0.0)).result()
        applied = _read_rows(former, _OF_ERASED)  # other machines may offer again what was erased here
        store.write(lambda one: one.connection.executemany(_KEEP_APPLIED, applied)).result()
        with act_as(Actor(process="memctl restore")):  # with an actor, so that undo refuses the latest operation
            left_out["erased"] = store.write(
                lambda one: erasing.carry_over(one.connection, erased, time.time())
            ).result()
        store.write(lambda one: jobs.wait_with_backup(one.connection, time.time())).result()
        with store.reading() as connection:
            counts = read_counts(connection)
    if erased.sessions or erased.ids:
        with closing(open_writer(folder / FILE_NAME)) as connection:
            erasing.erase_from_file(connection)
    return Restored(*counts, [], left_out, changed_at)


# Recovering what is readable ------------------------------------------------------------------------------------------
# Unreadable rows are skipped (`salvage`), derived tables are rebuilt, and dangling references are fixed: a memory whose
# namespace is lost is moved to `recovered/NUMBER`, and the account of turns is balanced.


class Recovered(NamedTuple):
    """Rows recovered per table, the tables with unreadable rows, and the number of memories before."""

    rows: dict[str, int]
    damaged: list[str]
    memories: int


def recover(damaged: Path, folder: Path, report: Callable[[str], None] = lambda table: None) -> Recovered:
    """Create a database in `folder` from the readable rows of a file; raise `StorageFailed` if there are none."""
    with closing(_open(damaged, apsw.SQLITE_OPEN_READWRITE)) as source:
        _check_recoverable(source, damaged)
        with closing(apsw.Connection(str(folder / FILE_NAME))) as target:
            migrate(target)
            target.pragma("foreign_keys", False)
            target.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
            recovered = _copy_tables(source, target, report)
            salvage.fix_references(target)
    with closing(Store(folder)) as store:
        store.write(_make_derived).result()
    return recovered


def _open(file: Path, flags: int) -> apsw.Connection:
    """Open a database with its log, if it has one."""
    try:
        return open_plain(file, flags)
    except apsw.Error as error:
        raise StorageFailed(f"{file} cannot be opened: {error}.") from None


def _check_recoverable(source: apsw.Connection, damaged: Path) -> None:
    try:
        version = source.pragma("user_version")
        source.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except apsw.Error as error:
        raise StorageFailed(
            f"Nothing of {damaged} can be read: {error}. Restore a copy (`memctl backup --list`); without one"
            " `memctl reset` begins anew and keeps this file."
        ) from None
    if version != VERSION:
        raise StorageFailed(f"{damaged} has the schema {version}; recover it with the memoryd that wrote it.")


def list_tables(connection: apsw.Connection) -> list[SalvagedTable]:
    """Return the tables to copy: all except derived ones and those of full text."""
    tables: Any = connection.execute(
        "SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
        " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT LIKE 'memories\\_fts%' ESCAPE '\\' ORDER BY name"
    ).fetchall()
    columns = "SELECT name FROM pragma_table_info(?) ORDER BY cid"
    return [
        SalvagedTable(name, tuple(str(column) for (column,) in connection.execute(columns, (name,))), not without_rowid)
        for name, without_rowid in tables
        if name not in DERIVED
    ]


def _copy_tables(source: apsw.Connection, target: apsw.Connection, report: Callable[[str], None]) -> Recovered:
    counts: dict[str, int] = {}
    damaged: list[str] = []
    for table in list_tables(target):
        report(table.name)
        with target:
            counts[table.name] = salvage.copy_rows(source, table, target, damaged)
    return Recovered(counts, sorted(set(damaged)), max(counts["memories"], salvage.count_by_index(source, "memories")))


def _make_derived(transaction: Transaction) -> None:
    connection = transaction.connection
    fulltext.rebuild(connection)
    vectors.drop_wrong(connection)
    for room in list_rooms():
        room.clear(connection)
    turns.settle(connection)


if __name__ == "__main__":
    sys.exit(main())

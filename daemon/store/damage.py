"""Repair of a database in use: tables and indexes of which pages are damaged are replaced within the file.

SQLite cannot drop or rebuild a b-tree that it cannot walk. So the readable rows of a damaged table are copied into a
new one, and the entries of the schema are pointed at its pages; a damaged index is taken out of the schema and created
again. All of it is one transaction: a crash leaves the file as it was. The former pages stay in the file unused, which
costs room until it is compacted and destroys nothing.

What remains after that needs a new file (`rescue`): a damaged schema or list of free pages.
"""

import re
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import msgspec

from memoryd.client.errors import StorageFailed
from memoryd.daemon.store import fulltext, graph_faults, hashes, salvage, settings, turns, vectors
from memoryd.daemon.store.connection import open_reader, open_writer
from memoryd.daemon.store.migrations import find_schema_problems, restore_schema

_NEW = "repair_"
_UNUSED = ": never used"  # of a page: what a former repair left
_TABLES = (
    # The counters first: rows of the others are counted there when they are inserted.
    "SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'shadow')"
    " AND name NOT LIKE 'sqlite\\_%schema' ESCAPE '\\' ORDER BY name <> 'sqlite_sequence', name"
)
_FULLTEXT = "memories_fts"
_OF_FULLTEXT = f"(tbl_name GLOB '{_FULLTEXT}*' OR sql LIKE '%USING fts5vocab ({_FULLTEXT},%')"
_INDEXES = "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = ?"
# Numbers that a lost counter may have given since; none is used twice.
_SKIPPED_NUMBERS = 1_000_000

_NOTED, _MOST_NOTED = "repairs", 20
# What a start reads of small tables; those of memories and vectors are read by whoever needs them.
_AT_START = ("settings", "models", "namespaces", "tokens", "turns", "pauses", "workspaces", "jobs", "shared_roots")
# What a check of the file itself does not see, each in a snapshot.
CHECKS = (find_schema_problems, vectors.find_problems, turns.check_conservation, graph_faults.find_problems)


class Repaired(NamedTuple):
    """Which tables were rebuilt, and how many rows of each could not be read; -1: some, nobody knows how many."""

    tables: list[str]
    lost: dict[str, int]


def check_start(connection: apsw.Connection) -> None:
    """Read what a start needs of small tables; raise `apsw.CorruptError` when it cannot be read."""
    for table in _AT_START:
        for _ in connection.execute(f"SELECT * FROM {table}"):
            pass


def repair_file(path: Path, now: float) -> Repaired:
    """Repair the database of a daemon that does not run, and note that in it."""
    with closing(open_writer(path)) as connection, closing(open_reader(path)) as source:
        try:
            connection.execute("BEGIN IMMEDIATE")
            repaired = repair(connection, source)
            note(connection, repaired, now)
            connection.execute("COMMIT")
        except apsw.Error as error:
            raise StorageFailed(f"The database {path} is damaged and could not be repaired: {error}.") from None
    return repaired


def describe(repaired: Repaired) -> str:
    """Return what a repair did as a sentence."""
    lost = (
        f"{'some' if rows < 0 else rows} rows of {table} could not be read" for table, rows in repaired.lost.items()
    )
    return "; ".join([f"damage was repaired in {', '.join(repaired.tables)}", *lost])


def note(connection: apsw.Connection, repaired: Repaired, now: float) -> None:
    """Keep what a repair did, for whoever asks next."""
    if repaired.tables:
        said = [*list_repairs(connection), f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d %H:%M}: {describe(repaired)}"]
        settings.put(connection, _NOTED, msgspec.json.encode(said[-_MOST_NOTED:]).decode())


def list_repairs(connection: apsw.Connection) -> list[str]:
    """Return what repairs did since somebody asked for one."""
    return msgspec.json.decode(settings.read(connection, _NOTED) or "[]", type=list[str])


def forget_repairs(connection: apsw.Connection) -> None:
    """Somebody has seen what repairs did."""
    connection.execute("DELETE FROM settings WHERE name = ?", (_NOTED,))


def check(connection: apsw.Connection, pragma: str) -> list[str]:
    """Return what an integrity check says is wrong, as far as it gets. Pages that nothing uses are no harm."""
    lines: list[str] = []
    try:
        for (line,) in connection.execute(pragma):
            lines += [" ".join(part.split()) for part in str(line).splitlines()]
    except apsw.CorruptError as error:
        lines.append(str(error))
    return [line for line in lines if line != "ok" and not line.endswith(_UNUSED) and not line.startswith("***")]


def find_damaged(connection: apsw.Connection) -> list[salvage.Table]:
    """Return the tables that are damaged, or an index of which is."""
    found: list[Any] = connection.execute(_TABLES).fetchall()
    tables = [salvage.describe_table(connection, name, wr) for name, wr in found]
    return [
        table
        for table in tables
        if check(connection, f"PRAGMA integrity_check('{table.name}')")
        or (table.name == "memories" and not _is_readable(connection, table.name))  # SQLite takes any bytes for a text
    ]


def repair(connection: apsw.Connection, source: apsw.Connection) -> Repaired:
    """Replace what is damaged, within the transaction of a connection that has met no damage in it.

    `source` reads the former state: SQLite lets nobody write in a transaction that has met damage. Raise
    `StorageFailed` when the repair is not enough.
    """
    damaged = find_damaged(source)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_FKEY, 0)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    try:
        if any(table.name.startswith(_FULLTEXT) for table in damaged):
            _replace_fulltext(connection)
        whole = [table for table in damaged if not table.name.startswith(_FULLTEXT)]
        lost = {table.name: _replace(connection, source, table) for table in whole}
        if damaged:
            _restore_counters(connection)
            salvage.fix_references(connection)
            turns.settle(connection)
            rebuild_derived(connection)
        for table in damaged:
            if left := check(connection, f"PRAGMA integrity_check('{table.name}')"):
                raise StorageFailed(f"The table {table.name} could not be repaired: {left[0]}.")
    except apsw.Error as error:
        raise StorageFailed(f"The database could not be repaired: {error}.") from error
    finally:
        connection.config(apsw.SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0)
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_FKEY, 1)
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 1)
    return Repaired([table.name for table in damaged], {name: rows for name, rows in lost.items() if rows})


def _replace(connection: apsw.Connection, source: apsw.Connection, table: salvage.Table) -> int:
    """Replace the indexes of a table, and the table where that is not enough; return how many rows were lost."""
    # A table without row numbers is an index itself, and may be read by another one.
    if table.has_rowid and _is_readable(source, table.name) and _has_sound_keys(source, table.name):
        _replace_indexes(connection, table.name)
        return 0
    damaged: list[str] = []
    made: Any = source.execute("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?", (table.name,)).get
    new = _NEW + table.name
    connection.execute(re.sub(r"""^CREATE TABLE\s+(["'`]?)\w+\1""", f"CREATE TABLE {new}", made, count=1))
    after = salvage.copy_rows(source, table, connection, new, damaged)
    _point_schema(connection, table.name, new)
    _replace_indexes(connection, table.name)
    if not damaged:
        return 0
    before = _count_rows(source, table.name)
    return -1 if before is None else max(0, before - after)


def _is_readable(source: apsw.Connection, name: str) -> bool:
    try:
        for _ in source.execute(f"SELECT * FROM {name} NOT INDEXED"):
            pass
    except salvage.UNREADABLE:
        return False
    return True


def _has_sound_keys(source: apsw.Connection, name: str) -> bool:
    """Return whether the indexes that belong to the definition of a table are sound."""
    automatic = [index for index, sql in _list_indexes(source, name) if not sql]
    lines = check(source, f"PRAGMA integrity_check('{name}')") if automatic else []
    return all(_count_by(source, name, index) is not None and index not in " ".join(lines) for index in automatic)


def _list_indexes(connection: apsw.Connection, name: str) -> list[Any]:
    """Return the name and SQL of each index of a table; those that belong to its definition have none."""
    return connection.execute(_INDEXES, (name,)).fetchall()


def _count_rows(source: apsw.Connection, name: str) -> int | None:
    """Return how many rows a table had, by an index that can still be read; None: there is none."""
    counts = (_count_by(source, name, index) for index, _ in _list_indexes(source, name))
    return next((count for count in counts if count is not None), None)


def _count_by(source: apsw.Connection, name: str, index: str) -> int | None:
    """Return how many rows an index of all rows leads to, None if it cannot be read or is not of all."""
    try:
        # Not count(*), for which SQLite chooses an index itself.
        found: Any = source.execute(f"SELECT coalesce(sum(1), 0) FROM {name} INDEXED BY {index}").get
    except (apsw.CorruptError, apsw.SQLError):
        return None
    return int(found)


def _point_schema(connection: apsw.Connection, name: str, new: str) -> None:
    """Give a table, and the indexes that belong to its definition, the pages of a new one of the same definition."""
    automatic = "sqlite_autoindex_"
    roots: Any = connection.execute("SELECT name, rootpage FROM sqlite_schema WHERE tbl_name = ?", (new,)).fetchall()
    connection.config(apsw.SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1)
    for entry, root in roots:
        former = automatic + entry.removeprefix(automatic + _NEW) if entry.startswith(automatic) else name
        connection.execute("UPDATE sqlite_schema SET rootpage = ? WHERE name = ?", (root, former))
    connection.execute("DELETE FROM sqlite_schema WHERE tbl_name = ?", (new,))
    connection.execute("PRAGMA writable_schema = RESET")
    if name != "sqlite_sequence":
        connection.execute("DELETE FROM sqlite_sequence WHERE name = ?", (new,))


def _replace_indexes(connection: apsw.Connection, name: str) -> None:
    made = [(index, sql) for index, sql in _list_indexes(connection, name) if sql]
    connection.config(apsw.SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1)
    for index, _ in made:
        connection.execute("DELETE FROM sqlite_schema WHERE type = 'index' AND name = ?", (index,))
    connection.execute("PRAGMA writable_schema = RESET")
    for _, sql in made:
        connection.execute(sql)


def _replace_fulltext(connection: apsw.Connection) -> None:
    """Create the tables of full text again, without a row: all of it is derived."""
    found = f"SELECT sql FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL%' AND {_OF_FULLTEXT} ORDER BY rowid"
    made: Any = connection.execute(found).fetchall()
    connection.config(apsw.SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1)
    connection.execute(f"DELETE FROM sqlite_schema WHERE type = 'table' AND {_OF_FULLTEXT}")
    connection.execute("PRAGMA writable_schema = RESET")
    for (sql,) in made:
        connection.execute(sql)


def _restore_counters(connection: apsw.Connection) -> None:
    """Let the tables whose counter was lost count on well above what they hold."""
    found: Any = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%AUTOINCREMENT%'"
        " AND name NOT IN (SELECT name FROM sqlite_sequence)"
    ).fetchall()
    for (name,) in found:
        connection.execute(
            f"INSERT INTO sqlite_sequence (name, seq) SELECT '{name}', max(rowid) + {_SKIPPED_NUMBERS} FROM {name}"
            " HAVING max(rowid) IS NOT NULL"
        )


def rebuild_derived(connection: apsw.Connection) -> None:
    """Build the full-text index and wrong hashes again; drop what cannot be right, and what is not memoryd's."""
    restore_schema(connection)
    connection.execute("DELETE FROM shared_unnoticed")  # nothing is under way
    hashes.fix(connection, hashes.find_wrong(connection))
    fulltext.rebuild(connection)
    vectors.drop_wrong(connection)
    if graph_faults.find_problems(connection):
        graph_faults.clear(connection)

"""Repair of a database in use: damaged indexes and full text are created again within the file, from the tables.

SQLite cannot drop or rebuild a b-tree that it cannot walk. So an index or the tables of full text are taken out of the
schema and created again. All of it is one transaction: a crash leaves the file as it was. The former pages stay in the
file unused, which costs room until it is compacted.

Where rows of a table cannot be read a new file is needed: `memctl repair --recover` (`rescue`), or a copy.
"""

import logging
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import msgspec

from memoryd.client.errors import StorageFailed
from memoryd.daemon.rooms import list_rooms
from memoryd.daemon.store import fulltext, hashes, logged, salvage, settings, turns, vectors
from memoryd.daemon.store.connection import WAYS_OUT, open_reader, open_writer
from memoryd.daemon.store.migrations import find_schema_problems, restore_schema

log = logging.getLogger(__name__)

_UNUSED = ": never used"  # of a page: what a former repair left
_TABLES = (
    "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'shadow')"
    " AND name NOT LIKE 'sqlite\\_%schema' ESCAPE '\\' ORDER BY name"
)
_FULLTEXT = "memories_fts"
_OF_FULLTEXT = f"(tbl_name GLOB '{_FULLTEXT}*' OR sql LIKE '%USING fts5vocab ({_FULLTEXT},%')"
_INDEXES = "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL"

_ADVICE = f"The table {{}} is damaged. {WAYS_OUT}"
_NOTED, _MOST_NOTED = "repairs", 20
# What a start reads of small tables; those of memories and vectors are read by whoever needs them.
_AT_START = ("settings", "models", "namespaces", "tokens", "turns", "pauses", "jobs", "workspaces")
_CHECKS = (find_schema_problems, vectors.find_problems, turns.check_conservation)


def list_checks() -> list[Callable[[apsw.Connection], list[str]]]:
    """Return the checks of content, which SQLite's own check does not make; run each in a snapshot."""
    return [*_CHECKS, *(room.find_problems for room in list_rooms())]


def check_start(connection: apsw.Connection) -> None:
    """Read what a start needs of small tables; raise `apsw.CorruptError` when it cannot be read."""
    for table in _AT_START:
        for _ in connection.execute(f"SELECT * FROM {table}"):
            pass


def repair_file(path: Path, now: float) -> list[str]:
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


def describe(repaired: list[str]) -> str:
    """Return what a repair did as a sentence."""
    return f"damage was repaired in {', '.join(repaired)}"


def note(connection: apsw.Connection, repaired: list[str], now: float) -> None:
    """Store what a repair did until `forget_repairs`."""
    if repaired:
        _note(connection, describe(repaired), now)


def note_loss(connection: apsw.Connection, now: float) -> None:
    """Log and store that the end of the write-ahead log is lost."""
    sentence = logged.describe_loss(connection)
    log.error("%s", sentence)
    with suppress(apsw.Error):  # a full disk is no reason not to start
        _note(connection, sentence, now)


def _note(connection: apsw.Connection, sentence: str, now: float) -> None:
    lines = [*list_repairs(connection), f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d %H:%M}: {sentence}"]
    settings.put(connection, _NOTED, msgspec.json.encode(lines[-_MOST_NOTED:]).decode())


def list_repairs(connection: apsw.Connection) -> list[str]:
    """Return what was noted since the last `forget_repairs`."""
    return msgspec.json.decode(settings.read(connection, _NOTED) or "[]", type=list[str])


def forget_repairs(connection: apsw.Connection) -> None:
    """Delete the notes, once they were shown."""
    connection.execute("DELETE FROM settings WHERE name = ?", (_NOTED,))


def check(connection: apsw.Connection, pragma: str) -> list[str]:
    """Return what an integrity check finds wrong, as far as it gets; pages that nothing uses do not count."""
    lines: list[str] = []
    try:
        for (line,) in connection.execute(pragma):
            lines += [" ".join(part.split()) for part in str(line).splitlines()]
    except apsw.CorruptError as error:
        lines.append(str(error))
    return [line for line in lines if line != "ok" and not line.endswith(_UNUSED) and not line.startswith("***")]


def find_damaged(connection: apsw.Connection) -> list[str]:
    """Return the tables that are damaged or have a damaged index."""
    tables: list[Any] = connection.execute(_TABLES).fetchall()
    return [
        table
        for (table,) in tables
        if check(connection, f"PRAGMA integrity_check('{table}')") or not _has_texts(connection, table)
    ]


def repair(connection: apsw.Connection, source: apsw.Connection) -> list[str]:
    """Create damaged indexes and full text again within a transaction; return the tables that had them.

    `source` reads the former state: SQLite lets nobody write in a transaction that has met damage. Raise
    `StorageFailed` where a table itself is damaged, and leave all as it is.
    """
    damaged = find_damaged(source)
    try:
        if any(table.startswith(_FULLTEXT) for table in damaged):
            _replace_fulltext(connection)
        for table in damaged:
            if not table.startswith(_FULLTEXT):
                _replace_indexes(connection, table)
        for table in damaged:
            if check(connection, f"PRAGMA integrity_check('{table}')") or not _has_texts(source, table):
                raise StorageFailed(_ADVICE.format(table))
        if damaged:
            rebuild_derived(connection)
    except apsw.CorruptError:
        raise StorageFailed(_ADVICE.format(", ".join(damaged))) from None
    except apsw.Error as error:
        raise StorageFailed(f"The database could not be repaired: {error}.") from error
    finally:
        connection.config(apsw.SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0)
    return damaged


def _has_texts(source: apsw.Connection, name: str) -> bool:
    """Return whether the texts of memories can be read; SQLite checks no encoding."""
    if name != "memories":
        return True
    try:
        for _ in source.execute(f"SELECT * FROM {name} NOT INDEXED"):
            pass
    except salvage.UNREADABLE:
        return False
    return True


def _replace_indexes(connection: apsw.Connection, name: str) -> None:
    """Create the indexes of a table again; those of its keys belong to it and stay."""
    statements: Any = connection.execute(_INDEXES, (name,)).fetchall()
    connection.config(apsw.SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1)
    for index, _ in statements:
        connection.execute("DELETE FROM sqlite_schema WHERE type = 'index' AND name = ?", (index,))
    connection.execute("PRAGMA writable_schema = RESET")
    for _, sql in statements:
        connection.execute(sql)


def _replace_fulltext(connection: apsw.Connection) -> None:
    """Create the tables of full text again, without a row: all of it is derived."""
    query = f"SELECT sql FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL%' AND {_OF_FULLTEXT} ORDER BY rowid"
    statements: Any = connection.execute(query).fetchall()
    connection.config(apsw.SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1)
    connection.execute(f"DELETE FROM sqlite_schema WHERE type = 'table' AND {_OF_FULLTEXT}")
    connection.execute("PRAGMA writable_schema = RESET")
    for (sql,) in statements:
        connection.execute(sql)


def rebuild_derived(connection: apsw.Connection) -> None:
    """Rebuild the full-text index and wrong hashes; drop invalid vectors and objects that are not memoryd's."""
    restore_schema(connection)
    hashes.fix(connection, hashes.find_wrong(connection))
    fulltext.rebuild(connection)
    vectors.drop_wrong(connection)
    for room in list_rooms():
        if room.find_problems(connection):
            room.clear(connection)

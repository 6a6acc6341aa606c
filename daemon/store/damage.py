"""Check the database, and repair it by rebuilding its indexes and derived tables from the rows.

SQLite cannot rebuild a table or index that it cannot read. So if a page is damaged, a new file is needed:
`memctl repair --recover` (`upkeep/rescue`), or a copy.
"""

from collections.abc import Callable

import apsw

from memoryd.client.errors import StorageFailed
from memoryd.daemon.rooms import list_rooms
from memoryd.daemon.store import fulltext, hashes, turns, vectors
from memoryd.daemon.store.connection import WAYS_OUT
from memoryd.daemon.store.migrations import find_schema_problems, restore_schema

_CHECKS = (find_schema_problems, vectors.find_problems, turns.check_conservation)


def list_checks() -> list[Callable[[apsw.Connection], list[str]]]:
    """Return the checks of content that SQLite itself does not make; the caller runs each in a snapshot."""
    return [*_CHECKS, *(room.find_problems for room in list_rooms())]


def check(connection: apsw.Connection) -> list[str]:
    """Return the faults that SQLite's integrity check finds before it ends or fails."""
    lines: list[str] = []
    try:
        for (line,) in connection.execute("PRAGMA integrity_check(10)"):
            lines += [" ".join(part.split()) for part in str(line).splitlines()]
    except apsw.CorruptError as error:
        lines.append(str(error))
    return [line for line in lines if line != "ok" and not line.startswith("***")]


def repair(connection: apsw.Connection) -> None:
    """Rebuild indexes and derived tables, and drop objects that are not memoryd's, within a transaction.

    Raise `StorageFailed` if that is not enough.
    """
    try:
        restore_schema(connection)
        connection.execute("REINDEX")
        hashes.fix(connection, hashes.find_wrong(connection))
        fulltext.rebuild(connection)
        vectors.drop_wrong(connection)
        for room in list_rooms():
            if room.find_problems(connection):
                room.clear(connection)
    except (apsw.CorruptError, apsw.ConstraintError, UnicodeDecodeError) as error:
        raise StorageFailed(f"The file of the database is damaged: {error}. {WAYS_OUT}") from None

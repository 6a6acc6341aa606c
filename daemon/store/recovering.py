"""Reading what is readable of a damaged database into a new one.

Rows that cannot be read are left out (`salvage`). What is derived is not copied but rebuilt. Afterwards references that
lead nowhere are fixed: a memory whose namespace is lost comes into `recovered/NUMBER`, the account of turns counts what
no longer exists.
"""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from memoryd.client.errors import StorageFailed
from memoryd.daemon.store import fulltext, graph_faults, salvage, turns, vectors
from memoryd.daemon.store.copies import open_plain
from memoryd.daemon.store.migrations import MIGRATIONS
from memoryd.daemon.store.salvage import Table
from memoryd.daemon.store.store import FILE_NAME, Store
from memoryd.daemon.store.writer import Transaction

_DERIVED = frozenset({"nodes", "members", "edges", "topics", "backlog"})

Tell = Callable[[str], None]


class Recovered(NamedTuple):
    """How many rows of each table came over, and from which tables some did not."""

    rows: dict[str, int]
    damaged: list[str]


def recover(damaged: Path, folder: Path, tell: Tell = lambda table: None) -> Recovered:
    """Make a database in `folder` of what can be read of a file; raise `StorageFailed` when nothing can."""
    with closing(_open(damaged)) as source:
        version = _read_version(source, damaged)
        with closing(apsw.Connection(str(folder / FILE_NAME))) as target:
            for number, script in enumerate(MIGRATIONS[:version], start=1):
                target.execute(script)
                target.pragma("user_version", number)
            target.pragma("foreign_keys", False)
            target.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
            found = _copy(source, target, tell)
            salvage.fix_references(target)
    with closing(Store(folder)) as store:
        store.write(_make_derived).result()
    return found


def _open(damaged: Path) -> apsw.Connection:
    try:
        return open_plain(damaged)  # with its log, if it has one
    except apsw.Error as error:
        raise StorageFailed(f"{damaged} cannot be opened: {error}.") from None


def _read_version(source: apsw.Connection, damaged: Path) -> int:
    try:
        version = source.pragma("user_version")
        source.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except apsw.Error as error:
        raise StorageFailed(
            f"Nothing of {damaged} can be read: {error}. Restore a copy: memctl backup --list"
        ) from None
    if not isinstance(version, int) or not 1 <= version <= len(MIGRATIONS):
        raise StorageFailed(f"{damaged} is not a database of memoryd that this version knows (schema {version}).")
    return version


def list_tables(connection: apsw.Connection) -> list[Table]:
    """Return the tables whose rows are copied: all but what is derived and what belongs to full text."""
    found: Any = connection.execute(
        "SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
        " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT LIKE 'memories\\_fts%' ESCAPE '\\' ORDER BY name"
    ).fetchall()
    return [salvage.describe_table(connection, name, wr) for name, wr in found if name not in _DERIVED]


def _copy(source: apsw.Connection, target: apsw.Connection, tell: Tell) -> Recovered:
    counts: dict[str, int] = {}
    damaged: list[str] = []
    for table in list_tables(target):
        tell(table.name)
        with target:
            counts[table.name] = salvage.copy_rows(source, table, target, table.name, damaged)
    return Recovered(counts, sorted(set(damaged)))


def _make_derived(transaction: Transaction) -> None:
    connection = transaction.connection
    fulltext.rebuild(connection)
    vectors.drop_wrong(connection)
    graph_faults.clear(connection)
    turns.settle(connection)

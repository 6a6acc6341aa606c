"""Reading what is readable of a damaged database into a new one.

Tables are read by their keys in batches; where a page cannot be read the batch is halved until the rows that are
lost are known. What is derived is not copied but rebuilt. Afterwards references that lead nowhere are fixed: a
memory whose namespace is lost comes into `recovered/NUMBER`, the account of turns counts what no longer exists.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from memoryd.client.errors import StorageFailed
from memoryd.daemon.store import fulltext, graph_faults, vectors
from memoryd.daemon.store.copies import open_plain
from memoryd.daemon.store.migrations import MIGRATIONS
from memoryd.daemon.store.store import FILE_NAME, Store
from memoryd.daemon.store.writer import Transaction

_PORTION = 500
_DERIVED = frozenset({"nodes", "members", "edges", "topics", "backlog"})
_UNREADABLE = (apsw.CorruptError, apsw.NotADBError, apsw.IOError, apsw.TooBigError, UnicodeDecodeError)
_ACCOUNT = """
INSERT INTO flows SELECT id, 'gone: recovery', missing FROM (
  SELECT n.id AS id,
    (SELECT total(count) FROM flows WHERE namespace = n.id AND kind = 'observed')
    - (SELECT count(*) FROM turns WHERE namespace = n.id)
    - (SELECT total(turns) FROM memories WHERE namespace = n.id AND turns > 0)
    - (SELECT total(count) FROM flows WHERE namespace = n.id
         AND (kind LIKE 'skipped: %' OR kind LIKE 'dropped: %' OR kind LIKE 'gone: %')) AS missing
  FROM namespaces n
) WHERE missing <> 0 ON CONFLICT DO UPDATE SET count = count + excluded.count
"""

Row = tuple[Any, ...]
Tell = Callable[[str], None]


class Table(NamedTuple):
    """A table of rows that are copied: its columns, and whether a row number leads to each row."""

    name: str
    columns: tuple[str, ...]
    has_rowid: bool


class Recovered(NamedTuple):
    """How many rows of each table came over, and from which tables some did not."""

    rows: dict[str, int]
    damaged: list[str]


def recover(damaged: Path, folder: Path, tell: Tell = lambda table: None) -> Recovered:
    """Make a database in `folder` of what can be read of a file; raise `StorageFailed` when nothing can."""
    source = _open(damaged)
    try:
        version = _read_version(source, damaged)
        target = apsw.Connection(str(folder / FILE_NAME))
        try:
            for number, script in enumerate(MIGRATIONS[:version], start=1):
                target.execute(script)
                target.pragma("user_version", number)
            target.pragma("foreign_keys", False)
            target.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
            found = _copy(source, target, tell)
            _fix_references(target)
        finally:
            target.close()
    finally:
        source.close()
    store = Store(folder)
    try:
        store.write(_make_derived).result()
    finally:
        store.close()
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
    return [
        Table(name, tuple(str(column) for (column,) in connection.execute(_COLUMNS, (name,))), not without_rowid)
        for name, without_rowid in found
        if name not in _DERIVED
    ]


_COLUMNS = "SELECT name FROM pragma_table_info(?) ORDER BY cid"


def _copy(source: apsw.Connection, target: apsw.Connection, tell: Tell) -> Recovered:
    counts: dict[str, int] = {}
    damaged: list[str] = []
    for table in list_tables(target):
        tell(table.name)
        names = ", ".join(f'"{name}"' for name in table.columns)
        insert = f"INSERT OR IGNORE INTO {table.name} ({names}) VALUES ({', '.join('?' * len(table.columns))})"
        before = target.total_changes()
        with target:
            for row in _read_rows(source, table, names, damaged):
                try:
                    target.execute(insert, row)
                except (apsw.ConstraintError, apsw.MismatchError):  # it can be read and is no row of this table
                    damaged.append(table.name)
        counts[table.name] = target.total_changes() - before
    return Recovered(counts, sorted(set(damaged)))


def _read_rows(source: apsw.Connection, table: Table, names: str, damaged: list[str]) -> Iterator[Row]:
    if table.has_rowid:
        return _read_by_number(source, table.name, names, 0, _read_highest(source, table.name), damaged)
    return _read_both_ends(source, table, names, damaged)


def _read_highest(source: apsw.Connection, name: str) -> int:
    for sql in (f"SELECT max(rowid) FROM {name}", f"SELECT seq FROM sqlite_sequence WHERE name = '{name}'"):
        try:
            found = source.execute(sql).get
        except apsw.Error:
            continue
        if isinstance(found, int):
            return found
    return _PORTION * _PORTION  # as good a guess as any: what is beyond it is not found


def _read_by_number(
    source: apsw.Connection, name: str, names: str, after: int, last: int, damaged: list[str]
) -> Iterator[Row]:
    """Yield the readable rows with numbers above `after` up to `last`."""
    while after < last:
        upto = min(last, after + _PORTION)
        sql = f"SELECT rowid, {names} FROM {name} WHERE rowid > ? AND rowid <= ? ORDER BY rowid LIMIT {_PORTION}"
        try:
            found: list[Any] = source.execute(sql, (after, upto)).fetchall()
        except _UNREADABLE:
            damaged.append(name)
            if upto - after > 1:
                middle = (after + upto) // 2
                yield from _read_by_number(source, name, names, after, middle, damaged)
                yield from _read_by_number(source, name, names, middle, upto, damaged)
        else:
            yield from (row[1:] for row in found)
        after = upto


def _read_both_ends(source: apsw.Connection, table: Table, names: str, damaged: list[str]) -> Iterator[Row]:
    """Yield the rows of a table without row numbers up to the damage, and from its end back to it."""
    keys: Any = source.execute("SELECT name FROM pragma_table_info(?) WHERE pk ORDER BY pk", (table.name,)).fetchall()
    for direction in ("ASC", "DESC"):
        order = ", ".join(f'"{key}" {direction}' for (key,) in keys)
        try:
            yield from source.execute(f"SELECT {names} FROM {table.name} ORDER BY {order}")
        except _UNREADABLE:
            damaged.append(table.name)
        else:
            return


def _fix_references(target: apsw.Connection) -> None:
    """Give memories and turns of lost namespaces a new one; drop what else refers to rows that are lost."""
    used = " UNION ".join(f"SELECT namespace FROM {name}" for name in ("memories", "turns"))
    target.execute(
        f"INSERT INTO namespaces (id, name) SELECT namespace, 'recovered/' || namespace FROM ({used})"
        " WHERE namespace NOT IN (SELECT id FROM namespaces)"
    )
    for _ in range(_PORTION):  # what refers to what was dropped is dropped in the next round
        broken: list[Any] = target.execute("PRAGMA foreign_key_check").fetchall()
        gone = {(table, row) for table, row, *_ in broken if row is not None}
        for table, row in gone:
            target.execute(f"DELETE FROM {table} WHERE rowid = ?", (row,))
        for table in {table for table, row, *_ in broken if row is None}:
            _drop_orphans(target, table)
        if not broken:
            return


def _drop_orphans(target: apsw.Connection, table: str) -> None:
    """Delete the rows of a table without row numbers that refer to nothing."""
    keys: Any = target.execute('SELECT "table", "from", "to" FROM pragma_foreign_key_list(?)', (table,)).fetchall()
    for parent, column, key in keys:
        target.execute(
            f'DELETE FROM {table} WHERE "{column}" IS NOT NULL'
            f' AND "{column}" NOT IN (SELECT "{key or "id"}" FROM {parent})'
        )


def _make_derived(transaction: Transaction) -> None:
    connection = transaction.connection
    fulltext.rebuild(connection)
    vectors.drop_wrong(connection)
    graph_faults.clear(connection)
    connection.execute(_ACCOUNT)

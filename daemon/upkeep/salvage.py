"""Read the rows of tables with damaged pages, and repair the references to rows that are lost.

Tables are read by their keys in batches. A batch with an unreadable page is halved until the lost rows are known.
`rescue` uses this to recover a damaged file.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import apsw

PORTION = 500
_MOST_FAILURES = 1_000_000  # a damaged table may seem to have any highest row number
_UNREADABLE = (apsw.CorruptError, apsw.NotADBError, apsw.IOError, apsw.TooBigError, UnicodeDecodeError)

SalvagedRow = tuple[Any, ...]


class SalvagedTable(NamedTuple):
    """A table to copy: its columns, and whether its rows have row numbers."""

    name: str
    columns: tuple[str, ...]
    has_rowid: bool


def copy_rows(source: apsw.Connection, table: SalvagedTable, target: apsw.Connection, damaged: list[str]) -> int:
    """Copy the readable rows of a table into that of another database; return how many were copied.

    The table's name is added to `damaged` for each batch with unreadable rows.
    """
    names = ", ".join(f'"{name}"' for name in table.columns)
    insert = f'INSERT OR IGNORE INTO "{table.name}" ({names}) VALUES ({", ".join("?" * len(table.columns))})'
    before = target.total_changes()
    read = _read_by_number if table.has_rowid else _read_both_ends
    for row in read(source, table.name, names, damaged):
        try:
            target.execute(insert, row)
        except (apsw.ConstraintError, apsw.MismatchError):  # readable, but not a valid row of this table
            damaged.append(table.name)
    return target.total_changes() - before


def count_by_index(source: apsw.Connection, name: str) -> int:
    """Return how many rows the first readable index has, which has pages of its own; 0 if none is readable."""
    sql = "SELECT name FROM pragma_index_list(?) WHERE NOT partial"
    with suppress(apsw.Error):
        for (index,) in source.execute(sql, (name,)).fetchall():
            with suppress(apsw.Error):
                number: Any = source.execute(f'SELECT count(*) FROM "{name}" INDEXED BY "{index}"').get
                return int(number)
    return 0


def _read_highest(source: apsw.Connection, name: str) -> int:
    for sql in (f'SELECT max(rowid) FROM "{name}"', f"SELECT seq FROM sqlite_sequence WHERE name = '{name}'"):
        try:
            highest = source.execute(sql).get
        except apsw.Error:
            continue
        if isinstance(highest, int):
            return highest
    return PORTION * PORTION  # a guess; rows beyond it are not found


def _read_by_number(source: apsw.Connection, name: str, names: str, damaged: list[str]) -> Iterator[SalvagedRow]:
    """Yield the readable rows in the order of their numbers; give up after `_MOST_FAILURES`."""
    sql = f'SELECT rowid, {names} FROM "{name}" WHERE rowid > ? AND rowid <= ? ORDER BY rowid LIMIT {PORTION}'
    after, last = 0, _read_highest(source, name)
    upto, failures = last, 0
    while after < last and failures < _MOST_FAILURES:
        try:
            part: list[Any] = source.execute(sql, (after, upto)).fetchall()
        except _UNREADABLE:
            damaged.append(name)
            failures += 1
            middle = after + min(PORTION, upto - after) // 2
            after, upto = (after, middle) if middle > after else (upto, last)
        else:
            yield from (row[1:] for row in part)
            after, upto = part[-1][0] if len(part) == PORTION else upto, last


def _read_both_ends(source: apsw.Connection, name: str, names: str, damaged: list[str]) -> Iterator[SalvagedRow]:
    """Yield the rows of a table without row numbers, from its beginning and from its end up to the damage."""
    keys: Any = source.execute("SELECT name FROM pragma_table_info(?) WHERE pk ORDER BY pk", (name,)).fetchall()
    for direction in ("ASC", "DESC"):
        order = ", ".join(f'"{key}" {direction}' for (key,) in keys)
        try:
            yield from source.execute(f'SELECT {names} FROM "{name}" ORDER BY {order}')
        except _UNREADABLE:
            damaged.append(name)
        else:
            return


def fix_references(target: apsw.Connection) -> None:
    """Move memories and turns of lost namespaces to a new one; delete other rows that refer to lost rows."""
    used = " UNION ".join(f"SELECT namespace FROM {name}" for name in ("memories", "turns"))
    target.execute(
        f"INSERT INTO namespaces (id, name) SELECT namespace, 'recovered/' || namespace FROM ({used})"
        " WHERE namespace NOT IN (SELECT id FROM namespaces)"
    )
    for _ in range(PORTION):  # rows that refer to deleted rows are deleted in the next round
        broken: list[Any] = target.execute("PRAGMA foreign_key_check").fetchall()
        places = {(table, row) for table, row, *_ in broken if row is not None}
        for table, row in places:
            target.execute(f'DELETE FROM "{table}" WHERE rowid = ?', (row,))
        for table in {table for table, row, *_ in broken if row is None}:
            _drop_orphans(target, table)
        if not broken:
            return


def _drop_orphans(target: apsw.Connection, table: str) -> None:
    """Delete the rows with dangling references from a table without row numbers."""
    keys: Any = target.execute('SELECT "table", "from", "to" FROM pragma_foreign_key_list(?)', (table,)).fetchall()
    for parent, column, key in keys:
        target.execute(
            f'DELETE FROM "{table}" WHERE "{column}" IS NOT NULL'
            f' AND "{column}" NOT IN (SELECT "{key or "id"}" FROM "{parent}")'
        )

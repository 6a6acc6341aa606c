"""Find and delete what the database no longer needs: old runs, skipped turns, operations, unused vectors."""

from collections.abc import Iterable
from typing import Any

import apsw

from memoryd.daemon.store import vectors

# Rows beyond a limit, by table. For runs and skipped turns the limit applies to each job or namespace.
_OLD = {
    "runs": (
        "SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY job ORDER BY id DESC) AS age FROM runs"
        " WHERE outcome <> 'running') WHERE age > ? ORDER BY id"
    ),
    "skipped": (
        "SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY namespace ORDER BY id DESC) AS age FROM skipped)"
        " WHERE age > ? ORDER BY id"
    ),
    # A contiguous range from the oldest one: an operation must not outlive the one that undid it.
    "operations": (
        "SELECT number FROM operations"
        " WHERE number < coalesce((SELECT min(number) FROM operations WHERE at >= ?1), 9e999)"
        " OR number <= (SELECT number FROM operations ORDER BY number DESC LIMIT 1 OFFSET ?2) ORDER BY number"
    ),
    "given": "SELECT id FROM given WHERE at < ? ORDER BY id",
}
_UNUSED = (
    "NOT EXISTS (SELECT 1 FROM memories m WHERE m.text_hash = e.text_hash)"
    " AND NOT EXISTS (SELECT 1 FROM history h WHERE h.text_hash = e.text_hash)"
    " AND NOT EXISTS (SELECT 1 FROM contexts c WHERE c.search_hash = e.text_hash)"
    " AND NOT EXISTS (SELECT 1 FROM parts p WHERE p.text_hash = e.text_hash)"
)
# Entries through which no memory is superseded any more, and whose deletion cannot be undone.
_UNUSED_SUCCESSORS = (
    "SELECT d.row FROM deleted_successors d WHERE NOT EXISTS (SELECT 1 FROM history h WHERE h.memory = d.id)"
    " AND (d.superseded_by IS NULL OR NOT EXISTS (SELECT 1 FROM memories m WHERE m.superseded_by = d.id"
    " UNION ALL SELECT 1 FROM deleted_successors e WHERE e.superseded_by = d.id))"
)


def find_old(connection: apsw.Connection, table: str, *limits: float) -> list[int]:
    """Return the numbers of the rows beyond the limits of a table: a number of rows, a time, or both."""
    return [number for (number,) in connection.execute(_OLD[table], limits)]


def find_unused(connection: apsw.Connection, among: Iterable[int] | None = None) -> list[int]:
    """Return the ids of vectors whose text no row has any more, from all vectors or only from `among`."""
    chosen = "TRUE" if among is None else f"e.id IN ({_text(among)})"
    sql = f"SELECT e.id, e.text_hash FROM vec_embeddings e WHERE {chosen} AND {_UNUSED}"
    unused: list[Any] = connection.execute(sql).fetchall()
    if not unused:
        return []
    # Turns in L0 carry no hash.
    turns = {vectors.text_hash(str(content)) for (content,) in connection.execute("SELECT content FROM turns")}
    return [number for number, key in unused if key not in turns]


def forget_unused(connection: apsw.Connection, ids: Iterable[int]) -> int:
    """Delete vectors, except those that are in use again; return how many were deleted."""
    return forget(connection, "vec_embeddings", find_unused(connection, ids))


def forget_all_unused(connection: apsw.Connection) -> None:
    """Delete all unused vectors of a database that is not in use."""
    connection.executemany("DELETE FROM vec_embeddings WHERE id = ?", ((id,) for id in find_unused(connection)))


def select_unused_successors(connection: apsw.Connection) -> list[int]:
    """Return the row numbers of deleted memories through which no memory is superseded any more."""
    return [row for (row,) in connection.execute(f"{_UNUSED_SUCCESSORS} ORDER BY d.row")]


def forget(connection: apsw.Connection, table: str, numbers: Iterable[int]) -> int:
    """Delete rows of a table by their numbers; return how many were deleted."""
    connection.execute(f"DELETE FROM {table} WHERE rowid IN ({_text(numbers)})")
    return connection.changes()


def forget_successors(connection: apsw.Connection, rows: Iterable[int]) -> int:
    """Delete entries of deleted memories, except those through which a memory is superseded again."""
    connection.execute(f"DELETE FROM deleted_successors WHERE row IN ({_text(rows)}) AND row IN ({_UNUSED_SUCCESSORS})")
    return connection.changes()


def _text(ids: Iterable[int]) -> str:
    return ", ".join(map(str, ids))

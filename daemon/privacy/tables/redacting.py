"""Read and replace stored texts, so that new rules for credentials apply to conversations and indexed files.

Each text is a `StoredText`: its table, row and columns. A replacement is not recorded in the history and cannot be
undone.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import apsw

from memoryd.daemon.store import contexts, rows, vectors
from memoryd.daemon.store.hashes import content_hash

_BATCH = 500
_DERIVED = "turns > 0 OR source IN ('extraction', 'session_summary') OR tier = 'documents'"
# Table: the columns of its key and of its texts, and a condition on the rows to check.
TABLES: dict[str, tuple[str, tuple[str, ...], str]] = {
    "memories": ("row", ("content", "summary", "neighbours", "metadata"), "TRUE"),
    "turns": ("id", ("content", "previous"), "TRUE"),
    "skipped": ("id", ("content",), "TRUE"),
    "history": ("id", ("before",), "before IS NOT NULL"),
}


class StoredText(NamedTuple):
    """A stored text: its place, a name for people, its columns, and whether it is from a conversation or a file."""

    table: str
    key: int
    name: str
    texts: tuple[str, ...]
    is_said: bool
    is_file: bool


def read(connection: apsw.Connection, table: str, after: int) -> list[StoredText]:
    """Return the next texts of a table."""
    return list(_select(connection, table, f"{TABLES[table][0]} > {after} ORDER BY 1 LIMIT {_BATCH}"))


def read_one(connection: apsw.Connection, table: str, key: int) -> StoredText | None:
    """Return one text as it is now, None if it was deleted."""
    return next(_select(connection, table, f"{TABLES[table][0]} = {key}"), None)


def _select(connection: apsw.Connection, table: str, where: str) -> Iterator[StoredText]:
    key, columns, condition = TABLES[table]
    name = {"memories": "id", "turns": "key", "history": "memory"}.get(table, f"'{table} ' || id")
    conditions = {
        "memories": _DERIVED,
        "history": "before ->> '$.row' IS NULL OR before ->> '$.row.turns' > 0"
        " OR before ->> '$.row.source' IN ('extraction', 'session_summary')",
    }.get(table, "TRUE")
    is_file = "tier = 'documents'" if table == "memories" else "FALSE"
    selected = ", ".join((key, name, conditions, is_file, *columns))
    for number, shown, said, file, *texts in connection.execute(
        f"SELECT {selected} FROM {table} WHERE {condition} AND {where}"
    ):
        yield StoredText(table, number, shown, tuple(texts), bool(said), bool(file))


def replace(connection: apsw.Connection, entry: StoredText, texts: tuple[str, ...]) -> None:
    """Replace the texts of an entry. An erase's `clean` is to follow, which deletes the vectors of the former ones."""
    key, columns, _ = TABLES[entry.table]
    fields: dict[str, Any] = dict(zip(columns, texts, strict=True))
    connection.pragma("secure_delete", True)
    if "content" in fields and entry.table in ("memories", "turns"):
        fields["content_hash"] = content_hash(texts[0])
    if entry.table == "memories":
        connection.execute("DELETE FROM contexts WHERE memory = ?", (entry.key,))
    assignments = ", ".join(f"{column} = ?" for column in fields)
    connection.execute(f"UPDATE {entry.table} SET {assignments} WHERE {key} = ?", (*fields.values(), entry.key))
    if entry.table == "memories":
        embedded = connection.execute(f"SELECT {rows.EMBEDDED} FROM memories m WHERE row = ?", (entry.key,)).get
        text_hash = vectors.text_hash(str(embedded))
        connection.execute("UPDATE memories SET text_hash = ? WHERE row = ?", (text_hash, entry.key))
        contexts.add_missing_of(connection, [entry.key])

"""Texts of conversations as they are stored: new rules of credentials are applied to them, and they are replaced.

Each text is a `StoredText`: its table, row and columns. A replacement is recorded in no history and cannot be undone.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import apsw

from memoryd.daemon.store import contexts, rows, vectors
from memoryd.daemon.store.hashes import content_hash

_BATCH = 500
_DERIVED = "turns > 0 OR source IN ('extraction', 'session_summary')"
# Table: the columns of its key and of its texts, and which rows are of a conversation.
TABLES: dict[str, tuple[str, tuple[str, ...], str]] = {
    "memories": ("row", ("content", "summary", "neighbours", "metadata"), "tier <> 'documents'"),
    "turns": ("id", ("content", "previous"), "TRUE"),
    "heard": ("id", ("content",), "TRUE"),
    "skipped": ("id", ("content",), "TRUE"),
    "history": ("id", ("before",), "before IS NOT NULL"),
}


class StoredText(NamedTuple):
    """A stored text: where it is, a name for people, its columns, whether it came from a conversation."""

    table: str
    key: int
    name: str
    texts: tuple[str, ...]
    is_said: bool


def read(connection: apsw.Connection, table: str, after: int) -> list[StoredText]:
    """Return the next texts of a table."""
    return list(_select(connection, table, f"{TABLES[table][0]} > {after} ORDER BY 1 LIMIT {_BATCH}"))


def read_one(connection: apsw.Connection, table: str, key: int) -> StoredText | None:
    """Return one text as it is now, None if it was deleted."""
    return next(_select(connection, table, f"{TABLES[table][0]} = {key}"), None)


def _select(connection: apsw.Connection, table: str, where: str) -> Iterator[StoredText]:
    key, columns, condition = TABLES[table]
    name = {"memories": "id", "turns": "key", "heard": "key", "history": "memory"}.get(table, f"'{table} ' || id")
    conditions = {
        "memories": _DERIVED,
        "history": "before ->> '$.row' IS NULL OR before ->> '$.row.turns' > 0"
        " OR before ->> '$.row.source' IN ('extraction', 'session_summary')",
    }.get(table, "TRUE")
    sql = f"SELECT {key}, {name}, {conditions}, {', '.join(columns)} FROM {table} WHERE {condition} AND {where}"
    for number, shown, is_said, *texts in connection.execute(sql):
        yield StoredText(table, number, shown, tuple(texts), bool(is_said))


def replace(connection: apsw.Connection, entry: StoredText, texts: tuple[str, ...]) -> None:
    """Replace the texts of an entry. An erase's `clean` is to follow, which deletes the vectors of the former ones."""
    key, columns, _ = TABLES[entry.table]
    fields: dict[str, Any] = dict(zip(columns, texts, strict=True))
    connection.pragma("secure_delete", True)
    if "content" in fields and entry.table in ("memories", "turns"):
        fields["content_hash"] = content_hash(texts[0])
    if entry.table == "memories":
        fields["text_hash"] = vectors.text_hash(rows.build_embedded_text(texts[0]))
        connection.execute("DELETE FROM contexts WHERE memory = ?", (entry.key,))
    assignments = ", ".join(f"{column} = ?" for column in fields)
    connection.execute(f"UPDATE {entry.table} SET {assignments} WHERE {key} = ?", (*fields.values(), entry.key))
    if entry.table == "memories":
        contexts.add_missing_of(connection, [entry.key])

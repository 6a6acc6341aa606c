"""Context vectors: a short text is also embedded with its neighbours, which tell what it is about.

A memory has at most one context: the text that is embedded for it, and the key of the vector that searches use in place
of its own. Until that vector exists they use its own; duplicates are always found by its own. All of it is derived: a
memory that is changed in its text or deleted loses its context, and undo does not bring it back.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import apsw
import numpy as np

from memoryd.daemon.store.vectors import Vector

SHORT_CHARS = 250  # a longer text needs no neighbours, and is nobody's
NEIGHBOURS = 2  # turns on each side
OWN_SHARE = 0.3  # of its own vector in that of a text within its context


class StoredContext(NamedTuple):
    """A memory's row number, the keys of its own vector and of the one for searches, and the text embedded for it."""

    row: int
    text_hash: bytes
    search_hash: bytes
    content: str


def search_hash(text_hash: bytes, content: str) -> bytes:
    """Return the key of the vector of a text (by its own key) within a context."""
    return hashlib.sha256(text_hash + content.encode()).digest()


def join_neighbours(content: str, neighbours: str) -> str:
    """Return the text to embed for a memory and its neighbours: the memory first, as a model may cut off the rest."""
    return f"{content}\n{neighbours}"


def merge(own: Vector, within: Vector) -> Vector:
    """Return the weighted mean of a text's own vector and that of its context, normalised."""
    mixture: Vector = OWN_SHARE * own + (1 - OWN_SHARE) * within
    return mixture / np.linalg.norm(mixture)


def put(connection: apsw.Connection, contexts: Iterable[tuple[int, str]]) -> None:
    """Give memories their context, as (row, text); one that is deleted meanwhile gets none."""
    for row, content in contexts:
        key: Any = connection.execute("SELECT text_hash FROM memories WHERE row = ?", (row,)).get
        if key is not None:
            values = (row, search_hash(key, content), content)
            sql = "INSERT OR REPLACE INTO contexts (memory, search_hash, content) VALUES (?, ?, ?)"
            connection.execute(sql, values)


def add_missing_of(connection: apsw.Connection, rows: Sequence[int]) -> list[int]:
    """Give a context to the memories among these that have neighbours and none yet; return them."""
    texts: list[Any] = [
        text
        for row in rows
        for text in connection.execute(
            "SELECT row, content || char(10) || neighbours FROM memories WHERE row = ? AND neighbours <> ''"
            " AND NOT EXISTS (SELECT 1 FROM contexts WHERE memory = row)",
            (row,),
        )
    ]
    put(connection, texts)
    return [row for row, _ in texts]


def remove(connection: apsw.Connection, rows: Iterable[int]) -> None:
    """Take the contexts of memories away: searches use the vectors of their own texts again."""
    connection.executemany("DELETE FROM contexts WHERE memory = ?", ((row,) for row in rows))


def read(connection: apsw.Connection, rows: Sequence[int]) -> dict[int, StoredContext]:
    """Return the contexts of the memories among these that have one."""
    entries: Any = connection.execute(
        "SELECT m.row, m.text_hash, c.search_hash, c.content FROM contexts c CROSS JOIN memories m ON m.row = c.memory"
        f" WHERE m.row IN ({', '.join(map(str, rows))})"
    )
    return {one[0]: StoredContext(*one) for one in entries}

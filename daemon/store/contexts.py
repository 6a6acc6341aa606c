"""Context vectors: a short text is also embedded together with its neighbours, which show what it is about.

A memory has at most one context: the text with its neighbours, and the key of its vector. Searches use that vector
instead of the memory's own as soon as it exists; duplicates are always found by the memory's own vector. Contexts are
derived: a memory loses its context when its text is changed or it is deleted, and undo does not restore it.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import apsw
import numpy as np

from memoryd.daemon.store.vectors import Vector

SHORT_CHARS = 250  # a longer text needs no neighbours, and is not used as a neighbour
NEIGHBOURS = 2  # turns on each side
OWN_SHARE = 0.3  # weight of a text's own vector in its context vector


class StoredContext(NamedTuple):
    """A memory's row number, the keys of its own vector and of its context vector, and the text of the context."""

    row: int
    text_hash: bytes
    search_hash: bytes
    content: str


def search_hash(text_hash: bytes, content: str) -> bytes:
    """Return the key of the context vector of a text with a key."""
    return hashlib.sha256(text_hash + content.encode()).digest()


def join_neighbours(content: str, neighbours: str) -> str:
    """Return the text to embed for a memory and its neighbours: the memory first, as a model may cut off the rest."""
    return f"{content}\n{neighbours}"


def merge(own: Vector, within: Vector) -> Vector:
    """Return the normalised weighted mean of a text's own vector and the vector of the text with its neighbours."""
    mixture: Vector = OWN_SHARE * own + (1 - OWN_SHARE) * within
    return mixture / np.linalg.norm(mixture)


def put(connection: apsw.Connection, contexts: Iterable[tuple[int, str]]) -> None:
    """Store contexts given as (row, text), except those of memories that were deleted."""
    for row, content in contexts:
        key: Any = connection.execute("SELECT text_hash FROM memories WHERE row = ?", (row,)).get
        if key is not None:
            values = (row, search_hash(key, content), content)
            sql = "INSERT OR REPLACE INTO contexts (memory, search_hash, content) VALUES (?, ?, ?)"
            connection.execute(sql, values)


def add_missing_of(connection: apsw.Connection, rows: Sequence[int]) -> list[int]:
    """Store contexts for the given memories that have neighbours and no context yet; return these memories."""
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
    """Delete the contexts of memories, so that searches use their own vectors again."""
    connection.executemany("DELETE FROM contexts WHERE memory = ?", ((row,) for row in rows))


def read(connection: apsw.Connection, rows: Sequence[int]) -> dict[int, StoredContext]:
    """Return the contexts of the given memories that have one, by row."""
    entries: Any = connection.execute(
        "SELECT m.row, m.text_hash, c.search_hash, c.content FROM contexts c CROSS JOIN memories m ON m.row = c.memory"
        f" WHERE m.row IN ({', '.join(map(str, rows))})"
    )
    return {one[0]: StoredContext(*one) for one in entries}

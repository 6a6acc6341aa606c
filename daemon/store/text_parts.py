"""Parts of long texts: text beyond the window of a model is embedded in parts, whose vectors are found by their hashes.

A text of more than 1,000 characters is cut into parts. The first part (number 0) has no vector of its own, because the
vector of the whole text already represents its beginning. The text before a block of code is a part too, the last one.
Parts are derived: they are deleted when the memory is deleted or its text changes, and are then created again.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import apsw

from memoryd.daemon.store.vectors import text_hash

_IS_LONG = "length(content) > 1000 AND tier <> 'documents'"  # the same condition as in the index `memories_long`

TextSpan = tuple[int, int]  # start and size in characters


class Long(NamedTuple):
    """A memory with a long text, and its parts after the first; None: it was not cut yet."""

    row: int
    text_hash: bytes
    content: str
    pieces: list[TextSpan] | None


def list_uncut(connection: apsw.Connection) -> list[int]:
    """Return the rows of long texts that have no parts."""
    numbers: Any = connection.execute(
        f"SELECT row FROM memories INDEXED BY memories_long WHERE {_IS_LONG}"
        " AND NOT EXISTS (SELECT 1 FROM parts WHERE memory = row)"
    )
    return [row for (row,) in numbers]


def iterate_vectors(connection: apsw.Connection, model: int, rows: Sequence[int] | None = None) -> Iterator[Any]:
    """Yield (row, number of the vector on disk, blob) of each part, None for a part without a vector."""
    among = "" if rows is None else f" AND p.memory IN ({', '.join(map(str, rows))})"
    return connection.execute(
        "SELECT p.memory, e.id, e.vector FROM parts p"
        " LEFT JOIN vec_embeddings e ON e.model = ? AND e.text_hash = p.text_hash"
        f" WHERE p.number > 0{among} ORDER BY p.memory, p.number",
        (model,),
    )


def select_long(connection: apsw.Connection, rows: Sequence[int]) -> list[int]:
    """Return the given rows that have a long text."""
    numbers = ", ".join(map(str, rows))
    return [row for (row,) in connection.execute(f"SELECT row FROM memories WHERE row IN ({numbers}) AND {_IS_LONG}")]


def read(connection: apsw.Connection, rows: Sequence[int]) -> list[Long]:
    """Return the given memories that exist, with their parts."""
    numbers = ", ".join(map(str, rows))
    cut: dict[int, list[TextSpan]] = {}
    sql = f"SELECT memory, number, start, size FROM parts WHERE memory IN ({numbers}) ORDER BY memory, number"
    for row, number, start, size in connection.execute(sql):
        pieces = cut.setdefault(row, [])
        if number:
            pieces.append((start, size))
    memories: Any = connection.execute(f"SELECT row, text_hash, content FROM memories WHERE row IN ({numbers})")
    return [Long(row, key, content, cut.get(row)) for row, key, content in memories]


def put(connection: apsw.Connection, long: Long, pieces: Iterable[TextSpan]) -> None:
    """Store the parts of a text, including the first, unless the text was changed or deleted since it was read."""
    connection.executemany(
        "INSERT OR IGNORE INTO parts (memory, number, start, size, text_hash)"
        " SELECT ?1, ?2, ?3, ?4, ?5 WHERE EXISTS (SELECT 1 FROM memories WHERE row = ?1 AND text_hash = ?6)",
        [
            (long.row, number, start, size, text_hash(long.content[start : start + size]), long.text_hash)
            for number, (start, size) in enumerate(pieces)
        ],
    )

"""Vectors on disk: the durable copy and the embedding cache in one table.

A vector belongs to a (model, SHA-256 of the text), not to a memory: a text is embedded once, however often it is
deleted, restored or written by several clients. Vectors are float32 blobs in sqlite-vec's format in a plain table, from
which one is read by key in 1 µs; a vec0 virtual table takes 180 µs, and each search reads 40 for exact scores.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apsw
import msgspec
import numpy as np
from numpy.typing import NDArray

from memoryd.client.transport.batches import split_evenly
from memoryd.daemon.store import database_settings
from memoryd.daemon.store.tiers import DOCUMENTS

Vector = NDArray[np.float32]

_IN_LIMIT = 500  # values per IN list


def text_hash(text: str) -> bytes:
    """Return the key of a text's vector."""
    return hashlib.sha256(text.encode()).digest()


def ensure_model(connection: apsw.Connection, name: str, fingerprint: str, dimensions: int) -> int:
    """Return the number of a model, inserting it if it is new (on the writer's connection)."""
    number = connection.execute("SELECT id FROM models WHERE fingerprint = ?", (fingerprint,)).get
    if number is None:
        sql = "INSERT INTO models (name, fingerprint, dimensions) VALUES (?, ?, ?) RETURNING id"
        number = connection.execute(sql, (name, fingerprint, dimensions)).get
    return int(number)


def has_model(connection: apsw.Connection) -> bool:
    """Return whether a model has embedded anything, or was ready to."""
    return bool(connection.execute("SELECT EXISTS (SELECT 1 FROM models)").get)


def put(connection: apsw.Connection, model: int, key: bytes, vector: Vector) -> None:
    """Keep the vector of a text, unless its model was given up meanwhile."""
    connection.execute(
        "INSERT OR IGNORE INTO vec_embeddings (model, text_hash, vector)"
        " SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM models WHERE id = ?1)",
        (model, key, vector.astype(np.float32, copy=False).tobytes()),
    )


def read_cached(connection: apsw.Connection, model: int, key: bytes) -> Vector | None:
    """Return the vector of a text that was embedded before."""
    blob = connection.execute("SELECT vector FROM vec_embeddings WHERE model = ? AND text_hash = ?", (model, key)).get
    return np.frombuffer(blob, np.float32) if isinstance(blob, bytes) else None


def find(connection: apsw.Connection, model: int, keys: Sequence[bytes]) -> dict[bytes, Vector]:
    """Return the vectors of the texts that were embedded before, by the hashes of the texts."""
    by_hash: dict[bytes, Vector] = {}
    for part in split_evenly(keys, _IN_LIMIT):
        marks = ", ".join("?" * len(part))
        sql = f"SELECT text_hash, vector FROM vec_embeddings WHERE model = ? AND text_hash IN ({marks})"
        entries = connection.execute(sql, (model, *part))
        by_hash.update((key, np.frombuffer(blob, np.float32)) for key, blob in entries)
    return by_hash


def count(connection: apsw.Connection) -> int:
    """Return how many vectors are stored."""
    return int(connection.execute("SELECT count(*) FROM vec_embeddings").get)


def read_exact(
    connection: apsw.Connection, model: int, numbers: Iterable[int], where: str = "TRUE", values: Sequence[Any] = ()
) -> tuple[list[int], Vector]:
    """Return (rows, matrix): the exact vectors of their own texts, for the memories that meet `where` and have one."""
    entries: list[Any] = connection.execute(
        # NOT INDEXED and CROSS JOIN make the planner look up the row numbers first.
        "SELECT m.row, e.vector FROM memories m NOT INDEXED CROSS JOIN vec_embeddings e"
        " ON e.text_hash = m.text_hash AND e.model = ?"
        f" WHERE m.row IN ({', '.join(map(str, numbers))}) AND {where}",
        (model, *values),
    ).fetchall()
    return [row for row, _ in entries], build_matrix([blob for _, blob in entries])


def look_up(connection: apsw.Connection, model: int, rows: Iterable[int]) -> list[Any]:
    """Return (row, vector id, blob) for the memories that have a vector: the one that searches use."""
    return connection.execute(
        "SELECT m.row, coalesce(s.id, e.id), coalesce(s.vector, e.vector) FROM memories m NOT INDEXED"
        f" CROSS JOIN vec_embeddings e ON e.text_hash = m.text_hash AND e.model = ?1 {_SEARCHED}"
        f" WHERE m.row IN ({', '.join(map(str, rows))})",
        (model,),
    ).fetchall()


def read_blobs(connection: apsw.Connection, ids: Iterable[int]) -> dict[int, bytes]:
    """Return the blobs of vectors by their ids, which costs a third of finding them by memory."""
    # The same SQL for any ids is prepared only once, which saves a third of the time.
    sql = "SELECT e.id, e.vector FROM json_each(?) v CROSS JOIN vec_embeddings e ON e.id = v.value"
    return dict(connection.execute(sql, (msgspec.json.encode(list(ids)).decode(),)))


def build_matrix(blobs: Sequence[bytes]) -> Vector:
    """Return blobs as a matrix, shape (blobs, dimensions)."""
    return np.frombuffer(b"".join(blobs), np.float32).reshape(len(blobs), -1) if blobs else np.zeros((0, 0), np.float32)


def read_all(connection: apsw.Connection, model: int) -> Iterator[Any]:
    """Yield (row, namespace, type, id, vector, own, waits) for every memory, to build the index in RAM.

    `vector`, a blob or None, is the one that searches use, `id` its id; `own` is the vector of the memory's own text if
    that is a different one, else None; `waits` says that it has no vector within its context yet. A part of a file has
    an empty type: an add looks for duplicates by type, and must not be merged into a file.
    """
    return connection.execute(_INDEXED, (model,))


def read_some(connection: apsw.Connection, model: int, rows: Iterable[int]) -> Iterator[Any]:
    """Yield the same as `read_all` for the existing memories among some rows."""
    return connection.execute(f"{_INDEXED} WHERE m.row IN ({', '.join(map(str, rows))})", (model,))


# The vector within a context, once it is computed.
_SEARCHED = (
    "LEFT JOIN contexts c ON c.memory = m.row"
    " LEFT JOIN vec_embeddings s ON s.model = ?1 AND s.text_hash = c.search_hash AND e.id IS NOT NULL"
)
_INDEXED = (
    f"SELECT m.row, m.namespace, CASE WHEN m.tier = {DOCUMENTS!r} THEN '' ELSE m.type END,"
    " coalesce(s.id, e.id), coalesce(s.vector, e.vector), iif(s.id IS NULL, NULL, e.vector),"
    " c.memory IS NOT NULL AND s.id IS NULL AND e.id IS NOT NULL FROM memories m"
    f" LEFT JOIN vec_embeddings e ON e.model = ?1 AND e.text_hash = m.text_hash {_SEARCHED}"
)


def find_problems(connection: apsw.Connection) -> list[str]:
    """Return a line for each kind of invalid vector and their number: of a wrong length, zero, or not finite."""
    wrong = connection.execute(f"SELECT count(*) FROM {_MODELS} WHERE {_OF_WRONG_LENGTH}").get
    void = connection.execute(f"SELECT count(*) FROM {_MODELS} WHERE {_VOID}").get
    texts = {"have a wrong length": wrong, "are zero or hold a value that is not a number": void}
    return [f"vectors: {number} {what}" for what, number in texts.items() if number]


_MODELS = "vec_embeddings e JOIN models ON models.id = e.model"
_OF_WRONG_LENGTH = "length(e.vector) % 4 <> 0 OR length(e.vector) <> 4 * models.dimensions"
# The cosine of a vector with itself is 1 unless it is zero, or holds a NaN or an infinity.
_VOID = f"CASE WHEN {_OF_WRONG_LENGTH} THEN FALSE ELSE coalesce(vec_distance_cosine(e.vector, e.vector), 9) > 0.01 END"


def drop_wrong(connection: apsw.Connection) -> None:
    """Delete invalid vectors; their memories are embedded again."""
    for wrong in (_OF_WRONG_LENGTH, _VOID):
        connection.execute(f"DELETE FROM vec_embeddings WHERE id IN (SELECT e.id FROM {_MODELS} WHERE {wrong})")


def adopt(connection: apsw.Connection, model: int, name: str) -> None:
    """Make a model the one that a restart loads; delete all other models with their vectors.

    Memories without a vector are the queue of embeddings; turns of L0 are queued again.
    """
    database_settings.put(connection, "model", name)
    connection.execute("DELETE FROM settings WHERE name = 'next_model'")
    if connection.execute("DELETE FROM models WHERE id <> ? RETURNING id", (model,)).fetchall():
        connection.execute("INSERT OR IGNORE INTO extraction (turn, task) SELECT key, 'embed' FROM turns")

"""Replace the vectors of a root by those of another model, in a second column that replaces the first once it is full.

Call `prepare` first, then `fill` until no memory is left, then `switch`. Each is one transaction, so after an
interruption the same calls continue where they stopped. A daemon begins each of its transactions by reading `meta`,
which is locked here before columns change, so it never compares vectors of two models.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from memoryd.client.errors import Conflict
from memoryd.client.transport.postgres import rights, schema
from memoryd.client.transport.postgres.schema import name_of

_PART = 200
_LOCK = "LOCK TABLE {0}.meta, {0}.memories IN ACCESS EXCLUSIVE MODE; SET LOCAL statement_timeout = 0"
# Selects the model of the root, and the model of the second column, which is stored as the comment of that column.
_MODELS = (
    "SELECT m.model, col_description(a.attrelid, a.attnum) FROM {0}.meta m LEFT JOIN pg_attribute a"
    " ON a.attrelid = '{0}.memories'::regclass AND a.attname = 'embedding_next'"
)
_ADD = """
ALTER TABLE @SCHEMA@.memories ADD COLUMN embedding_next @VECTOR@.vector(@SIZE@);
COMMENT ON COLUMN @SCHEMA@.memories.embedding_next IS @MODEL@;
CREATE INDEX memories_waiting_next ON @SCHEMA@.memories (id) WHERE embedding_next IS NULL;
CREATE INDEX memories_embedding_next ON @SCHEMA@.memories USING hnsw (embedding_next @VECTOR@.vector_cosine_ops);
"""
_DROP = "ALTER TABLE {0}.memories DROP COLUMN IF EXISTS embedding_next"
_SWITCH = """
ALTER TABLE @SCHEMA@.memories DROP COLUMN embedding;
ALTER TABLE @SCHEMA@.memories RENAME COLUMN embedding_next TO embedding;
ALTER INDEX @SCHEMA@.memories_waiting_next RENAME TO memories_waiting;
ALTER INDEX @SCHEMA@.memories_embedding_next RENAME TO memories_embedding;
UPDATE @SCHEMA@.meta SET model = @MODEL@, dimensions = @SIZE@;
"""


class PendingMemory(NamedTuple):
    """A memory that has no vector of the new model yet."""

    id: str
    version: int
    content: str


def prepare(connection: Any, root: str, model: str, dimensions: int) -> tuple[int, int] | None:
    """Create the second column unless it exists for that model; return the numbers of missing vectors and of memories.

    If the root has the vectors of that model already, drop any second column and return None.
    """
    schema.check(connection, root)
    connection.execute(_LOCK.format(name_of(root)))
    current, following = connection.execute(_MODELS.format(name_of(root))).fetchone()
    if following != model or current == model:
        connection.execute(_DROP.format(name_of(root)))
    if current == model:
        return None
    if following != model:
        connection.execute(schema.fill_in(_ADD, connection, root, model, dimensions))
    sql = f"SELECT count(*) FILTER (WHERE embedding_next IS NULL), count(*) FROM {name_of(root)}.memories"
    left, total = connection.execute(sql).fetchone()
    return left, total


def fill(connection: Any, root: str, model: str, made: Sequence[tuple[str, str, int]]) -> list[PendingMemory]:
    """Write vectors, each given with the id and version of its memory; return the next memories without a vector."""
    _check_model(connection, root, model)
    if made:
        sql = f"UPDATE {name_of(root)}.memories SET embedding_next = %s WHERE id = %s AND version = %s"
        connection.cursor().executemany(sql, made)
    sql = (
        f"SELECT id, version, content FROM {name_of(root)}.memories WHERE embedding_next IS NULL"
        f" ORDER BY id LIMIT {_PART}"
    )
    return [PendingMemory(*row) for row in connection.execute(sql).fetchall()]


def switch(connection: Any, root: str, model: str, dimensions: int) -> bool:
    """Replace the first column by the second; return False if a memory saved meanwhile has no vector in it yet."""
    connection.execute(_LOCK.format(name_of(root)))
    _check_model(connection, root, model)
    sql = f"SELECT 1 FROM {name_of(root)}.memories WHERE embedding_next IS NULL LIMIT 1"
    if connection.execute(sql).fetchone():
        return False
    connection.execute(schema.fill_in(_SWITCH, connection, root, model, dimensions))
    rights.grant_vectors(connection, root)
    return True


def _check_model(connection: Any, root: str, model: str) -> None:
    _, following = connection.execute(_MODELS.format(name_of(root))).fetchone()
    if following != model:
        raise Conflict(f"Another `memctl shared migrate {root}` has taken the place of this one.")

"""The vectors of a root made anew by another model: in a second column, which replaces the first once it is full.

`prepare` comes first, then `fill` until nothing is left, then `switch`. Each is one transaction, and what is written
stays: after an interruption the same calls go on. A daemon begins each of its transactions by reading `meta`, which is
locked here before columns change: no vector is ever compared with those of another model.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from memoryd.client.errors import Conflict
from memoryd.client.transport.postgres import rights, schema
from memoryd.client.transport.postgres.schema import name_of

_PART = 200
_LOCK = "LOCK TABLE {0}.meta, {0}.memories IN ACCESS EXCLUSIVE MODE; SET LOCAL statement_timeout = 0"
# The model of the root, and that of the second column, which is in the comment on it.
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


class Left(NamedTuple):
    """A memory that has no vector of the new model yet."""

    id: str
    version: int
    content: str


def prepare(connection: Any, root: str, model: str, dimensions: int) -> tuple[int, int] | None:
    """Have the second column, empty unless it is of that model; return how many of the memories it lacks, and how many
    there are. None: the root has the vectors of that model, and another change was given up."""
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


def fill(connection: Any, root: str, model: str, made: Sequence[tuple[str, str, int]]) -> list[Left]:
    """Write some vectors (each with the id and the version of its memory); return some memories that are left."""
    _check_model(connection, root, model)
    if made:
        sql = f"UPDATE {name_of(root)}.memories SET embedding_next = %s WHERE id = %s AND version = %s"
        connection.cursor().executemany(sql, made)
    sql = (
        f"SELECT id, version, content FROM {name_of(root)}.memories WHERE embedding_next IS NULL"
        f" ORDER BY id LIMIT {_PART}"
    )
    return [Left(*row) for row in connection.execute(sql).fetchall()]


def switch(connection: Any, root: str, model: str, dimensions: int) -> bool:
    """Put the second column in the place of the first; return False if it lacks a memory that was saved meanwhile."""
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

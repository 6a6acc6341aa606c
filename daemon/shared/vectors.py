"""Vectors and full text on the server: their tables, who makes them, what is nearest to a question.

The text is the truth: a vector is used only where its model and the hash of its text are those of whoever reads it. It
is made after the push, by the machine that has the lease of the model, in the order of the feed; how far that is, is in
`models`. Where the server has no pgvector there are no such tables, and nobody is asked what is not here.
"""

import struct
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from psycopg import sql

from memoryd.daemon.shared.applying import Remote
from memoryd.daemon.shared.exchange import COLUMNS, read_remote
from memoryd.daemon.shared.schema import ADD, CHANGE, READ, ROLES, SEE, WRITE, grant_tables, secure
from memoryd.daemon.shared.server import Server
from memoryd.daemon.store.vectors import Vector

BATCH = 200  # rows of the feed
_PARTITIONS = 8  # by root: an index of one's own memories is smaller and finds more
_EF_SEARCH = 600  # of HNSW: recall against time
_EF_CONSTRUCTION = 128  # recall against the time that the index takes: half as long with 64, which finds less
_FEW = 20_000  # vectors that are compared one by one
_DISTANCE = "v.emb::halfvec({length}) <=> %(vector)s::halfvec({length})"
_PARTS = "\n".join(
    f"CREATE TABLE memoryd.vec_{part} PARTITION OF memoryd.vec"
    f" FOR VALUES WITH (MODULUS {_PARTITIONS}, REMAINDER {part});"
    for part in range(_PARTITIONS)
)
_TABLES = f"""
-- How far the vectors of each model are, and which machine makes them for now.
CREATE TABLE memoryd.models (
  root text NOT NULL, model text NOT NULL, dimensions int NOT NULL, seq bigint NOT NULL DEFAULT 0,
  machine text NOT NULL DEFAULT '', until timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (root, model)
);
CREATE TABLE memoryd.vec (
  root text NOT NULL, model text NOT NULL, id uuid NOT NULL, ns text NOT NULL, text_hash bytea NOT NULL,
  emb halfvec NOT NULL, PRIMARY KEY (root, model, id)
) PARTITION BY HASH (root);
{_PARTS}
-- By it a small namespace is compared as a whole, which is exact.
CREATE INDEX vec_place ON memoryd.vec (root, model, ns);
"""
_SECURITY = f"""{secure("models", SEE, ADD, CHANGE)}
{secure("vec", SEE, ADD, CHANGE, f"FOR DELETE USING ({WRITE})")}"""
_ARE_THERE = "SELECT to_regclass('memoryd.vec') IS NOT NULL"
_CAN_BE = "SELECT count(*) FROM pg_catalog.pg_available_extensions WHERE name = 'vector'"
_REGISTER = (
    "INSERT INTO memoryd.models (root, model, dimensions) SELECT %(root)s, %(model)s, %(dimensions)s WHERE EXISTS"
    " (SELECT 1 FROM memoryd.grants g WHERE g.root = %(root)s AND g.role = session_user AND g.can_write)"
    " ON CONFLICT DO NOTHING"
)
_LEASE = (
    "UPDATE memoryd.models o SET machine = %(machine)s, until = now() + interval '60 seconds'"
    " WHERE o.root = %(root)s AND o.model = %(model)s AND (o.machine IN ('', %(machine)s) OR o.until < now())"
    " AND o.seq < (SELECT h.seq FROM memoryd.heads h WHERE h.root = o.root) RETURNING o.seq"
)
_FEED = (
    "SELECT m.id, m.seq, m.ns, m.deleted, m.body ->> 'content', coalesce((m.body ->> 'turns')::int, 0)"
    " FROM memoryd.mem m WHERE m.root = %s AND m.seq > %s ORDER BY m.seq LIMIT %s"
)
_PUT = (
    "INSERT INTO memoryd.vec (root, model, id, ns, text_hash, emb)"
    " SELECT %(root)s, %(model)s, r.id, r.ns, decode(r.hash, 'hex'), r.emb::halfvec"
    " FROM jsonb_to_recordset(%(rows)s::jsonb) AS r(id uuid, ns text, hash text, emb text)"
    " ON CONFLICT (root, model, id) DO UPDATE SET ns = excluded.ns, text_hash = excluded.text_hash, emb = excluded.emb"
)
_DROP = "DELETE FROM memoryd.vec v WHERE v.root = %(root)s AND v.model = %(model)s AND v.id = ANY(%(dropped)s::uuid[])"
_ADVANCE = "UPDATE memoryd.models SET seq = %(seq)s WHERE root = %(root)s AND model = %(model)s"
_TAKE = "SELECT v.text_hash, v.emb FROM memoryd.vec v WHERE v.root = %s AND v.model = %s AND v.id = ANY(%s::uuid[])"
_HEAD = "SELECT h.seq FROM memoryd.heads h WHERE h.root = %s"
_COUNT = (
    "SELECT count(*) FROM (SELECT 1 FROM memoryd.vec v WHERE v.root = %s AND v.model = %s AND v.ns = ANY(%s)"
    f" LIMIT {_FEW + 1}) s"
)
# The index is one of vectors of a model's length, so the query has to name both.
_NEAREST = f"""
WITH near AS MATERIALIZED (
  SELECT v.id, v.text_hash, {_DISTANCE} AS distance FROM memoryd.vec v
  WHERE v.root = %(root)s AND v.model = {{model}} AND v.ns = ANY(%(places)s)
  ORDER BY ({_DISTANCE}) {{rest}} LIMIT %(wanted)s
)
SELECT {COLUMNS}, n.distance, n.text_hash FROM near n JOIN memoryd.mem m ON m.root = %(root)s AND m.id = n.id
WHERE NOT m.deleted AND m.ns = ANY(%(places)s) ORDER BY n.distance
"""
# Full text. Row-level security keeps a statement of a role from the index of words (its operator could reveal rows), so
# a function of the owner asks, and looks itself whether the role may read the root. It returns ids of memories that
# hold rare words of a question; how well they fit is computed by whoever asked, as for everything else.
_TEXT = "to_tsvector('pg_catalog.english', left(m.body ->> 'content', 100000))"
_WORD_INDEX = (
    "CREATE INDEX IF NOT EXISTS mem_words ON memoryd.mem USING gin"
    f" (({_TEXT.replace('m.body', 'body')})) WHERE NOT deleted"
)
_HOLDING = f"""
  SELECT m.id FROM memoryd.mem m
  WHERE m.root = asked_root AND m.ns = ANY(places) AND NOT m.deleted AND {_TEXT} @@ {{words}} AND asked_{READ}
  LIMIT wanted
"""
# Those that hold every word, then some for each word: a word that few hold is not crowded out by another.
_FIND_WORDS = f"""
CREATE OR REPLACE FUNCTION memoryd.find_words(asked_root text, places text[], words text[], wanted int)
RETURNS TABLE (id uuid) LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  WITH asked AS (
    SELECT q.q FROM (SELECT plainto_tsquery('pg_catalog.english', w.w) AS q FROM unnest(words) AS w(w)) q
    WHERE numnode(q.q) > 0
  ), every AS (SELECT string_agg(a.q::text, ' & ')::tsquery AS q FROM asked a)
  SELECT found.id FROM every e, LATERAL ({_HOLDING.format(words="e.q")}) found
  UNION SELECT found.id FROM asked a, LATERAL ({_HOLDING.format(words="a.q")}) found
$$;
REVOKE ALL ON FUNCTION memoryd.find_words FROM PUBLIC;
"""
# The distance is that of the vector that the server has, if it has one.
_HAVING_WORDS = f"""
SELECT {COLUMNS}, v.emb::halfvec({{length}}) <=> %(vector)s::halfvec({{length}}), v.text_hash
FROM memoryd.find_words(%(root)s, %(places)s, %(words)s, %(wanted)s) w
JOIN memoryd.mem m ON m.root = %(root)s AND m.id = w.id
LEFT JOIN memoryd.vec v ON v.root = %(root)s AND v.model = {{model}} AND v.id = w.id
WHERE NOT m.deleted AND m.ns = ANY(%(places)s)
"""


class Unembedded(NamedTuple):
    """A row of the feed whose vector is to be made: `content` is None where it is deleted."""

    id: str
    seq: int
    namespace: str
    content: str | None
    turns: int


class Asked(NamedTuple):
    """A question: what is nearest to a vector of a model, or has words, in namespaces that have few vectors or many."""

    model: str
    vector: Vector
    places: Sequence[str]
    wanted: int
    few: bool
    words: Sequence[str] = ()


class Nearest(NamedTuple):
    """A memory for a question: as the server has it, its cosine, the hash of the text that the vector is of."""

    remote: Remote
    similarity: float | None
    text_hash: bytes | None


def make(server: Server, models: Mapping[str, int]) -> bool:
    """Make the tables, and the index of each model, given by its length; return whether there are any. For the owner.

    What is there already stays. A server without pgvector gets none.
    """
    if not server.value(_ARE_THERE):
        if not server.value(_CAN_BE):
            return False
        _run_for_all(server, "CREATE EXTENSION IF NOT EXISTS vector", _TABLES + _SECURITY)
    known = dict(server.run("SELECT DISTINCT model, dimensions FROM memoryd.models").fetchall())
    for model, length in {**known, **models}.items():
        name = sql.Identifier(f"vec_near_{name_index(model)}")
        server.run(
            sql.SQL(
                "CREATE INDEX IF NOT EXISTS {} ON memoryd.vec USING hnsw ((emb::halfvec({})) halfvec_cosine_ops)"
                " WITH (ef_construction = {}) WHERE model = {}"
            ).format(name, sql.SQL(str(int(length))), sql.SQL(str(_EF_CONSTRUCTION)), sql.Literal(model))
        )
    return True


def make_words(server: Server) -> None:
    """Make the index of words and the function that reads it, and let every role that has a grant use it."""
    _run_for_all(server, _WORD_INDEX, _FIND_WORDS)


def _run_for_all(server: Server, *statements: str) -> None:
    """Run statements of the owner in a transaction, and let every role that has a grant use what they make."""
    with server.begin():
        for statement in statements:
            server.run(statement)
        for (role,) in server.run(ROLES).fetchall():
            grant_tables(server, role)


def name_index(model: str) -> str:
    """Return by what an index is named: its model."""
    return "".join(letter if letter.isalnum() else "_" for letter in model.lower())[-40:]


def take_lease(server: Server, root: str, model: str, length: int, machine: str) -> int | None:
    """Take the lease of a model, or keep it; return how far its vectors are, None where nothing is to be done here."""
    values = {"root": root, "model": model, "dimensions": length, "machine": machine}
    with server.exchange():
        server.run(_REGISTER, values)
        found = server.run(_LEASE, values)
    row = found.fetchone()
    return None if row is None else int(row[0])


def read_feed(server: Server, root: str, after: int) -> list[Unembedded]:
    """Return the next rows whose vectors are to be made."""
    found = server.run(_FEED, (root, after, BATCH)).fetchall()
    return [
        Unembedded(id.hex, seq, place, None if deleted else content, turns)
        for id, seq, place, deleted, content, turns in found
    ]


def put(
    server: Server, root: str, model: str, made: Sequence[tuple[Unembedded, bytes, Vector]], feed: list[Unembedded]
) -> None:
    """Put the vectors of rows of the feed, given with the hash of their texts; drop those of deleted ones."""
    given = [
        {"id": one.id, "ns": one.namespace, "hash": hash.hex(), "emb": write_vector(vector)}
        for one, hash, vector in made
    ]
    kept = {one.id for one, _, _ in made}
    values = {
        "root": root,
        "model": model,
        "rows": msgspec.json.encode(given).decode(),
        "dropped": [one.id for one in feed if one.id not in kept],
        "seq": feed[-1].seq,
    }
    with server.exchange():
        server.run(_PUT, values)
        server.run(_DROP, values)
        server.run(_ADVANCE, values)


def take(server: Server, root: str, model: str, ids: Collection[str]) -> dict[bytes, Vector]:
    """Return the vectors of memories, by the hash of their texts."""
    found = server.connection.execute(_TAKE, (root, model, list(ids)), binary=True).fetchall()
    return {bytes(hash): read_vector(bytes(packed)) for hash, packed in found}


def has_few(server: Server, root: str, model: str, places: Sequence[str]) -> bool:
    """Return whether namespaces have so few vectors that each is compared, which is exact.

    A planner takes the index for these too, where it finds little and late.
    """
    return int(server.value(_COUNT, (root, model, list(places)))) <= _FEW


def find_nearest(server: Server, root: str, asked: Asked) -> tuple[int, list[Nearest]]:
    """Return what is nearest to a vector or has rare words, and how far the feed was at least when that was read."""
    values = {"root": root, "places": list(asked.places), "wanted": asked.wanted, "vector": write_vector(asked.vector)}
    with server.exchange():
        head = server.run(_HEAD, (root,))
        server.run(f"SET LOCAL hnsw.ef_search = {_EF_SEARCH}")
        server.run("SET LOCAL hnsw.iterative_scan = strict_order")
        found = [server.run(_fill(_NEAREST, asked), values)]
        if asked.words and server.has_words:
            found.append(server.run(_fill(_HAVING_WORDS, asked), {**values, "words": list(asked.words)}))
    seq = head.fetchone()
    rows = {row[0]: row for answer in found for row in answer.fetchall()}
    return int(seq[0]) if seq else 0, [_read_nearest(row) for row in rows.values()]


def _fill(query: str, asked: Asked) -> sql.Composed:
    rest = sql.SQL("+ 0.0" if asked.few else "")
    return sql.SQL(query).format(length=sql.SQL(str(len(asked.vector))), model=sql.Literal(asked.model), rest=rest)


def _read_nearest(row: Any) -> Nearest:
    *remote, distance, text_hash = row
    return Nearest(
        read_remote(remote), None if distance is None else 1.0 - float(distance), text_hash and bytes(text_hash)
    )


def write_vector(vector: Vector) -> str:
    """Return a vector as the server reads it."""
    return f"[{','.join(f'{value:.5g}' for value in vector.tolist())}]"


def read_vector(packed: bytes) -> Vector:
    """Return a vector that the server sent: its length, and numbers of two bytes."""
    (length,) = struct.unpack_from(">h", packed)
    made: Any = np.frombuffer(packed, ">f2", length, 4).astype(np.float32)
    return made / (np.linalg.norm(made) or 1.0)  # type: ignore[no-any-return]

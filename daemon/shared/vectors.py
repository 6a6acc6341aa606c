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

from memoryd.client.errors import Conflict
from memoryd.daemon.shared.exchange import COLUMNS, PULLED_BYTES, read_remote
from memoryd.daemon.shared.functions import DEFINER, ROW, SHOWN
from memoryd.daemon.shared.messages import RemoteMemory
from memoryd.daemon.shared.schema import LOCK, ROLES, grant_functions, guard, secure
from memoryd.daemon.shared.server import ServerConnection
from memoryd.daemon.store.vectors import Vector

BATCH = 200  # rows of the feed
_PARTITIONS = 8  # by root: an index of one's own memories is smaller and finds more
_EF_SEARCH = 600  # of HNSW: recall against time
_EF_CONSTRUCTION = 128  # recall against the time that the index takes: half as long with 64, which finds less
_FEW = 20_000  # vectors that are compared one by one
_PARTS = "\n".join(
    f"CREATE TABLE memoryd.vec_{part} PARTITION OF memoryd.vec"
    f" FOR VALUES WITH (MODULUS {_PARTITIONS}, REMAINDER {part});"
    for part in range(_PARTITIONS)
)
# PLACE is the schema that pgvector is in: types and operators are named with it, as a search path could be another's.
_TABLES = f"""
-- How far the vectors of each model are, and which machine makes them for now.
CREATE TABLE memoryd.models (
  root text NOT NULL, model text NOT NULL, dimensions int NOT NULL, seq bigint NOT NULL DEFAULT 0,
  machine text NOT NULL DEFAULT '', until timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (root, model)
);
CREATE TABLE memoryd.vec (
  root text NOT NULL, model text NOT NULL, id uuid NOT NULL, ns text NOT NULL, text_hash bytea NOT NULL,
  emb PLACE.halfvec NOT NULL, PRIMARY KEY (root, model, id)
) PARTITION BY HASH (root);
{_PARTS}
-- By it a small namespace is compared as a whole, which is exact.
CREATE INDEX vec_place ON memoryd.vec (root, model, ns);
{secure("models", "vec", *(f"vec_{part}" for part in range(_PARTITIONS)))}
"""
_FUNCTIONS = f"""
-- Take the lease of a model, or keep it; return how far its vectors are, nothing where nothing is to be done.
CREATE FUNCTION memoryd.lease(asked_root text, asked_model text, length int, asked_machine text) RETURNS bigint
LANGUAGE plpgsql {DEFINER} AS $$
DECLARE
  found_seq bigint;
BEGIN
  PERFORM memoryd.check_write(asked_root);
  INSERT INTO memoryd.models (root, model, dimensions) VALUES (asked_root, asked_model, length) ON CONFLICT DO NOTHING;
  UPDATE memoryd.models o SET machine = asked_machine, until = now() + interval '60 seconds'
    WHERE o.root = asked_root AND o.model = asked_model
      AND (o.machine IN ('', asked_machine) OR o.until < now())
      AND o.seq < (SELECT h.seq FROM memoryd.heads h WHERE h.root = asked_root)
    RETURNING o.seq INTO found_seq;
  RETURN found_seq;
END $$;

-- The part of the feed whose vectors are to be made.
CREATE FUNCTION memoryd.list_unembedded(asked_root text, after bigint, most int, most_bytes bigint)
RETURNS TABLE (id uuid, seq bigint, ns text, content text, turns int) LANGUAGE sql STABLE {DEFINER} BEGIN ATOMIC
  SELECT f.id, f.seq, f.ns, CASE WHEN NOT f.deleted THEN f.body::jsonb ->> 'content' END,
    coalesce((f.body::jsonb ->> 'turns')::int, 0)
  FROM memoryd.feed(asked_root, after, most, most_bytes) f;
END;

-- Put vectors, drop others, note how far that is. What was deleted meanwhile gets none.
CREATE FUNCTION memoryd.put_vectors(asked_root text, asked_model text, made text, dropped uuid[], upto bigint)
RETURNS void LANGUAGE plpgsql {DEFINER} AS $$
BEGIN
  PERFORM memoryd.check_write(asked_root);
  INSERT INTO memoryd.vec AS v (root, model, id, ns, text_hash, emb)
    SELECT asked_root, asked_model, r.id, r.ns, decode(r.hash, 'hex'), r.emb::PLACE.halfvec
    FROM jsonb_to_recordset(made::jsonb) AS r(id uuid, ns text, hash text, emb text)
    WHERE EXISTS (SELECT FROM memoryd.mem m WHERE m.root = asked_root AND m.id = r.id AND NOT m.deleted)
    ON CONFLICT (root, model, id) DO UPDATE
      SET ns = excluded.ns, text_hash = excluded.text_hash, emb = excluded.emb;
  DELETE FROM memoryd.vec v WHERE v.root = asked_root AND v.model = asked_model AND v.id = ANY(dropped);
  UPDATE memoryd.models o SET seq = upto WHERE o.root = asked_root AND o.model = asked_model;
END $$;

CREATE FUNCTION memoryd.take_vectors(asked_root text, asked_model text, ids uuid[])
RETURNS TABLE (text_hash bytea, emb PLACE.halfvec) LANGUAGE sql STABLE {DEFINER} BEGIN ATOMIC
  SELECT v.text_hash, v.emb FROM memoryd.vec v
  WHERE v.root = asked_root AND v.model = asked_model AND v.id = ANY(ids) AND memoryd.may_read(asked_root);
END;

CREATE FUNCTION memoryd.has_few(asked_root text, asked_model text, places text[]) RETURNS boolean
LANGUAGE sql STABLE {DEFINER} BEGIN ATOMIC
  SELECT count(*) <= {_FEW} FROM (
    SELECT FROM memoryd.vec v
    WHERE v.root = asked_root AND v.model = asked_model AND v.ns = ANY(places) AND memoryd.may_read(asked_root)
    LIMIT {_FEW + 1}
  ) s;
END;

-- What is nearest to a vector. The index is one of vectors of a model's length, so the query has to name both.
CREATE FUNCTION memoryd.find_nearest(
  asked_root text, asked_model text, vector text, length int, places text[], wanted int, is_exact boolean
) RETURNS TABLE ({ROW}, distance float8, text_hash bytea) LANGUAGE plpgsql STABLE {DEFINER}
SET hnsw.ef_search = {_EF_SEARCH} SET hnsw.iterative_scan = strict_order AS $$
DECLARE
  distance_to text := format('v.emb::PLACE.halfvec(%1$s) OPERATOR(PLACE.<=>) $1::PLACE.halfvec(%1$s)', length);
BEGIN
  IF memoryd.may_read(asked_root) THEN
    RETURN QUERY EXECUTE format('
      WITH near AS MATERIALIZED (
        SELECT v.id, v.text_hash, %1$s AS distance FROM memoryd.vec v
        WHERE v.root = $2 AND v.model = %2$L AND v.ns = ANY($3) ORDER BY (%1$s) %3$s LIMIT $4
      )
      SELECT {SHOWN}, n.distance, n.text_hash FROM near n JOIN memoryd.mem m ON m.root = $2 AND m.id = n.id
      WHERE NOT m.deleted AND m.ns = ANY($3) ORDER BY n.distance',
      distance_to, asked_model, CASE WHEN is_exact THEN '+ 0.0' END) USING vector, asked_root, places, wanted;
  END IF;
END $$;
"""
# Full text: memories that hold rare words of a question; how well they fit is computed by whoever asked, as for
# everything else. Those that hold every word, then some for each word: a word that few hold is not crowded out by
# another.
_TEXT = "to_tsvector('pg_catalog.english', left(m.body ->> 'content', 100000))"
_HOLDING = f"""
    SELECT m.id FROM memoryd.mem m
    WHERE m.root = asked_root AND m.ns = ANY(places) AND NOT m.deleted AND {_TEXT} @@ {{words}}
      AND memoryd.may_read(asked_root)
    LIMIT wanted
"""
_WORDS = f"""
CREATE INDEX mem_words ON memoryd.mem USING gin (({_TEXT.replace("m.body", "body")})) WHERE NOT deleted;

CREATE FUNCTION memoryd.find_words(
  asked_root text, asked_model text, vector text, length int, places text[], words text[], wanted int
) RETURNS TABLE ({ROW}, distance float8, text_hash bytea) LANGUAGE sql STABLE {DEFINER}
SET plan_cache_mode = force_custom_plan BEGIN ATOMIC
  WITH asked AS (
    SELECT q.q FROM (SELECT plainto_tsquery('pg_catalog.english', w.w) AS q FROM unnest(words) AS w(w)) q
    WHERE numnode(q.q) > 0
  ), every AS (SELECT string_agg(a.q::text, ' & ')::tsquery AS q FROM asked a), found AS (
    SELECT f.id FROM every e, LATERAL ({_HOLDING.format(words="e.q")}) f
    UNION SELECT f.id FROM asked a, LATERAL ({_HOLDING.format(words="a.q")}) f
  )
  -- The distance is that of the vector that the server has, if it has one.
  SELECT {SHOWN}, v.emb OPERATOR(PLACE.<=>) find_words.vector::PLACE.halfvec, v.text_hash
  FROM found f JOIN memoryd.mem m ON m.root = asked_root AND m.id = f.id
  LEFT JOIN memoryd.vec v ON v.root = asked_root AND v.model = asked_model AND v.id = f.id
    AND PLACE.vector_dims(v.emb) = length;
END;
"""
_PLACE = (
    "SELECT quote_ident(n.nspname) FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n"
    " ON n.oid = e.extnamespace WHERE e.extname = 'vector'"
)
_OLDEST = (0, 8)  # pgvector that reads on in an index where a filter left too little
_VERSION = "SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'vector'"
_CAN_BE = "SELECT count(*) FROM pg_catalog.pg_available_extensions WHERE name = 'vector'"
_FOUND = f"{COLUMNS}, distance, text_hash"
_NEAREST = (
    f"SELECT {_FOUND} FROM memoryd.find_nearest(%(root)s, %(model)s, %(vector)s, %(length)s, %(places)s, %(wanted)s,"
    " %(few)s)"
)
_HAVING_WORDS = (
    f"SELECT {_FOUND} FROM memoryd.find_words(%(root)s, %(model)s, %(vector)s, %(length)s, %(places)s, %(words)s,"
    " %(wanted)s)"
)


class Unembedded(NamedTuple):
    """A row of the feed whose vector is to be made: `content` is None where it is deleted."""

    id: str
    seq: int
    namespace: str
    content: str | None
    turns: int


class NearestQuery(NamedTuple):
    """A question: what is nearest to a vector of a model, or has words, in namespaces that have few vectors or many."""

    model: str
    vector: Vector
    places: Sequence[str]
    wanted: int
    few: bool
    words: Sequence[str] = ()


class Nearest(NamedTuple):
    """A memory for a question: as the server has it, its cosine, the hash of the text that the vector is of."""

    remote: RemoteMemory
    similarity: float | None
    text_hash: bytes | None


def make(server: ServerConnection, models: Mapping[str, int]) -> bool:
    """Make tables, functions and the index of each model, given by its length; return whether there are any.

    For the owner. What is there already stays. A server without pgvector gets none; raise `Conflict` for an old one.
    """
    guard(server)
    if not server.value("SELECT to_regclass('memoryd.vec') IS NOT NULL"):
        if not server.value(_CAN_BE):
            return False
        with server.begin():
            server.run("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
            _check_pgvector(server.value(_VERSION))
            place = server.value(_PLACE)
            server.run(f"SELECT '[0]'::{place}.vector")  # loads it; before that its settings are a superuser's alone
            server.run((_TABLES + _FUNCTIONS + _WORDS).replace("PLACE", place) + LOCK)
            grant_functions(server, [role for (role,) in server.run(ROLES).fetchall()])
    place = server.value(_PLACE)
    known = dict(server.run("SELECT DISTINCT model, dimensions FROM memoryd.models").fetchall())
    for model, length in {**known, **models}.items():
        name = sql.Identifier(f"vec_near_{name_index(model)}")
        server.run(
            sql.SQL(
                "CREATE INDEX IF NOT EXISTS {} ON memoryd.vec USING hnsw ((emb::{place}.halfvec({}))"
                " {place}.halfvec_cosine_ops) WITH (ef_construction = {}) WHERE model = {}"
            ).format(
                name,
                sql.SQL(str(int(length))),
                sql.SQL(str(_EF_CONSTRUCTION)),
                sql.Literal(model),
                place=sql.SQL(place),
            )
        )
    return True


def _check_pgvector(version: str) -> None:
    """Raise `Conflict` where pgvector is too old."""
    if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST:
        raise Conflict(
            f"The server has pgvector {version}; vectors need 0.8 or newer. Its owner updates it (ALTER EXTENSION"
            " vector UPDATE) and runs `memctl shared migrate` again; without vectors everything is ready."
        )


def name_index(model: str) -> str:
    """Return by what an index is named: its model."""
    return "".join(letter if letter.isalnum() else "_" for letter in model.lower())[-40:]


def take_lease(server: ServerConnection, root: str, model: str, length: int, machine: str) -> int | None:
    """Take the lease of a model, or keep it; return how far its vectors are, None where nothing is to be done here."""
    found = server.value("SELECT memoryd.lease(%s, %s, %s, %s)", (root, model, length, machine))
    return None if found is None else int(found)


def read_feed(server: ServerConnection, root: str, after: int) -> list[Unembedded]:
    """Return the next rows whose vectors are to be made."""
    found = server.run(
        "SELECT id, seq, ns, content, turns FROM memoryd.list_unembedded(%s, %s, %s, %s)",
        (root, after, BATCH, PULLED_BYTES),
    )
    return [Unembedded(id.hex, seq, place, content, turns) for id, seq, place, content, turns in found.fetchall()]


def put(
    server: ServerConnection,
    root: str,
    model: str,
    made: Sequence[tuple[Unembedded, bytes, Vector]],
    feed: list[Unembedded],
) -> None:
    """Put the vectors of rows of the feed, given with the hash of their texts; drop those of deleted ones."""
    given = [
        {"id": one.id, "ns": one.namespace, "hash": hash.hex(), "emb": write_vector(vector)}
        for one, hash, vector in made
    ]
    kept = {one.id for one, _, _ in made}
    dropped = [one.id for one in feed if one.id not in kept]
    server.run(
        "SELECT memoryd.put_vectors(%s, %s, %s, %s::uuid[], %s)",
        (root, model, msgspec.json.encode(given).decode(), dropped, feed[-1].seq),
    )


def take(server: ServerConnection, root: str, model: str, ids: Collection[str]) -> dict[bytes, Vector]:
    """Return the vectors of memories, by the hash of their texts."""
    query = "SELECT text_hash, emb FROM memoryd.take_vectors(%s, %s, %s::uuid[])"
    found = server.connection.execute(query, (root, model, list(ids)), binary=True).fetchall()
    return {bytes(hash): read_vector(bytes(packed)) for hash, packed in found}


def has_few(server: ServerConnection, root: str, model: str, places: Sequence[str]) -> bool:
    """Return whether namespaces have so few vectors that each is compared, which is exact.

    A planner takes the index for these too, where it finds little and late.
    """
    return bool(server.value("SELECT memoryd.has_few(%s, %s, %s)", (root, model, list(places))))


def find_nearest(server: ServerConnection, root: str, asked: NearestQuery) -> tuple[int, list[Nearest]]:
    """Return what is nearest to a vector or has rare words, and how far the feed was at least when that was read."""
    values = {
        "root": root,
        "model": asked.model,
        "vector": write_vector(asked.vector),
        "length": len(asked.vector),
        "places": list(asked.places),
        "wanted": asked.wanted,
        "few": asked.few,
        "words": list(asked.words),
    }
    with server.exchange():
        head = server.run("SELECT seq FROM memoryd.look(%s, NULL)", (root,))
        found = [server.run(_NEAREST, values)]
        if asked.words:
            found.append(server.run(_HAVING_WORDS, values))
    seq = head.fetchone()
    rows = {row[0]: row for answer in found for row in answer.fetchall()}
    return int(seq[0]) if seq else 0, [_read_nearest(row) for row in rows.values()]


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

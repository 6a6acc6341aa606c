"""The SQL on a root's tables. Each function works in the transaction of its connection."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from memoryd.client.errors import NotFound
from memoryd.client.protocol import MAX_CONTENT_BYTES, MAX_METADATA_BYTES
from memoryd.client.transport.postgres.connection import begin as begin_transaction
from memoryd.client.transport.postgres.connection import read_at_once
from memoryd.client.transport.postgres.schema import GIVEN, METADATA, name_of
from memoryd.daemon.store.applied import KEPT_S
from memoryd.daemon.store.rows import CANDIDATES, check_prefix, choose_unique, id_range


def _cut(limit_bytes: int, cast: str = "") -> str:
    return f"CASE WHEN octet_length({{0}}{cast}) <= {limit_bytes} THEN {{0}}{cast} END"


# The columns of a memory; values that are too large for one are not even fetched.
COLUMNS = {
    **dict.fromkeys(("id", "namespace", "type", "source", "origin", "author", "superseded_by", "path"), _cut(4096)),
    **dict.fromkeys(("content", "summary"), _cut(MAX_CONTENT_BYTES)),
    "metadata": _cut(MAX_METADATA_BYTES, "::text"),
    **dict.fromkeys(("importance", "created_at", "updated_at", "expires_at"), "{}::float8"),
    **dict.fromkeys(("pinned", "start_line", "end_line", "version"), "{}"),
}
_SELECTED = ", ".join(f"{text.format(f'm.{name}')}" for name, text in COLUMNS.items())
_SORTED_BY = {"created": "m.created_at", "updated": "m.updated_at", "importance": "m.importance"}
# The fields of a memory in the history, without those derived from its text.
SAID = [name for name in GIVEN if name not in ("stems", "embedding")]

_REACH = (
    "(%(places)s::text[] IS NULL AND %(inner_of)s::text IS NULL OR m.namespace = ANY (%(places)s)"
    " OR m.namespace >= %(inner_of)s || '/' AND m.namespace < %(inner_of)s || '0')"
)
_ALIVE = "(m.expires_at IS NULL OR m.expires_at > %(passed)s OR m.pinned) AND m.superseded_by IS NULL"

Fields = dict[str, Any]


class Match(NamedTuple):
    """A candidate of a search: the columns of its row, its cosine and vector, and the counts of rows within reach."""

    fields: Fields
    similarity: float | None
    vector: str | None
    total: int
    counts: list[int]


class Wanted(NamedTuple):
    """The conditions of a search or a list. `places` and `inner_of` are None for the whole root."""

    places: list[str] | None
    inner_of: str | None
    passed: float  # memories that have expired by then are left out
    kinds: list[str] | None = None
    sources: list[str] | None = None
    since: float | None = None
    until: float | None = None
    path_begins: str | None = None
    matching: str | None = None  # a jsonpath predicate on the metadata
    ids: list[str] | None = None


class Version(NamedTuple):
    """An entry of the history."""

    memory: str
    version: int
    at: float
    author: str
    action: str
    operation: str
    said: str  # as JSON


def begin(connection: Any, root: str) -> tuple[str, int]:
    """Begin a transaction, which sees the vectors of one model until its end; return its name and dimensions."""
    # `shared migrate` locks the table read here before it changes columns.
    model, dimensions = begin_transaction(connection, f"SELECT model, dimensions FROM {name_of(root)}.meta")
    return model, dimensions


def search(
    connection: Any, root: str, vector: str | None, stems: Sequence[str], wanted: Wanted, depth: int
) -> tuple[tuple[str, int], list[Match]]:
    """Return the model and dimensions of the root's vectors, and the candidates of a search, in one round trip.

    If they are not those of `vector`, the candidates by meaning are wrong, or the server raises an error.
    """
    # In one transaction, which begins as others do: the candidates are compared by the vectors of this model.
    sql = (
        f"SELECT model, dimensions FROM {name_of(root)}.meta;"
        f" SELECT s.similarity, m.embedding::text, s.total, s.counts, {_SELECTED} FROM {name_of(root)}.search("
        " %(vector)s, %(stems)s::text[], %(places)s::text[], %(inner_of)s, %(kinds)s::text[], %(sources)s::text[],"
        " %(since)s, %(until)s, %(path_begins)s, %(matching)s, %(passed)s, %(depth)s) s"
        f" JOIN {name_of(root)}.memories m ON m.id = s.id"
    )
    values = wanted._asdict() | {"vector": vector, "stems": list(stems), "depth": depth}
    [[(model, dimensions)], found] = read_at_once(connection, sql, values)
    return (model, dimensions), [Match(_name(row[4:]), *row[:4]) for row in found]


def list_page(
    connection: Any,
    root: str,
    wanted: Wanted,
    words: Sequence[str],
    all_states: bool,
    order: tuple[str, bool],
    limit: int,
) -> tuple[list[Fields], int]:
    """Return the first rows that meet the conditions, and the number of all such rows."""
    sort, ascending = order
    values = wanted._asdict() | {"limit": limit}
    parts = [_REACH]
    conditions = {
        "kinds": "m.type = ANY (%(kinds)s)",
        "sources": "m.source = ANY (%(sources)s)",
        "since": "m.created_at > %(since)s",
        "until": "m.created_at < %(until)s",
        "path_begins": "starts_with(m.path, %(path_begins)s)",
        "matching": f"{METADATA} @@ %(matching)s::jsonpath",
        "ids": "EXISTS (SELECT FROM unnest(%(ids)s::text[]) x WHERE starts_with(m.id, x))",
    }
    parts += [condition for name, condition in conditions.items() if values[name] is not None]
    for at, word in enumerate(words):
        parts.append(f"strpos(lower(m.content), lower(%(word{at})s)) > 0")
        values[f"word{at}"] = word
    if not all_states:
        parts.append(_ALIVE)
    where, direction = " AND ".join(parts), "" if ascending else " DESC"
    by = _SORTED_BY.get(sort, "m.created_at")
    found = connection.execute(
        f"SELECT count(*) OVER (), {_SELECTED} FROM {name_of(root)}.memories m WHERE {where}"
        f" ORDER BY {by}{direction}, m.id{direction} LIMIT %(limit)s",
        values,
    ).fetchall()
    return [_name(row[1:]) for row in found], found[0][0] if found else 0


def count_namespaces(connection: Any, root: str, wanted: Wanted) -> list[tuple[str, int]]:
    """Return the namespaces within reach that contain living memories, with the number of these."""
    sql = (
        f"SELECT m.namespace, count(*) FROM {name_of(root)}.memories m WHERE {_REACH} AND {_ALIVE}"
        " GROUP BY 1 ORDER BY 1 LIMIT 1000"
    )
    found: list[tuple[str, int]] = connection.execute(sql, wanted._asdict()).fetchall()
    return found


def find(connection: Any, root: str, prefix: str, within: str, lock: bool = False) -> Fields:
    """Return the memory whose id begins with `prefix`, in a namespace or inside it."""
    check_prefix(prefix)
    sql = (
        f"SELECT {_SELECTED} FROM {name_of(root)}.memories m WHERE m.id >= %s AND m.id < %s"
        f" AND starts_with(m.namespace || '/', %s) ORDER BY m.id LIMIT {CANDIDATES}"
    )
    rows = connection.execute(sql, [*id_range(prefix), f"{within}/"]).fetchall()
    id = choose_unique(prefix, [row[0] for row in rows])
    if not lock:
        return _name(rows[0])
    sql = f"SELECT {_SELECTED} FROM {name_of(root)}.memories m WHERE m.id = %s FOR UPDATE"
    locked = connection.execute(sql, [id]).fetchone()
    if locked is None:
        raise NotFound(f"No memory has an id that begins with {prefix}.", {"id": prefix})
    return _name(locked)


def name_operation(connection: Any, operation: str) -> None:
    """Set the operation to which the changes of this transaction belong."""
    connection.execute("SELECT set_config('memoryd.operation', %s, true)", [operation])


def apply_once(connection: Any, root: str, key: str) -> tuple[str, str, str] | None:
    """Record the idempotency key of an add; return the result (memory, outcome, operation) if it was known."""
    sql = f"INSERT INTO {name_of(root)}.applied (key) VALUES (%s) ON CONFLICT DO NOTHING RETURNING 1"
    if connection.execute(sql, [key]).fetchone():
        sql = f"DELETE FROM {name_of(root)}.applied WHERE at < extract(epoch FROM now()) - %s"
        connection.execute(sql, [KEPT_S])
        return None
    sql = f"SELECT memory, outcome, operation FROM {name_of(root)}.applied WHERE key = %s"
    known: tuple[str, str, str] = connection.execute(sql, [key]).fetchone()
    return known


def note_applied(connection: Any, root: str, key: str, became: tuple[str, str, str]) -> None:
    """Record the result of an add with an idempotency key."""
    sql = f"UPDATE {name_of(root)}.applied SET memory = %s, outcome = %s, operation = %s WHERE key = %s"
    connection.execute(sql, [*became, key])


def insert(connection: Any, root: str, fields: Fields) -> str:
    """Insert a memory, or merge it into one with the same text; return the id of the stored one."""
    names = ", ".join(fields)
    sql = (
        f"INSERT INTO {name_of(root)}.memories AS m ({names}) VALUES ({', '.join(f'%({name})s' for name in fields)})"
        " ON CONFLICT (namespace, type, text_hash) WHERE merges AND superseded_by IS NULL DO UPDATE SET"
        " importance = greatest(m.importance, excluded.importance), pinned = m.pinned OR excluded.pinned,"
        " metadata = (m.metadata::jsonb || excluded.metadata::jsonb)::json,"
        " summary = CASE WHEN m.summary = '' THEN excluded.summary ELSE m.summary END, expires_at ="
        " CASE WHEN m.expires_at IS NOT NULL AND NOT excluded.pinned THEN"
        " CASE WHEN excluded.expires_at IS NOT NULL THEN greatest(m.expires_at, excluded.expires_at) END END"
        " RETURNING m.id"
    )
    return str(connection.execute(sql, fields).fetchone()[0])


def change(connection: Any, root: str, id: str, fields: Fields) -> Fields:
    """Set fields of a memory; return its new state."""
    sets = ", ".join(f"{name} = %({name})s" for name in fields)
    sql = f"UPDATE {name_of(root)}.memories m SET {sets} WHERE m.id = %(id)s RETURNING {_SELECTED}"
    return _name(connection.execute(sql, fields | {"id": id}).fetchone())


def list_without_vector(connection: Any, root: str, limit: int) -> list[tuple[str, str]]:
    """Return the id and text of some memories without a vector that no other transaction has locked."""
    sql = (
        f"SELECT m.id, m.content FROM {name_of(root)}.memories m WHERE m.embedding IS NULL ORDER BY m.id LIMIT {limit}"
        " FOR UPDATE SKIP LOCKED"
    )
    found: list[tuple[str, str]] = connection.execute(sql).fetchall()
    return found


def put_vector(connection: Any, root: str, id: str, vector: str) -> None:
    """Set the vector of a memory."""
    connection.execute(f"UPDATE {name_of(root)}.memories SET embedding = %s WHERE id = %s", [vector, id])


def delete(connection: Any, root: str, id: str) -> None:
    """Delete a memory; its history stays."""
    connection.execute(f"DELETE FROM {name_of(root)}.memories WHERE id = %s", [id])


def read_history(connection: Any, root: str, prefix: str, within: str) -> list[Version]:
    """Return the versions of the memory whose id begins with `prefix`, oldest first, even if it was deleted."""
    check_prefix(prefix)
    sql = (
        f"SELECT DISTINCT memory FROM {name_of(root)}.history WHERE memory >= %s AND memory < %s"
        f" AND starts_with(said ->> 'namespace' || '/', %s) ORDER BY memory LIMIT {CANDIDATES}"
    )
    ids = connection.execute(sql, [*id_range(prefix), f"{within}/"]).fetchall()
    return _read_versions(connection, root, "memory = %s", choose_unique(prefix, [id for (id,) in ids]))


def read_operation(connection: Any, root: str, prefix: str, within: str) -> list[Version]:
    """Return the changes of the operation whose id begins with `prefix`."""
    check_prefix(prefix)
    sql = (
        f"SELECT DISTINCT operation FROM {name_of(root)}.history WHERE operation >= %s AND operation < %s"
        f" AND starts_with(said ->> 'namespace' || '/', %s) ORDER BY operation LIMIT {CANDIDATES}"
    )
    ids = connection.execute(sql, [*id_range(prefix), f"{within}/"]).fetchall()
    operation = choose_unique(prefix, [id for (id,) in ids], "operation")
    return _read_versions(connection, root, "operation = %s", operation)


def read_former(connection: Any, root: str, version: Version) -> tuple[Version | None, int]:
    """Return the version of a memory before `version`, and the number of its latest one."""
    sql = f"SELECT max(version) FROM {name_of(root)}.history WHERE memory = %s"
    [latest] = connection.execute(sql, [version.memory]).fetchone()
    former = _read_versions(connection, root, "memory = %s AND version = %s", version.memory, version.version - 1)
    return (former[0] if former and former[0].action != "deleted" else None), latest


def _read_versions(connection: Any, root: str, where: str, *values: Any) -> list[Version]:
    sql = (
        f"SELECT memory, version, at, author, action, operation, said::text FROM {name_of(root)}.history"
        f" WHERE {where} ORDER BY at, version LIMIT 1000"
    )
    return [Version(*row) for row in connection.execute(sql, values).fetchall()]


def describe(connection: Any, root: str) -> dict[str, str]:
    """Return how durable a commit on the server is, and which sessions block others at this moment."""
    # PostgreSQL hides the waits of other users' sessions and the state of standbys, but not locks and counts.
    sql = (
        "SELECT current_setting('synchronous_commit'), pg_is_in_recovery(),"
        " (SELECT string_agg(coalesce(application_name || ' (' || sync_state || ')', 'one that only roles of"
        " pg_read_all_stats see'), ', ') FROM pg_stat_replication),"
        " (SELECT string_agg(DISTINCT a.usename || ' (' || a.pid || ')', ', ') FROM pg_locks l"
        " JOIN pg_stat_activity a USING (pid) WHERE l.relation = %s::regclass AND l.granted"
        " AND l.mode <> 'AccessShareLock' AND a.pid <> pg_backend_pid())"
    )
    commit, is_standby, standbys, holders = connection.execute(sql, [f"{name_of(root)}.memories"]).fetchone()
    said = {"synchronous_commit": commit, "standbys": standbys or "none", "holds a lock": holders or ""}
    return {**said, "read only": "this is a standby" if is_standby else ""}


def _name(row: Sequence[Any]) -> Fields:
    return dict(zip(COLUMNS, row, strict=True))

"""Queries for memories by content, kind and time. A `condition` is SQL on the alias `m`."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import apsw
import msgspec

from memoryd.daemon.store import rows
from memoryd.daemon.store.filters import ALIVE, Filter, alive_values
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import DOCUMENTS, build_searched

_MAX_CHARS = 65_536  # of a memory in a context: more than any budget has room for
_SORTED_BY = {
    "created": "m.created_at",
    "updated": "m.updated_at",
    "accessed": "m.last_accessed_at",
    "count": "m.access_count",
    "importance": "m.importance",
}
# The hash, which is nearly unique, comes first; the plus keeps the planner from scanning the whole namespace.
_EQUAL = (
    "m.content_hash = ? AND m.namespace = ? AND +m.type = coalesce(?, m.type)"
    f" AND +m.tier <> {DOCUMENTS!r} AND m.key IS NULL AND {ALIVE}"
)
_LATEST_OF_SESSION = (
    f"m.namespace = ? AND m.type = ? AND m.source = ? AND m.metadata ->> '$.session' = ? AND {ALIVE}"
    " ORDER BY m.created_at DESC, m.row DESC LIMIT 1"
)


# Sources of memories derived from conversations; a memory with another source that is no turn was saved on purpose.
EXTRACTION = "extraction"  # the source of facts that are extracted from a conversation
CLAUDE_CODE, CODEX = OF_HOSTS = "claude-code", "codex"  # sources of the notes that these agents keep in their own files
SUMMARY = "session_summary"  # of notes on sessions
_STORES = ("langgraph", "langgraph part", "openai-agents")  # sources of data that adapters store for users' programs
DRAWN = (EXTRACTION, SUMMARY, "task_completion")


class Order(NamedTuple):
    """The order of a list, and the page to return."""

    sort: Literal["created", "updated", "accessed", "count", "importance"]
    ascending: bool
    limit: int
    offset: int


def find_page(connection: apsw.Connection, where: tuple[str, tuple[Any, ...]], order: Order) -> tuple[list[Row], int]:
    """Return one page of the memories that meet a condition, and the number of all such memories."""
    condition, values = where
    direction = "ASC" if order.ascending else "DESC"
    by = f"ORDER BY {_SORTED_BY[order.sort]} {direction}, m.row {direction} LIMIT ? OFFSET ?"
    total = count(connection, condition, values)
    return rows.select(connection, f"{condition} {by}", (*values, order.limit, order.offset)), total


def find_equal(
    connection: apsw.Connection, namespace: int, key: bytes, now: float, type: str | None = None, limit: int = -1
) -> list[Row]:
    """Return the living memories of a namespace with a content hash, of one type or any, without parts of files."""
    equal = f"{_EQUAL} AND {build_searched()} LIMIT ?"
    return rows.select(connection, equal, (key, namespace, type, *alive_values(now), limit))


def find_alive(connection: apsw.Connection, ids: Sequence[str], condition: str, now: float) -> list[Row]:
    """Return the living memories with these ids that meet a condition, oldest first."""
    where = f"m.id IN (SELECT value FROM json_each(?)) AND {rows.near_id(condition)} AND {ALIVE} ORDER BY m.row"
    return rows.select(connection, where, (msgspec.json.encode(ids).decode(), *alive_values(now)))


def find_deletable(
    connection: apsw.Connection, condition: str, values: Sequence[Any]
) -> tuple[list[tuple[str, int]], int]:
    """Return (id, namespace) of the memories that meet a condition, oldest first, and the number of parts of files."""
    sql = f"SELECT m.id, m.namespace FROM memories m WHERE {condition} AND m.tier <> {DOCUMENTS!r} ORDER BY m.row"
    return list(connection.execute(sql, values)), count(connection, f"{condition} AND m.tier = {DOCUMENTS!r}", values)


def find_by_id(connection: apsw.Connection, ids: Sequence[str], condition: str, values: Sequence[Any]) -> list[Row]:
    """Return the memories with these ids that meet a condition, without parts of files."""
    where = f"m.id IN (SELECT value FROM json_each(?)) AND {rows.near_id(condition)} AND m.tier <> {DOCUMENTS!r}"
    return rows.select(connection, where, (msgspec.json.encode(ids).decode(), *values))


def find_answers(connection: apsw.Connection, questions: Sequence[str], condition: str, now: float) -> list[Row]:
    """Return the living turns that answer some questions and meet a condition, oldest first."""
    answers = (
        "SELECT x.row FROM json_each(?) v CROSS JOIN memories x ON json_extract(x.metadata, '$.answers') = v.value"
    )
    where = f"m.row IN ({answers} AND x.turns = 1) AND {rows.near_id(condition)} AND {ALIVE} ORDER BY m.row"
    return rows.select(connection, where, (msgspec.json.encode(questions).decode(), *alive_values(now)))


def find_latest_of_session(
    connection: apsw.Connection, conversation: tuple[int, str], of: tuple[str, str], now: float
) -> Row | None:
    """Return the latest living memory of a namespace and session `of` a type and a source."""
    (namespace, session), (type, source) = conversation, of
    values = (namespace, type, source, session, *alive_values(now))
    return next(iter(rows.select(connection, _LATEST_OF_SESSION, values)), None)


def find_standing(connection: apsw.Connection, selection: Filter, now: float, type: str, limit: int) -> list[Row]:
    """Return the latest living memories that are pinned or of a type."""
    where, values = selection.full_condition(now)
    # The literal type lets the index of standing memories be used.
    standing = f"{build_searched()} AND (m.pinned OR m.type = {type!r})"
    latest = f"{where} AND {standing} ORDER BY m.created_at DESC, m.id LIMIT ?"
    return rows.select_beginnings(connection, latest, (*values, limit), _MAX_CHARS)


def find_saved(
    connection: apsw.Connection, selection: Filter, now: float, types: Sequence[str], asker: str, limit: int
) -> list[Row]:
    """Return the latest living memories that are pinned or confirmed, or were saved on purpose.

    Of files, only the notes that agents keep themselves are included, if they have one of the `types`; the notes of the
    `asker` are not, since it has read them.
    """
    where, values = selection.full_condition(now)
    hosts = ", ".join(repr(host) for host in OF_HOSTS if host != asker)
    noted = f"m.source IN ({hosts}) AND (m.pinned OR m.type IN ({', '.join('?' * len(types))}))"
    stores = ", ".join(map(repr, _STORES))
    saved = f"m.origin IN ('person', 'agent') AND m.source NOT IN ({stores})"
    told = f"iif(m.tier = {DOCUMENTS!r}, {noted}, m.pinned OR m.confirmed_at IS NOT NULL OR ({saved}))"
    latest = f"{where} AND {build_searched()} AND {told}"
    latest = f"{latest} ORDER BY m.pinned DESC, m.created_at DESC, m.id LIMIT ?"
    return rows.select_beginnings(connection, latest, (*values, *types, limit), _MAX_CHARS)


def hold_back(selection: Filter, namespace: int, type: str) -> Filter:
    """Return a filter that excludes from one namespace all but the person's memories that are pinned or of a type."""
    persons = "(m.origin = 'person' OR m.confirmed_at IS NOT NULL)"
    held_back = f"NOT (m.namespace = {namespace} AND NOT ({persons} AND (m.pinned OR m.type = {type!r})))"
    return selection._replace(condition=" AND ".join(filter(None, [selection.condition, held_back])))


def find_latest(
    connection: apsw.Connection, selection: Filter, now: float, limit: int, until: float = math.inf
) -> list[int]:
    """Return the row numbers of the latest living memories that were saved on purpose, up to a time."""
    where, values = selection.full_condition(now)
    saved = f"m.turns = 0 AND m.source NOT IN ({', '.join(map(repr, DRAWN))}) AND m.tier <> {DOCUMENTS!r}"
    sql = f"SELECT m.row FROM memories m WHERE {where} AND {build_searched()} AND {saved} AND m.created_at <= ?"
    latest = f"{sql} ORDER BY m.created_at DESC, m.row DESC LIMIT ?"
    return [int(row) for (row,) in connection.execute(latest, (*values, until, limit))]


def find_sizes(connection: apsw.Connection, selection: Filter, after_id: str, limit: int) -> Iterator[tuple[str, int]]:
    """Yield (id, bytes of text) of the memories that match a filter, including expired ones, without parts of files."""
    where, values = selection.full_condition(0.0, all_states=True)
    sizes: Any = connection.execute(
        "SELECT m.id, octet_length(m.content) + octet_length(m.summary) + octet_length(m.metadata) FROM memories m"
        f" WHERE m.id > ? AND {rows.near_id(where)} AND m.tier <> {DOCUMENTS!r} ORDER BY m.id LIMIT ?",
        (after_id, *values, limit),
    )
    return iter(sizes)


def count_exported(connection: apsw.Connection, selection: Filter) -> tuple[int, int]:
    """Return how many memories and how many parts of files match a filter, including expired ones."""
    where, values = selection.full_condition(0.0, all_states=True)
    chunks = count(connection, f"{where} AND m.tier = {DOCUMENTS!r}", values)
    return count(connection, f"{where} AND m.tier <> {DOCUMENTS!r}", values), chunks


def count_by_namespace(connection: apsw.Connection, selection: Filter, now: float) -> list[tuple[int, int]]:
    """Return (namespace, number of memories) for the memories that match a filter."""
    where, values = selection.full_condition(now)
    sql = f"SELECT m.namespace, count(*) FROM memories m WHERE {where} GROUP BY m.namespace"
    return list(connection.execute(sql, values))


def read_sample(connection: apsw.Connection, most: int, characters: int) -> list[str]:
    """Return the first `characters` of at most `most` texts, spread evenly over all rows."""
    first, last = connection.execute("SELECT min(row), max(row) FROM memories").get
    if first is None:
        return []
    step = -(-(last - first + 1) // most)
    sql = "SELECT substr(content, 1, ?) FROM memories WHERE row >= ? AND row < ? LIMIT 1"
    texts = (connection.execute(sql, (characters, row, row + step)).get for row in range(first, last + 1, step))
    return [text for text in texts if text is not None]


def count(connection: apsw.Connection, condition: str = "TRUE", values: Sequence[Any] = ()) -> int:
    """Return how many memories meet a condition."""
    return int(connection.execute(f"SELECT count(*) FROM memories m WHERE {condition}", values).get)


def count_without_vector(connection: apsw.Connection, condition: str, model: int, values: Sequence[Any] = ()) -> int:
    """Return how many memories that meet a condition have no vector of a model."""
    vector = "SELECT 1 FROM vec_embeddings e WHERE e.model = ? AND e.text_hash = m.text_hash"
    return count(connection, f"{condition} AND NOT EXISTS ({vector})", (*values, model))

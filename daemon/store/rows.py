"""Rows of the table `memories`: read, insert, change, delete. Every function takes the connection to work on."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import starmap
from typing import Any, NamedTuple

import apsw
import msgspec

from memoryd.client.errors import AmbiguousId, Invalid, NotFound
from memoryd.client.protocol import MAX_METADATA_BYTES, MAX_VALUE_BYTES, MemoryOrigin
from memoryd.client.transport.batches import split_evenly
from memoryd.daemon.store import contexts
from memoryd.daemon.store.tiers import DOCUMENTS

# A question and its answer as one memory: the beginning of its content, and the text between the two.
ASKED, ANSWERED = "User: ", "\nAssistant: "
# The embedded text of a memory `m`, the same as that of `build_embedded_text`.
EMBEDDED = (
    f"CASE WHEN m.tier = {DOCUMENTS!r} THEN coalesce(m.metadata ->> '$.heading' || char(10), '') || m.content"
    " WHEN m.turns > 1 AND substr(m.content, 1, 6) = 'User: ' AND instr(m.content, char(10) || 'Assistant: ') > 7"
    " THEN substr(m.content, 7, instr(m.content, char(10) || 'Assistant: ') - 7)"
    " ELSE m.content END"
)
CANDIDATES = 6  # ids listed for an ambiguous prefix
_IN_LIMIT = 500  # values per IN list
_HEX = frozenset("0123456789abcdef")


class Row(msgspec.Struct, gc=False):
    """One memory as stored; `row` is 0 until it is inserted. Field order = column order of every SELECT here."""

    row: int
    id: str
    namespace: int
    type: str
    source: str
    tier: str
    importance: float
    created_at: float
    updated_at: float
    content_hash: bytes
    text_hash: bytes
    content: str
    last_accessed_at: float | None = None
    access_count: int = 0
    expires_at: float | None = None
    pinned: int = 0
    superseded_by: str | None = None
    path: str | None = None
    start_line: int | None = None
    end_line: int | None = None
    turns: int = 0
    feedback: str = ""
    summary: str = ""
    metadata: str = "{}"
    neighbours: str = ""
    key: str | None = None
    searchable: int = 1
    ttl_s: float | None = None
    origin: MemoryOrigin = "import"
    confirmed_at: float | None = None

    @property
    def is_persons(self) -> bool:
        """Whether the user stated it explicitly, or confirmed it."""
        return self.origin == "person" or self.confirmed_at is not None


def compute_expiry(days: Mapping[str, float], source: str, created_at: float) -> float | None:
    """Return when a memory from a source expires, by the lifetimes in `days`, None for never."""
    return created_at + days[source] * 86400.0 if source in days else None


COLUMNS: tuple[str, ...] = Row.__struct_fields__
_SELECT = "SELECT " + ", ".join(f"m.{column}" for column in COLUMNS) + " FROM memories m"


def select(connection: apsw.Connection, where: str, values: Sequence[Any]) -> list[Row]:
    """Return the rows for a condition (and ORDER BY, LIMIT) on the alias `m`."""
    return list(iterate(connection, where, values))


def iterate(connection: apsw.Connection, where: str, values: Sequence[Any]) -> Iterator[Row]:
    """Return the rows for a condition as `select` does, read one at a time."""
    return starmap(Row, connection.execute(f"{_SELECT} WHERE {where}", values))


def select_beginnings(connection: apsw.Connection, where: str, values: Sequence[Any], chars: int) -> list[Row]:
    """Return the rows for a condition as `select` does, with the first `chars` characters of each content."""
    cut = _SELECT.replace("m.content,", f"substr(m.content, 1, {int(chars)}),", 1)
    return list(starmap(Row, connection.execute(f"{cut} WHERE {where}", values)))


def build_embedded_text(content: str, heading: str = "", turns: int = 0) -> str:
    """Return the text of a memory that is embedded: the part of a file with its headings, the question of an exchange.

    A long answer would dominate the vector; it is found by its words. `EMBEDDED` is the same in SQL.
    """
    if turns > 1 and content.startswith(ASKED) and content.find(ANSWERED) > len(ASKED):
        return content[len(ASKED) : content.index(ANSWERED)]
    return f"{heading}\n{content}" if heading else content


def read_rows(connection: apsw.Connection, numbers: Sequence[int]) -> dict[int, Row]:
    """Return the existing rows with these numbers."""
    return {row.row: row for row in _select_among(connection, "row", numbers)}


class Beginning(NamedTuple):
    """The beginning of a memory's content, with its speaker and time."""

    row: int
    created_at: float
    metadata: str
    content: str


def read_beginnings(connection: apsw.Connection, numbers: Sequence[int], chars: int) -> dict[int, Beginning]:
    """Return the first `chars` characters of the existing rows with these numbers, at most 500 rows."""
    marks = ", ".join("?" * len(numbers))
    sql = f"SELECT row, created_at, metadata, substr(content, 1, {int(chars)}) FROM memories WHERE row IN ({marks})"
    return {values[0]: Beginning(*values) for values in connection.execute(sql, numbers)}


def read_ids(connection: apsw.Connection, ids: Sequence[str]) -> dict[str, Row]:
    """Return the existing rows with these full ids."""
    return {row.id: row for row in _select_among(connection, "id", ids)}


def fit_reply(records: Sequence[Row]) -> list[Row]:
    """Return the first rows whose large values fit into one reply, at least one."""
    room, fitting = MAX_VALUE_BYTES, list[Row]()
    for row in records:
        size = len(row.metadata.encode())
        room -= size if size > MAX_METADATA_BYTES else 0  # others are shortened in the reply
        if room < 0 and fitting:
            break
        fitting.append(row)
    return fitting


def read_key(connection: apsw.Connection, namespace: int, key: str) -> Row | None:
    """Return the memory of a namespace with a key, even if expired or superseded."""
    return next(iter(select(connection, "m.namespace = ? AND m.key = ?", (namespace, key))), None)


def read_keys(connection: apsw.Connection, namespace: int, beginning: str) -> list[Row]:
    """Return the memories of a namespace whose key begins with a text, including expired and superseded ones."""
    where = "m.namespace = ? AND m.key >= ? AND m.key < ? AND substr(m.key, 1, ?) = ?"
    last = beginning + "\U0010ffff" * 2  # a range, so that the index is used
    return select(connection, where, (namespace, beginning, last, len(beginning), beginning))


def _select_among(connection: apsw.Connection, column: str, values: Sequence[Any]) -> Iterator[Row]:
    for part in split_evenly(values, _IN_LIMIT):
        yield from select(connection, f"m.{column} IN ({', '.join('?' * len(part))})", part)


def resolve(connection: apsw.Connection, prefix: str, namespaces: str) -> Row:
    """Return the one row whose id begins with `prefix` among `namespaces` (an SQL condition on `m`).

    Raise `Invalid` for an impossible id, `NotFound`, or `AmbiguousId` with the candidates.
    """
    check_prefix(prefix)
    where = f"m.id >= ? AND m.id < ? AND {near_id(namespaces)} ORDER BY m.id LIMIT {CANDIDATES}"
    matches = select(connection, where, id_range(prefix))
    is_turn = f"SELECT 1 FROM turns m WHERE m.key >= ? AND m.key < ? AND {near_id(namespaces)}"
    if not matches and connection.execute(is_turn, id_range(prefix)).get:
        said = f"{prefix} is a turn, no memory yet; to correct it, delete it and add what is right as a correction."
        raise NotFound(said, {"id": prefix})
    choose_unique(prefix, [row.id for row in matches])
    return matches[0]


def near_id(namespaces: str) -> str:
    """Return a condition on namespaces for a lookup by id; the plus keeps SQLite from walking through them."""
    return namespaces.replace("m.namespace", "+m.namespace")


def choose_unique(prefix: str, candidates: list[str], what: str = "memory") -> str:
    """Return the only one of the ids that begin with a prefix; raise `NotFound` or `AmbiguousId`."""
    if not candidates:
        raise NotFound(f"No {what} has an id that begins with {prefix}.", {"id": prefix})
    if len(candidates) > 1:
        names = ", ".join(candidate[: max(8, len(prefix) + 4)] for candidate in candidates[: CANDIDATES - 1])
        more = " and more" if len(candidates) == CANDIDATES else ""
        raise AmbiguousId(f"{prefix} is not unique: {names}{more}.", {"candidates": candidates})
    return candidates[0]


def check_prefix(prefix: str) -> None:
    """Raise `Invalid` unless `prefix` is 4 to 32 lower-case hex digits."""
    if not 4 <= len(prefix) <= 32 or not _HEX.issuperset(prefix):
        raise Invalid(f"{prefix!r} is not an id, which has 4 to 32 of the digits 0-9 and a-f.")


def id_range(prefix: str) -> tuple[str, str]:
    """Return the bounds (from, below) of the ids that begin with a hex prefix."""
    return prefix, prefix + "g"  # 'g' sorts after every hex digit


def insert(connection: apsw.Connection, row: Row) -> int:
    """Insert a row and return its number; a row with a number (from an undo) keeps it.

    A row with neighbours is also embedded within their context.
    """
    number = insert_struct(connection, "memories", row)
    if row.neighbours:
        contexts.put(connection, [(number, contexts.join_neighbours(row.content, row.neighbours))])
    return number


def insert_struct(connection: apsw.Connection, table: str, struct: msgspec.Struct) -> int:
    """Insert a Struct with the columns of a table as fields; return the first field, which gets a number if it is 0."""
    names, values = struct.__struct_fields__, msgspec.structs.astuple(struct)
    first = 0 if values[0] else 1
    columns, marks = ", ".join(names[first:]), ", ".join("?" * len(names[first:]))
    sql = f"INSERT INTO {table} ({columns}) VALUES ({marks}) RETURNING {names[0]}"
    return int(connection.execute(sql, values[first:]).get)


def find_last_number(connection: apsw.Connection) -> int:
    """Return the highest row number, 0 without rows."""
    return int(connection.execute("SELECT coalesce(max(row), 0) FROM memories").get)


def change(connection: apsw.Connection, number: int, fields: dict[str, Any]) -> None:
    """Set columns of a row."""
    change_many(connection, list(fields), [(*fields.values(), number)])


def change_many(connection: apsw.Connection, names: Sequence[str], values: Iterable[Sequence[Any]]) -> None:
    """Set the same columns of rows; each of `values` ends with the row number.

    A memory whose text changes loses its context.
    """
    assignments, parameters = ", ".join(f"{name} = ?" for name in names), list(values)
    connection.executemany(f"UPDATE memories SET {assignments} WHERE row = ?", parameters)
    if "text_hash" in names:
        contexts.add_missing_of(connection, [one[-1] for one in parameters])


def rate_promoted(connection: apsw.Connection, id: str, importance: float) -> None:
    """Set the importance of a memory that is a turn."""
    connection.execute("UPDATE memories SET importance = ? WHERE id = ? AND turns = 1", (importance, id))


def put_summaries(connection: apsw.Connection, summaries: Iterable[tuple[Row, str]]) -> None:
    """Set the summaries of memories, unless their text has changed or they have one."""
    sql = "UPDATE memories SET summary = ? WHERE row = ? AND text_hash = ? AND summary = ''"
    connection.executemany(sql, [(summary, row.row, row.text_hash) for row, summary in summaries])


def read_embedded_texts(connection: apsw.Connection, numbers: Sequence[int]) -> list[tuple[int, bytes, str]]:
    """Return (row, hash, embedded text) of memories."""
    joined = ", ".join(map(str, numbers))
    return list(connection.execute(f"SELECT m.row, m.text_hash, {EMBEDDED} FROM memories m WHERE m.row IN ({joined})"))


def read_without_vector(connection: apsw.Connection, model: int, among: list[int] | None) -> list[tuple[int, str]]:
    """Return row and id of the memories whose text has no vector of a model, of some or of all (None)."""
    # The index by text covers the columns of this query.
    table, values = "memories m INDEXED BY memories_text", list[Any]([model])
    if among is not None:
        table = "json_each(?) v CROSS JOIN memories m ON m.row = v.value"
        values = [msgspec.json.encode(among).decode(), model]
    sql = (
        f"SELECT m.row, m.id FROM {table}"
        " WHERE NOT EXISTS (SELECT 1 FROM vec_embeddings e WHERE e.model = ? AND e.text_hash = m.text_hash)"
    )
    return list(connection.execute(sql, values))


def is_true(connection: apsw.Connection, number: int, condition: str, values: Sequence[Any] = ()) -> bool:
    """Return whether a memory satisfies a condition on the alias `m`."""
    sql = f"SELECT 1 FROM memories m WHERE m.row = ? AND {condition}"
    return connection.execute(sql, (number, *values)).fetchone() is not None


def count_accesses(connection: apsw.Connection, accesses: Iterable[tuple[int, int, float]]) -> None:
    """Count accesses, given as (row, number, time of the last one)."""
    connection.executemany(
        "UPDATE memories SET access_count = access_count + ?2,"
        " last_accessed_at = max(coalesce(last_accessed_at, 0), ?3) WHERE row = ?1",
        accesses,
    )


def renew(connection: apsw.Connection, ids: Sequence[str], now: float) -> None:
    """Restart the time to live of memories that have not expired."""
    connection.execute(
        "UPDATE memories SET expires_at = ?2 + ttl_s WHERE id IN (SELECT value FROM json_each(?1))"
        " AND ttl_s IS NOT NULL AND expires_at > ?2",
        (msgspec.json.encode(ids).decode(), now),
    )


def delete(connection: apsw.Connection, numbers: Iterable[int]) -> None:
    """Delete rows; their links and full-text entries go with them."""
    connection.executemany("DELETE FROM memories WHERE row = ?", ((number,) for number in numbers))


def replace(connection: apsw.Connection, present: Sequence[Row], former: Sequence[Row]) -> None:
    """Put the `former` rows in place of the `present` ones.

    A row in both is changed where it differs: a full-text entry is not rebuilt because its memory changed its tier.
    """
    by_number = {row.row: row for row in present}
    back = {row.row for row in former if row.row in by_number and by_number[row.row].id == row.id}
    delete(connection, by_number.keys() - back)
    changes: dict[tuple[str, ...], list[tuple[Any, ...]]] = {}
    for row in former:
        if row.row not in back:
            insert(connection, row)
            continue
        now = by_number[row.row]
        different = tuple(name for name in COLUMNS if getattr(row, name) != getattr(now, name))
        changes.setdefault(different, []).append((*(getattr(row, name) for name in different), row.row))
    for names, values in changes.items():
        if names:
            change_many(connection, names, values)

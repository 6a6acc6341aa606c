"""Erase memories and turns from one database: their rows, former versions and everything derived from them.

The functions run in the writer's transaction, or in one on a copy of the database. Freed space is overwritten with
zeros; erased words leave the full-text index once `merge` is done. `find_derived` returns the memories that must be
erased together with others.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import apsw
import msgspec

from memoryd.client.transport.batches import split_evenly
from memoryd.daemon.erasing.tables import neighbours, trimming
from memoryd.daemon.rooms import list_rooms
from memoryd.daemon.store import erasures, fulltext, history, rows, turns
from memoryd.daemon.store.history import Image
from memoryd.daemon.store.queries import SUMMARY
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.turns import KEPT_CHARS, StoredTurn

_MERGED_PAGES = 100  # per transaction, since other writes wait for it


class ErasedRows(NamedTuple):
    """The rows that were erased, the namespaces whose L0 changed, and the rows whose neighbour texts changed."""

    rows: list[int]
    rings: set[int]
    changed: list[int]


class Past(NamedTuple):
    """A former state of a memory or turn."""

    id: str
    image: Image

    @property
    def held(self) -> Row | StoredTurn | None:
        """The memory or turn as it was."""
        return self.image.row or self.image.turn

    @property
    def namespace(self) -> int:
        """Its namespace."""
        return self.held.namespace if self.held else 0

    @property
    def created_at(self) -> float:
        """Its time."""
        return self.held.created_at if self.held else 0.0

    @property
    def texts(self) -> list[str]:
        """Its texts."""
        return [] if self.held is None else [self.held.content, getattr(self.held, "summary", "")]

    @property
    def session(self) -> tuple[int, str, float] | None:
        """The namespace, session and time of a turn, None for other memories."""
        return _session_of(self.held)


def find_past(connection: apsw.Connection, ids: Iterable[str] | None = None) -> Iterator[Past]:
    """Yield the former states of the given memories and turns, or (None) of all: in the history, and as sent."""
    given, values = "TRUE", list(ids or ())
    if ids is not None:
        given = f"memory IN ({', '.join('?' * len(values))})"
    sql = (
        f"SELECT memory, before FROM history WHERE before IS NOT NULL AND {given}"
        f" UNION ALL SELECT memory, said FROM sent WHERE {given}"
    )
    for memory, before in connection.execute(sql, [*values, *values]):
        yield Past(str(memory), history.decode_image(str(before)))


def find_derived(connection: apsw.Connection, ids: Iterable[str]) -> list[str]:
    """Return the facts, session summaries and copies derived from memories and turns, deleted ones included."""
    every, previous = set(ids), set[str]()
    sessions: dict[tuple[int, str], float] = {}
    while every != previous:
        new, previous = every - previous, set(every)
        for place, session, at in _find_sessions(connection, new):
            sessions[place, session] = min(at, sessions.get((place, session), at))
        json = msgspec.json.encode(sorted(new)).decode()
        for sql in (_FACTS, _COPIES):
            every |= _read_ids(connection, sql, (json,))
        for one in find_past(connection):
            if one.image.row and _is_made_of(one.image.row, previous, sessions):
                every.add(one.id)
            every |= {copy for copy, of, kind, _ in one.image.links if kind == "shared_from" and of in previous}
        for (place, session), at in sessions.items():
            every |= _read_ids(connection, _SUMMARIES, (place, SUMMARY, session, at))
    return sorted(previous - set(ids))


_SUMMARIES = (
    "SELECT id FROM memories WHERE namespace = ? AND source = ? AND metadata ->> '$.session' = ? AND created_at >= ?"
)
_FACTS = (
    "SELECT m.id FROM memories m, json_each(m.metadata, '$.turns') t"
    " WHERE json_type(m.metadata, '$.turns') = 'array' AND t.value IN (SELECT value FROM json_each(?))"
)
_COPIES = "SELECT origin FROM links WHERE kind = 'shared_from' AND target IN (SELECT value FROM json_each(?))"


def _read_ids(connection: apsw.Connection, sql: str, values: tuple[Any, ...]) -> set[str]:
    return {str(id) for (id,) in connection.execute(sql, values)}


def _find_sessions(connection: apsw.Connection, ids: set[str]) -> Iterator[tuple[int, str, float]]:
    present: list[Row | StoredTurn] = list(rows.read_ids(connection, sorted(ids)).values())
    present += turns.read_keys(connection, sorted(ids)).values()
    sessions = [_session_of(record) for record in present] + [
        one.session for one in find_past(connection) if one.id in ids
    ]
    yield from (session for session in sessions if session)


def _session_of(record: Row | StoredTurn | None) -> tuple[int, str, float] | None:
    """Return the namespace, session and time of a turn; None for a memory that is not a turn."""
    if isinstance(record, StoredTurn):
        return record.namespace, record.session, record.created_at
    if record is None or not record.turns:
        return None
    session = msgspec.json.decode(record.metadata).get("session")
    return (record.namespace, session, record.created_at) if isinstance(session, str) else None


def _is_made_of(row: Row, ids: set[str], sessions: dict[tuple[int, str], float]) -> bool:
    metadata = msgspec.json.decode(row.metadata)
    sources = metadata.get("turns")
    if isinstance(sources, list) and not ids.isdisjoint(sources):
        return True
    session = metadata.get("session")
    at = sessions.get((row.namespace, session)) if isinstance(session, str) and row.source == SUMMARY else None
    return at is not None and row.created_at >= at


# Erasing -------------------------------------------------------------------------------------------------------------


def erase(connection: apsw.Connection, ids: Sequence[str], now: float) -> tuple[str, ErasedRows]:
    """Erase memories and turns, also those only in the history; return the operation and what was erased."""
    connection.pragma("secure_delete", True)
    every = set(ids)
    by_id, active = rows.read_ids(connection, ids), turns.read_keys(connection, ids)
    texts = _gather(connection, every, by_id.values(), active.values())
    skipped = _find_skipped(connection, every, texts)
    records: list[Row | StoredTurn] = [*by_id.values(), *active.values()]
    sessions = [_session_of(one) for one in records]
    sessions += [one.session for one in find_past(connection, every)]
    erasures.note_sessions(connection, [*(name for _, name, _ in filter(None, sessions)), *skipped.values()])
    operation = history.begin(connection, history.ERASE, "", now)
    _record(connection, operation, ids, records)
    marks = ", ".join("?" * len(every))
    others = f"DELETE FROM history WHERE memory IN ({marks}) AND operation <> {history.NUMBER}"
    connection.execute(others, (*every, operation))
    for room in list_rooms():
        room.erase(connection, ids, [row.row for row in by_id.values()])
    rows.delete(connection, [row.row for row in by_id.values()])
    turns.remove(connection, active.values())
    for turn in active.values():
        turns.count(connection, turn.namespace, f"gone: {history.ERASE}")
    for table, column in (("extraction", "turn"), ("later", "memory"), ("later", "later")):
        connection.execute(f"DELETE FROM {table} WHERE {column} IN ({marks})", tuple(every))
    changed = neighbours.cut(connection, neighbours.build_remover(texts))
    connection.executemany("DELETE FROM skipped WHERE id = ?", ((number,) for number in skipped))
    rings = {turn.namespace for turn in active.values()}
    return operation, ErasedRows([row.row for row in by_id.values()], rings | changed.rings, changed.rows)


def _gather(
    connection: apsw.Connection, every: set[str], records: Iterable[Row], active: Iterable[StoredTurn]
) -> list[str]:
    """Return the present and former texts of memories and turns."""
    texts = {text for one in find_past(connection, every) for text in one.texts} | {turn.content for turn in active}
    texts |= {text for row in records for text in (row.content, row.summary)}
    return sorted(texts - {""})


def read_texts(connection: apsw.Connection, ids: Iterable[str]) -> list[str]:
    """Return the present and former texts of memories and turns."""
    return [text for part in split_evenly(list(ids), _PART) for text in _gather_by_id(connection, part)]


def _gather_by_id(connection: apsw.Connection, ids: Sequence[str]) -> list[str]:
    by_id, active = rows.read_ids(connection, ids), turns.read_keys(connection, ids)
    return _gather(connection, set(ids), by_id.values(), active.values())


def find_skipped(connection: apsw.Connection, ids: Iterable[str]) -> set[int]:
    """Return the numbers of skipped turns that have the text of one of the memories, or were skipped as its repeat."""
    numbers = set[int]()
    for part in split_evenly(list(ids), _PART) if connection.execute("SELECT 1 FROM skipped").get else ():
        numbers |= _find_skipped(connection, set(part), _gather_by_id(connection, part)).keys()
    return numbers


def _find_skipped(connection: apsw.Connection, ids: set[str], texts: Iterable[str]) -> dict[int, str]:
    """Return by number the sessions of skipped turns that repeat memories with the given ids and texts."""
    kept, origins = {text[:KEPT_CHARS] for text in texts}, {f"({id[:8]})" for id in ids}
    found: Any = connection.execute("SELECT id, session, content, reason FROM skipped")
    return {
        number: session
        for number, session, content, reason in found
        if content in kept or reason.rpartition(" ")[2] in origins  # `observing` appends the id of the repeated memory
    }


class ErasureRecord(NamedTuple):
    """The digests of the sessions and the ids of everything that was erased from a database."""

    sessions: list[str]
    ids: list[str]


def read_record(connection: apsw.Connection) -> ErasureRecord:
    """Return the record of everything that was erased from a database and not added again."""
    return ErasureRecord(erasures.read_noted(connection), erasures.find_all_erased(connection))


def carry_over(connection: apsw.Connection, record: ErasureRecord, now: float) -> list[str]:
    """Merge a record into another database, and erase there the content that the record names; return its ids.

    Neighbour texts of turns in the record's sessions are cleared too.
    """
    connection.pragma("secure_delete", True)
    erasures.note_digests(connection, record.sessions)
    present = {*rows.read_ids(connection, record.ids), *turns.read_keys(connection, record.ids)}
    present |= {str(id) for (id,) in connection.execute(_DELETED)}.intersection(record.ids)
    every = [*sorted(present), *find_derived(connection, present)] if present else []
    for part in split_evenly(every, _PART):
        erase(connection, part, now)
    if sessions := set(record.sessions):  # neighbours may hold texts of turns that no longer exist
        neighbours.cut(connection, lambda one: "" if erasures.digest(one.session) in sessions else one.text)
    known = set(erasures.find_all_erased(connection))
    if new := [id for id in record.ids if id not in known]:
        operation = history.begin(connection, history.ERASE, "", now)
        for id in new:
            history.record(connection, operation, id, "", None)
    return every


_DELETED = "SELECT memory FROM history WHERE before IS NOT NULL"
_PART = 500  # memories per statement


def erase_from_file(connection: apsw.Connection) -> None:
    """Remove erased content from full text, vectors and free pages of a database that is not in use."""
    trimming.forget_all_unused(connection)
    is_first = True
    while merge(connection, is_first):
        is_first = False
    connection.execute("VACUUM")


def _record(
    connection: apsw.Connection, operation: str, ids: Iterable[str], records: Iterable[Row | StoredTurn]
) -> None:
    """Record in the log that memories or turns were erased, without their content."""
    places = {one.id if isinstance(one, Row) else one.key: one.namespace for one in records}
    for id in ids:
        name: Any = connection.execute("SELECT name FROM namespaces WHERE id = ?", (places.get(id),)).get
        last: Any = connection.execute(
            "SELECT namespace FROM history WHERE memory = ? ORDER BY id DESC LIMIT 1", (id,)
        ).get
        if name is not None or last is not None:  # otherwise it was erased before
            history.record(connection, operation, id, str(last if name is None else name), None)


# Cleaning the file ---------------------------------------------------------------------------------------------------


def merge(connection: apsw.Connection, is_first: bool) -> bool:
    """Merge full-text segments one step further, which drops erased words; return whether there is more to do."""
    connection.pragma("secure_delete", True)
    return fulltext.merge_all(connection, _MERGED_PAGES, is_first)


def rewrite_file(connection: apsw.Connection) -> None:
    """Vacuum the file from within a transaction of the writer, which is ended and begun again."""
    connection.execute("COMMIT")
    try:
        connection.execute("VACUUM")
    finally:
        connection.execute("BEGIN IMMEDIATE")

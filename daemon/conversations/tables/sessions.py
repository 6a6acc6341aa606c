"""Queries on sessions: the turns, summaries and task results that name a session in their metadata."""

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import apsw

from memoryd.daemon.store import rows
from memoryd.daemon.store.filters import ALIVE, alive_values
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.successors import SUPERSEDED, UNEXPIRED

WINDOW_S = 7 * 86_400.0  # turns of the same conversation are looked for within this distance
_MOST_ENTRIES = 20_000
_BEGINNING = 1_000  # characters of an entry
# Uses the index on time: the plus keeps the planner off the one on namespaces. Superseded turns are still listed.
_ENTRIES = (
    "SELECT m.namespace, m.metadata ->> '$.session', m.created_at, m.turns, m.id, m.source, m.metadata,"
    f" substr(m.content, 1, {_BEGINNING}) FROM memories m WHERE m.created_at >= ? AND m.created_at < ?"
    " AND m.metadata ->> '$.session' IS NOT NULL"
    " AND (?3 IS NULL OR substr(m.metadata ->> '$.session', 1, length(?3)) = ?3)"
    f" AND (m.turns > 0 OR m.source IN (?4, ?5) AND NOT {SUPERSEDED}) AND {UNEXPIRED.format(m='m')} AND {{reached}}"
    f" ORDER BY m.created_at DESC, m.row DESC LIMIT {_MOST_ENTRIES}"
)
_NEAR = (
    "+m.namespace = ?1 AND +m.turns = 1 AND m.metadata ->> '$.session' IS ?2 AND m.created_at BETWEEN ?3 AND ?4"
    " AND (m.created_at, m.row) {side} (?5, ?6) ORDER BY m.created_at {order}, m.row {order} LIMIT ?7"
)
_LAST = (
    f"m.namespace = ? AND +m.turns = 1 AND m.metadata ->> '$.session' IS NOT NULL AND {ALIVE}"
    " ORDER BY m.created_at DESC, m.row DESC LIMIT ?"
)
_SAID_IN = (
    "SELECT m.id, m.metadata ->> '$.session', m.metadata ->> '$.role', m.created_at, substr(m.content, 1, ?3)"
    " FROM memories m WHERE m.namespace = ?1 AND m.turns = 1"
    " AND m.metadata ->> '$.session' IN (SELECT value FROM json_each(?2)) ORDER BY m.created_at, m.row"
)
_SAID = (
    "SELECT t.key, t.importance, t.files FROM turns t WHERE t.key IN (SELECT value FROM json_each(?1))"
    " UNION ALL SELECT m.id, m.importance, (SELECT group_concat(value, char(10)) FROM json_each(m.metadata, '$.files'))"
    " FROM memories m WHERE m.id IN (SELECT value FROM json_each(?1))"
)


class Said(NamedTuple):
    """The importance and the files of a turn."""

    importance: float
    files: list[str]


class SessionEntry(NamedTuple):
    """A turn of a session, or a summary or result of a task (`turns` is 0)."""

    namespace: int
    session: str
    created_at: float
    turns: int
    id: str
    source: str
    metadata: str
    content: str


class SessionSpan(NamedTuple):
    """Entries created from `since` until before `until`, of the sessions whose name begins with `session` or of all."""

    since: float
    until: float
    session: str | None


def find_entries(
    connection: apsw.Connection, span: SessionSpan, sources: tuple[str, str], reached: str, now: float
) -> list[SessionEntry]:
    """Return the latest entries of sessions, newest first; `sources` are those of summaries and of outcomes."""
    sql = _ENTRIES.format(reached=reached.replace("m.namespace", "+m.namespace"))
    return [SessionEntry(*values) for values in connection.execute(sql, (*span, *sources, *alive_values(now)))]


def find_around(connection: apsw.Connection, row: Row, session: str | None, count: int) -> tuple[list[Row], list[Row]]:
    """Return the stored turns of a conversation before and after a row, both in the order of time."""
    bounds = row.namespace, session, row.created_at - WINDOW_S, row.created_at + WINDOW_S
    number = row.row if row.row > 0 else 2**62  # turns in L0 come after those that have left it
    before, after = (
        rows.select(connection, _NEAR.format(side=side, order=order), (*bounds, row.created_at, number, count))
        for side, order in (("<", "DESC"), (">", "ASC"))
    )
    return before[::-1], after


def find_last_turns(connection: apsw.Connection, namespace: int, now: float, limit: int) -> list[Row]:
    """Return the latest turns of a namespace that have left L0 and belong to a session, newest first."""
    return rows.select(connection, _LAST, (namespace, *alive_values(now), limit))


def find_said_in(
    connection: apsw.Connection, namespace: int, sessions: Sequence[str], chars: int
) -> Iterator[tuple[str, str, str, float, str]]:
    """Yield id, session, role, time (UTC seconds) and first `chars` characters of the sessions' turns outside L0."""
    yield from connection.execute(_SAID_IN, (namespace, json.dumps(sessions), chars))


def find_said(connection: apsw.Connection, ids: Sequence[str]) -> dict[str, Said]:
    """Return importance and files of turns by id, in the order of `ids`, whether or not they have left L0."""
    found: dict[str, Said] = {
        id: Said(importance, (files or "").splitlines())
        for id, importance, files in connection.execute(_SAID, (json.dumps(ids),))
    }
    return {id: found[id] for id in ids if id in found}

"""Queries for memories that leave L1, L2 or the database, for the sweep, the limits of tiers, and expiry."""

from collections.abc import Iterator
from itertools import starmap
from typing import Literal, NamedTuple

import apsw

from memoryd.daemon.store.tiers import DOCUMENTS, L1

_USED = "max(m.updated_at, coalesce(m.last_accessed_at, 0))"  # when a memory was last used
# The tier is a literal, so that SQLite uses the index of L1.
_RECENT = f"SELECT m.row, m.id, {_USED} FROM memories m WHERE m.tier = {L1!r} AND NOT m.pinned"
_UNUSED = f"{_RECENT} AND (m.expires_at IS NULL OR m.expires_at > ?1) AND {_USED} < ?2 AND m.created_at < ?3"
_LEAST_RECENT = f"{_RECENT} AND m.namespace = ? ORDER BY {_USED}, m.importance, m.row LIMIT ?"
_CONFIDENCE = (
    "CASE WHEN json_type(m.metadata, '$.confidence') IN ('integer', 'real')"
    " THEN min(max(json_extract(m.metadata, '$.confidence'), 0), 1) ELSE m.importance END"
)
_CROWDED = "SELECT m.namespace, count(*) FROM memories m WHERE {among} GROUP BY 1 HAVING count(*) > ? ORDER BY 1"
_WEAKEST = (
    f"SELECT m.row, m.id, {_CONFIDENCE} * pow(0.5, max(0, ?2 - {_USED}) / ?3) AS worth FROM memories m"
    f" WHERE {{among}} AND m.namespace = ?1 AND NOT m.pinned ORDER BY m.type = ?5, worth, {_USED}, m.row LIMIT ?4"
)
# Imported memories keep their former times, so the history shows when they were stored here.
_EXPIRED = (
    "SELECT m.row, m.id, m.expires_at FROM memories m WHERE m.expires_at IS NOT NULL AND m.expires_at <= ?1"
    " AND m.updated_at <= ?1 AND NOT EXISTS (SELECT 1 FROM history h JOIN operations o ON o.number = h.operation"
    " WHERE h.memory = m.id AND o.at > ?1)"
    f" AND NOT m.pinned AND m.tier <> {DOCUMENTS!r} ORDER BY m.expires_at, m.row"
)
_OLD_TURNS = (
    "SELECT m.row, m.id, m.created_at FROM memories m WHERE m.turns > 0 AND m.created_at <= ? AND NOT m.pinned"
    " ORDER BY m.created_at, m.row"
)


class Leaf(NamedTuple):
    """The fields of a memory in L1 that the sweep needs."""

    row: int
    id: str
    used_at: float


class Group(NamedTuple):
    """The memories of a tier or a source, which have a limit in each namespace; one type is deleted last."""

    column: Literal["tier", "source"]
    value: str
    last_type: str = ""

    def condition(self) -> str:
        """Return the condition on the alias `m`, with a literal, so that SQLite uses the index of one tier."""
        return f"m.{self.column} = '{self.value}'"


def find_unused(connection: apsw.Connection, now: float, used_before: float, created_before: float) -> Iterator[Leaf]:
    """Yield the memories of L1 that were last used and created before these times, except pinned and expired ones."""
    return starmap(Leaf, connection.execute(_UNUSED, (now, used_before, created_before)))


def find_least_recent(connection: apsw.Connection, namespace: int, count: int) -> Iterator[Leaf]:
    """Yield the `count` memories in L1 of a namespace that have been unused for longest."""
    return starmap(Leaf, connection.execute(_LEAST_RECENT, (namespace, count)))


def count_over(connection: apsw.Connection, group: Group, limit: int) -> list[tuple[int, int]]:
    """Return the namespaces in which a group has more memories than its limit, with their numbers."""
    return list(connection.execute(_CROWDED.format(among=group.condition()), (limit,)))


def find_weakest(
    connection: apsw.Connection, group: Group, namespace: int, count: int, decay: tuple[float, float]
) -> list[tuple[int, str, float]]:
    """Return (row, id, confidence x recency) of the weakest memories; `decay` is (now, half-life in s)."""
    now, half_life_s = decay
    sql = _WEAKEST.format(among=group.condition())
    return list(connection.execute(sql, (namespace, now, half_life_s, count, group.last_type)))


def find_old_turns(connection: apsw.Connection, before: float) -> list[tuple[int, str, float]]:
    """Return (row, id, time) of turns from before a time, except pinned ones."""
    return list(connection.execute(_OLD_TURNS, (before,)))


def find_expired(connection: apsw.Connection, before: float) -> Iterator[tuple[int, str, float]]:
    """Yield (row, id, time) of memories that expired before a time and were stored and changed before that time too.

    Chunks of files are excluded, because they remain as long as their files.
    """
    return iter(connection.execute(_EXPIRED, (before,)))

"""Pairs of a saved memory and a later statement that changes it, with the verdict on each.

A pair has the two ids, and where in the later text the change is stated. It counts only while both exist, but stays
after a deletion, so that an undo restores it. An edit of either text removes the pair (a trigger).
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import apsw
import msgspec

from memoryd.client.protocol import LaterStatement
from memoryd.daemon.store.filters import ALIVE, alive_values

BOTH = "both"  # the verdict that both hold
SHOWN_CHARS = 200  # of a text that contradicts or changes a memory
LIKELY = 0.75  # a pair that is at least this sure precedes newer ones that are less sure
MAYBE = 0.5  # a less sure statement makes no pair
_PART = "substr(m.content, l.start + 1, l.size)"


class Pair(NamedTuple):
    """The ids of a saved memory and a later statement, where in its text the change is stated, and how sure it is."""

    memory: str
    later: str
    start: int
    size: int
    sure: float


def add(connection: apsw.Connection, pairs: Iterable[Pair]) -> None:
    """Store pairs; a stored one keeps its verdict."""
    sql = "INSERT OR IGNORE INTO later (memory, later, start, size, sure) VALUES (?, ?, ?, ?, ?)"
    connection.executemany(sql, pairs)


def settle(connection: apsw.Connection, memory: str, verdict: str) -> list[str]:
    """Set the verdict on all later statements of a memory; return the ids of those whose verdict changed."""
    sql = "UPDATE later SET verdict = ?2 WHERE memory = ?1 AND verdict <> ?2 RETURNING later"
    return [str(id) for (id,) in connection.execute(sql, (memory, verdict)).fetchall()]


def read(connection: apsw.Connection, ids: Sequence[str], reached: str, now: float) -> dict[str, LaterStatement]:
    """Return by memory id the newest statement that changes it and has no verdict.

    If a prompt and its answer both likely change the memory, the prompt counts: the person's words are shown and saved.
    Statements outside the `reached` namespaces (an SQL condition on `m`), or not alive at `now`, do not count.
    """
    if not ids:
        return {}
    found: Any = connection.execute(
        "WITH l AS (SELECT * FROM later WHERE verdict = '' AND memory IN (SELECT value FROM json_each(?1)))"
        f" SELECT l.memory, l.sure, m.id, m.created_at,"
        " CASE WHEN m.turns THEN coalesce(m.metadata ->> '$.role', '')"
        " WHEN m.origin = 'person' OR m.confirmed_at IS NOT NULL THEN '' ELSE m.origin END,"
        f" m.metadata ->> '$.answers', {_PART}"
        f" FROM l CROSS JOIN memories m ON m.id = l.later AND {reached} AND {ALIVE}"
        f" UNION ALL SELECT l.memory, l.sure, m.key, m.created_at, m.role, m.answers, {_PART}"
        f" FROM l CROSS JOIN turns m ON m.key = l.later AND {reached}",
        (msgspec.json.encode(list(ids)).decode(), *alive_values(now)),
    )
    statements = found.fetchall()
    likely = {(memory, id) for memory, sure, id, *_ in statements if sure >= LIKELY}
    best: dict[str, tuple[tuple[bool, float], LaterStatement]] = {}
    for memory, sure, id, at, role, answers, text in statements:
        if role == "assistant" and (memory, answers) in likely:
            continue
        order = sure >= LIKELY, at
        if memory not in best or order > best[memory][0]:
            statement = LaterStatement(id=id, at=at, role=role, text=shorten(text), likely=sure >= LIKELY)
            best[memory] = order, statement
    return {memory: statement for memory, (_, statement) in best.items()}


def list_statements(connection: apsw.Connection, ids: Sequence[str]) -> dict[str, set[str]]:
    """Return by memory id the ids of statements that likely change it, except where both were decided to hold."""
    found: dict[str, set[str]] = {}
    within = "memory IN (SELECT value FROM json_each(?))"
    sql = f"SELECT memory, later FROM later WHERE {within} AND verdict <> ? AND sure >= ?"
    for memory, statement in connection.execute(sql, (msgspec.json.encode(list(ids)).decode(), BOTH, LIKELY)):
        found.setdefault(memory, set()).add(statement)
    return found


def list_changed(connection: apsw.Connection, reached: str, now: float) -> list[str]:
    """Return the ids of the memories within reach, alive at `now`, that have a pair without a verdict."""
    sql = (
        "SELECT DISTINCT l.memory FROM later l CROSS JOIN memories m ON m.id = l.memory"
        f" WHERE l.verdict = '' AND {reached} AND {ALIVE} ORDER BY m.created_at DESC"
    )
    return [str(id) for (id,) in connection.execute(sql, alive_values(now))]


def find_memories(connection: apsw.Connection, prefix: str, reached: str) -> list[str]:
    """Return the ids of memories within reach whose own id, or that of a later statement, begins with a prefix."""
    sql = (
        "SELECT DISTINCT l.memory FROM later l CROSS JOIN memories m ON m.id = l.memory"
        f" WHERE (l.memory GLOB ?1 OR l.later GLOB ?1) AND {reached}"
    )
    return [str(id) for (id,) in connection.execute(sql, (f"{prefix}*",))]


def shorten(text: str) -> str:
    """Return the beginning of a text on one line, as shown beside a memory that it contradicts or changes."""
    text = " ".join(text.split())
    return text if len(text) <= SHOWN_CHARS else f"{text[: SHOWN_CHARS - 2].rsplit(' ', 1)[0]} …"

"""The extraction queue, on disk: tasks for turns, and when they are due.

A row is a task and the key of a turn, which may be in L0 or a memory by now. `rate`, `embed`, `compare` and `condense`
are tasks for one turn or memory and are due at once. `extract` (facts) and `summary` are tasks for a conversation (a
namespace and a session). They are due some time after its last turn, but no later than some time after the first turn
that waits. The worker removes exactly the rows that it has processed, in the transaction that writes the result. So a
crash loses and repeats nothing, and turns that arrive in between are processed next.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import apsw
import msgspec

from memoryd.daemon.store import turns

MAX_TURNS = 200  # that wait in a conversation, for each task
MAX_WAITING = 20_000  # that wait in all conversations
GIVEN_UP = "given up"  # in the counts of `flows`, after the name of the task

_OF = "task = ?1 AND namespace = ?2 AND session = ?3"  # the rows of a conversation's task
_TIMES = f"SELECT min(queued_at), max(due_at) FILTER (WHERE attempts > 0) FROM extraction WHERE {_OF}"
_QUEUE = (
    "INSERT OR IGNORE INTO extraction (task, turn, namespace, session, queued_at, due_at) VALUES (?, ?, ?, ?, ?, ?)"
)
_TRIM = (
    f"DELETE FROM extraction WHERE {_OF} AND id <= (SELECT id FROM extraction WHERE {_OF} ORDER BY id DESC"
    " LIMIT 1 OFFSET ?4) RETURNING 1"
)
_TRIM_ALL = (
    "DELETE FROM extraction WHERE namespace IS NOT NULL AND id <= (SELECT id FROM extraction"
    " WHERE namespace IS NOT NULL ORDER BY id DESC LIMIT 1 OFFSET ?) RETURNING namespace, task"
)
# A task that is due later than any delay allows was queued while the clock was ahead, or waits for a session's end.
_NEXT = (
    "SELECT task, namespace, session, iif(max(due_at) > ?1 + ?2 AND max(due_at) < 9e999, ?1, max(due_at)) AS due,"
    " max(attempts) FROM extraction WHERE namespace IS NOT NULL GROUP BY task, namespace, session ORDER BY due LIMIT 1"
)
_TURNS = (
    "SELECT e.id, e.turn, coalesce(t.role, m.metadata ->> '$.role', ''), coalesce(t.created_at, m.created_at),"
    f" substr(coalesce(t.content, m.content), 1, ?4) FROM (SELECT id, turn FROM extraction WHERE {_OF}) e"
    " LEFT JOIN turns t ON t.key = e.turn LEFT JOIN memories m ON m.id = e.turn"
    " WHERE coalesce(t.key, m.id) IS NOT NULL ORDER BY e.id"
)
_DROP_GONE = (
    f"DELETE FROM extraction WHERE {_OF} AND NOT EXISTS (SELECT 1 FROM turns WHERE key = turn)"
    " AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.id = turn)"
)
_WITHIN = (
    "SELECT e.task, count(*) FROM extraction e WHERE EXISTS (SELECT 1 FROM turns m WHERE m.key = e.turn AND {0})"
    " OR EXISTS (SELECT 1 FROM memories m WHERE m.id = e.turn AND {0}) GROUP BY 1 ORDER BY 1"
)
COMPARE = "compare"  # a turn or memory with the saved memories that it may change
OF_CONVERSATIONS = ("extract", "summary")
KEPT_CHARS = 8_000  # of a turn


class Delay(NamedTuple):
    """When a task of a conversation is due: seconds after the last turn, and at most after the first turn."""

    task: str
    quiet_s: float
    longest_s: float


class Conversation(NamedTuple):
    """A task of a conversation, which is a namespace and a session."""

    task: str
    namespace: int
    session: str


class Due(NamedTuple):
    """A task of a conversation, when it is due, and how often it failed."""

    conversation: Conversation
    due_at: float
    attempts: int


class QueuedTurn(NamedTuple):
    """One turn of a conversation; `id` gives the order."""

    id: int
    key: str
    role: str
    created_at: float
    content: str


# Tasks of one turn ---------------------------------------------------------------------------------------------------


def queue(connection: apsw.Connection, keys: Iterable[str], *tasks: str) -> None:
    """Queue tasks of turns or memories."""
    sql = "INSERT OR IGNORE INTO extraction (task, turn) VALUES (?, ?)"
    connection.executemany(sql, ((task, key) for key in keys for task in tasks))


def read_keys(connection: apsw.Connection, task: str, limit: int) -> list[str]:
    """Return the next turns or memories of a task."""
    return [
        str(key) for (key,) in connection.execute("SELECT turn FROM extraction WHERE task = ? LIMIT ?", (task, limit))
    ]


def select_waiting(connection: apsw.Connection, task: str, keys: Sequence[str]) -> set[str]:
    """Return the given turns that wait for a task."""
    sql = "SELECT turn FROM extraction WHERE task = ? AND turn IN (SELECT value FROM json_each(?))"
    return {str(key) for (key,) in connection.execute(sql, (task, msgspec.json.encode(keys).decode()))}


def remove(connection: apsw.Connection, task: str, keys: Iterable[str]) -> None:
    """Remove a task of turns."""
    connection.executemany("DELETE FROM extraction WHERE turn = ? AND task = ?", ((key, task) for key in keys))


def forget(connection: apsw.Connection, keys: Iterable[str]) -> None:
    """Remove all tasks of turns that were deleted."""
    connection.executemany("DELETE FROM extraction WHERE turn = ?", ((key,) for key in keys))


def count(connection: apsw.Connection) -> dict[str, int]:
    """Return for each task of a single turn how many turns and memories wait for it."""
    return dict(connection.execute("SELECT task, count(*) FROM extraction WHERE namespace IS NULL GROUP BY task"))


def count_within(connection: apsw.Connection, condition: str) -> dict[str, int]:
    """Return for each task how many turns and memories in the namespaces of `condition` (alias `m`) wait for it."""
    return dict(connection.execute(_WITHIN.format(condition)))


# Tasks of a conversation ---------------------------------------------------------------------------------------------


def queue_conversation(
    connection: apsw.Connection, place: tuple[int, str], keys: Sequence[str], delays: Iterable[Delay], now: float
) -> None:
    """Queue turns of one conversation (namespace and session); give up the oldest beyond the limits."""
    for delay in delays if keys else ():
        one = Conversation(delay.task, *place)
        times: Any = connection.execute(_TIMES, one).fetchone()
        first_at, not_before = times
        due_at = min(now + delay.quiet_s, (now if first_at is None else first_at) + delay.longest_s)
        values = *one[1:], now, max(due_at, not_before or 0.0)
        connection.executemany(_QUEUE, ((one.task, key, *values) for key in keys))
        dropped = len(connection.execute(_TRIM, (*one, MAX_TURNS)).fetchall())
        turns.count(connection, one.namespace, f"{one.task}: {GIVEN_UP}", dropped)
    if keys:
        given_up: list[Any] = connection.execute(_TRIM_ALL, (MAX_WAITING,)).fetchall()
        for namespace, task in given_up:
            turns.count(connection, namespace, f"{task}: {GIVEN_UP}")


def find_next(connection: apsw.Connection, now: float, longest_s: float) -> Due | None:
    """Return the task that is due first, even if that is in the future; no delay is longer than `longest_s`."""
    found: Any = connection.execute(_NEXT, (now, longest_s)).fetchone()
    return None if found is None else Due(Conversation(*found[:3]), *found[3:])


def read_turns(connection: apsw.Connection, one: Conversation, max_chars: int) -> list[QueuedTurn]:
    """Return the oldest turns of a task up to `max_chars` characters in all, at least one; none if all are gone."""
    found: list[QueuedTurn] = []
    for values in connection.execute(_TURNS, (*one, KEPT_CHARS)):
        max_chars -= len(values[-1])
        if found and max_chars < 0:
            break
        found.append(QueuedTurn(*values))
    return found


def select_queued(connection: apsw.Connection, said: Sequence[QueuedTurn]) -> list[QueuedTurn]:
    """Return the given turns that are still in the queue."""
    sql = "SELECT id FROM extraction WHERE id IN (SELECT value FROM json_each(?))"
    ids = {id for (id,) in connection.execute(sql, (msgspec.json.encode([one.id for one in said]).decode(),))}
    return [one for one in said if one.id in ids]


def finish(connection: apsw.Connection, one: Conversation, said: Sequence[QueuedTurn]) -> None:
    """Remove the processed turns and those that no longer exist; reset the count of failures for the rest."""
    connection.executemany("DELETE FROM extraction WHERE id = ?", ((turn.id,) for turn in said))
    connection.execute(_DROP_GONE, one)
    connection.execute(f"UPDATE extraction SET attempts = 0 WHERE {_OF} AND attempts > 0", one)


def postpone(connection: apsw.Connection, one: Conversation, not_before: float) -> None:
    """Count a failure of a task, and make it due later."""
    connection.execute(f"UPDATE extraction SET attempts = attempts + 1, due_at = ?4 WHERE {_OF}", (*one, not_before))


def give_up(connection: apsw.Connection, one: Conversation) -> None:
    """Remove a task with its turns, and count these as given up."""
    dropped = len(connection.execute(f"DELETE FROM extraction WHERE {_OF} RETURNING 1", one).fetchall())
    turns.count(connection, one.namespace, f"{one.task}: {GIVEN_UP}", dropped)


def make_due(connection: apsw.Connection, place: tuple[int, str], now: float) -> list[str]:
    """Make the tasks of a conversation due now; return them."""
    connection.execute(
        "UPDATE extraction SET due_at = min(due_at, ?3) WHERE namespace = ?1 AND session = ?2", (*place, now)
    )
    return list_tasks(connection, place)


def make_facts_due(connection: apsw.Connection, task: str, reached: frozenset[int] | None, now: float) -> None:
    """Make a task due now in all conversations of some namespaces (None: all) where it has not failed."""
    where = "TRUE" if reached is None else f"namespace IN ({', '.join(map(str, reached))})"
    sql = f"UPDATE extraction SET due_at = min(due_at, ?) WHERE task = ? AND attempts = 0 AND {where}"
    connection.execute(sql, (now, task))


def list_tasks(connection: apsw.Connection, place: tuple[int, str]) -> list[str]:
    """Return the tasks that wait for a conversation."""
    sql = "SELECT DISTINCT task FROM extraction WHERE namespace = ? AND session = ? ORDER BY task"
    return [str(task) for (task,) in connection.execute(sql, place)]


def count_due(connection: apsw.Connection, place: tuple[int, str], now: float) -> int:
    """Return how many turns wait for due tasks of a conversation; a turn counts once for each task."""
    sql = (
        "SELECT total(many) FROM (SELECT count(*) AS many FROM extraction WHERE namespace = ? AND session = ?"
        " GROUP BY task HAVING max(due_at) <= ?)"
    )
    return int(connection.execute(sql, (*place, now)).get)


def move(connection: apsw.Connection, namespace: int, to: int) -> None:
    """Move the waiting tasks of a namespace to another one."""
    connection.execute("UPDATE extraction SET namespace = ? WHERE namespace = ?", (to, namespace))

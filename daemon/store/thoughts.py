"""The queue, on disk, of conversations to draw facts from or summarise, with the turns concerned.

A conversation is a namespace and a session. Each kind of thought has one row for it, due some time after its last turn
and no later than `longest_s` after its first, and its own copies of the turns. The worker removes
exactly the turns that it processed, in the transaction that writes the result. So a crash loses nothing and repeats
nothing, and turns that arrive meanwhile are processed next.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import apsw

from memoryd.daemon.store import turns

MAX_TURNS = 200  # of a conversation, for each kind
MAX_HEARD = 20_000  # in all
KEPT_CHARS = 8_000  # of a turn
GIVEN_UP = "not thought about"  # in the account, with the kind before it

_UPSERT = (
    "INSERT INTO thoughts (namespace, session, kind, first_at, due_at) VALUES (?1, ?2, ?3, ?4, ?4 + min(?5, ?6))"
    " ON CONFLICT DO UPDATE SET due_at = max(min(excluded.first_at + ?5, first_at + ?6), due_at * (attempts > 0))"
)
_TAKE = "SELECT id, key, role, created_at, content FROM heard WHERE namespace = ? AND session = ? AND kind = ?"
_TRIM = (
    "DELETE FROM heard WHERE namespace = ?1 AND session = ?2 AND kind = ?3 AND id <= (SELECT id FROM heard"
    " WHERE namespace = ?1 AND session = ?2 AND kind = ?3 ORDER BY id DESC LIMIT 1 OFFSET ?4) RETURNING 1"
)
_TRIM_ALL = (
    "DELETE FROM heard WHERE id <= (SELECT id FROM heard ORDER BY id DESC LIMIT 1 OFFSET ?) RETURNING namespace, kind"
)
_EMPTY = (
    "DELETE FROM thoughts WHERE NOT EXISTS (SELECT 1 FROM heard h WHERE h.namespace = thoughts.namespace"
    " AND h.session = thoughts.session AND h.kind = thoughts.kind)"
)


class ThoughtDelay(NamedTuple):
    """When a kind of thought is due: so long after the last turn, at most so long after the first."""

    kind: str
    quiet_s: float
    longest_s: float


ConversationKey = tuple[int, str]  # a conversation: namespace and session


class ThoughtKey(NamedTuple):
    """One row of the queue."""

    namespace: int
    session: str
    kind: str


class Thought(NamedTuple):
    """A queued task: its key, when it is due, and how often it failed."""

    key: ThoughtKey
    due_at: float
    attempts: int


class Heard(NamedTuple):
    """One turn of a conversation; `id` gives the order."""

    id: int
    key: str
    role: str
    created_at: float
    content: str


def queue_turns(
    connection: apsw.Connection,
    place: ConversationKey,
    said: Sequence[Heard],
    rests: Iterable[ThoughtDelay],
    now: float,
) -> None:
    """Queue turns of one conversation for each kind of task; delete the oldest beyond the limits."""
    for rest in rests if said else ():
        key = ThoughtKey(*place, rest.kind)
        connection.execute(_UPSERT, (*key, now, rest.quiet_s, rest.longest_s))
        connection.executemany(
            "INSERT INTO heard (namespace, session, kind, key, role, created_at, content) VALUES (?,?,?,?,?,?,?)",
            ((*key, one.key, one.role, one.created_at, one.content[:KEPT_CHARS]) for one in said),
        )
        dropped = len(connection.execute(_TRIM, (*key, MAX_TURNS)).fetchall())
        turns.count(connection, key.namespace, f"{rest.kind}: {GIVEN_UP}", dropped)
    if said:
        _bind(connection)


def _bind(connection: apsw.Connection) -> None:
    # Numbers are given in order, so their span is never less than how many there are: the count is seldom needed.
    span: Any = connection.execute("SELECT max(id) - min(id) FROM heard").get
    if (span or 0) < MAX_HEARD:
        return
    dropped: list[Any] = connection.execute(_TRIM_ALL, (MAX_HEARD,)).fetchall()
    for namespace, kind in dropped:
        turns.count(connection, namespace, f"{kind}: {GIVEN_UP}")
    if dropped:
        drop_empty(connection)


def drop_empty(connection: apsw.Connection) -> None:
    """Think no more about conversations without turns to think about."""
    connection.execute(_EMPTY)


def move(connection: apsw.Connection, namespace: int, to: int) -> None:
    """Move what waits to another namespace."""
    connection.execute("UPDATE OR IGNORE thoughts SET namespace = ? WHERE namespace = ?", (to, namespace))
    connection.execute("UPDATE heard SET namespace = ? WHERE namespace = ?", (to, namespace))
    drop_empty(connection)


def hurry(connection: apsw.Connection, namespace: int, session: str, now: float) -> list[str]:
    """Make everything of a conversation due now; return the kinds."""
    sql = "UPDATE thoughts SET due_at = min(due_at, ?3) WHERE namespace = ?1 AND session = ?2 RETURNING kind"
    return sorted(kind for (kind,) in connection.execute(sql, (namespace, session, now)))


def count_due(connection: apsw.Connection, namespace: int, session: str, now: float) -> dict[str, int]:
    """Return how many turns wait for each due task of a conversation, by kind."""
    sql = (
        "SELECT kind, count(*) FROM thoughts JOIN heard USING (namespace, session, kind)"
        " WHERE namespace = ? AND session = ? AND due_at <= ? GROUP BY kind"
    )
    return dict(connection.execute(sql, (namespace, session, now)))


def list_kinds(connection: apsw.Connection, namespace: int, session: str) -> list[str]:
    """Return the kinds of tasks that wait for a conversation."""
    sql = "SELECT kind FROM thoughts WHERE namespace = ? AND session = ? ORDER BY kind"
    return [kind for (kind,) in connection.execute(sql, (namespace, session))]


def hasten(connection: apsw.Connection, key: ThoughtKey, now: float) -> None:
    """Make one task due now."""
    sql = "UPDATE thoughts SET due_at = min(due_at, ?4) WHERE namespace = ?1 AND session = ?2 AND kind = ?3"
    connection.execute(sql, (*key, now))


def find_next(connection: apsw.Connection, now: float, strange: tuple[float, float]) -> Thought | None:
    """Return the task with the earliest due time, even if that is in the future.

    A due time between the two of `strange` was set while the clock was ahead: such a task is due now.
    """
    first = _first(connection, "TRUE", ())
    if first is None or first.due_at <= now:
        return first
    ahead = _first(connection, "due_at > ? AND due_at < ?", strange)
    return first if ahead is None else ahead._replace(due_at=now)


def _first(connection: apsw.Connection, where: str, values: tuple[float, ...]) -> Thought | None:
    sql = f"SELECT namespace, session, kind, due_at, attempts FROM thoughts WHERE {where} ORDER BY due_at LIMIT 1"
    values_found: Any = connection.execute(sql, values).fetchone()
    return None if values_found is None else Thought(ThoughtKey(*values_found[:3]), *values_found[3:])


def read_all(connection: apsw.Connection, kind: str) -> list[Thought]:
    """Return all tasks of a kind, the earliest due first."""
    sql = "SELECT namespace, session, kind, due_at, attempts FROM thoughts WHERE kind = ? ORDER BY due_at"
    return [Thought(ThoughtKey(*values[:3]), *values[3:]) for values in connection.execute(sql, (kind,))]


def read_turns(connection: apsw.Connection, key: ThoughtKey, max_chars: int) -> list[Heard]:
    """Return the oldest turns of a task up to `max_chars` characters in all, at least one turn."""
    turns: list[Heard] = []
    for values in connection.execute(f"{_TAKE} ORDER BY id", key):
        max_chars -= len(values[-1])
        if turns and max_chars < 0:
            break
        turns.append(Heard(*values))
    return turns


def finish(connection: apsw.Connection, key: ThoughtKey, turns: Sequence[Heard], now: float) -> None:
    """Delete the turns that were processed; the task stays if other turns arrived meanwhile."""
    connection.executemany("DELETE FROM heard WHERE id = ?", ((one.id,) for one in turns))
    rest: Any = connection.execute(f"{_TAKE} ORDER BY id LIMIT 1", key).fetchone()
    if rest is None:
        connection.execute("DELETE FROM thoughts WHERE namespace = ? AND session = ? AND kind = ?", key)
        return
    sql = "UPDATE thoughts SET attempts = 0, first_at = ?4 WHERE namespace = ?1 AND session = ?2 AND kind = ?3"
    connection.execute(sql, (*key, now))


def put_off(connection: apsw.Connection, thought: Thought, not_before: float) -> None:
    """Postpone a task; its turns stay."""
    sql = "UPDATE thoughts SET attempts = attempts + 1, due_at = ?4 WHERE namespace = ?1 AND session = ?2 AND kind = ?3"
    connection.execute(sql, (*thought.key, not_before))


def give_up(connection: apsw.Connection, key: ThoughtKey) -> None:
    """Delete a task with its turns, and count these as given up."""
    where = "WHERE namespace = ? AND session = ? AND kind = ?"
    dropped = len(connection.execute(f"DELETE FROM heard {where} RETURNING 1", key).fetchall())
    connection.execute(f"DELETE FROM thoughts {where}", key)
    turns.count(connection, key.namespace, f"{key.kind}: {GIVEN_UP}", dropped)


def forget(connection: apsw.Connection, keys: Iterable[str]) -> None:
    """Delete the queued copies of turns that were deleted."""
    connection.executemany("DELETE FROM heard WHERE key = ?", ((key,) for key in keys))


def count_waiting(connection: apsw.Connection, condition: str) -> dict[str, int]:
    """Return for each kind how many turns in the namespaces of `condition` (alias `m`) wait."""
    sql = f"SELECT m.kind, count(*) FROM heard m WHERE {condition} GROUP BY 1 ORDER BY 1"
    return dict(connection.execute(sql))


def select_queued(connection: apsw.Connection, turns: Sequence[Heard]) -> list[Heard]:
    """Return those of some turns that are still in the queue."""
    marks = ", ".join("?" * len(turns))
    sql = f"SELECT id FROM heard WHERE id IN ({marks})"
    ids = {id for (id,) in connection.execute(sql, [one.id for one in turns])}
    return [one for one in turns if one.id in ids]

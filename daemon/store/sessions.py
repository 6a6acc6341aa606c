"""What sessions hold: the turns, summaries and outcomes of tasks that name them in their metadata.

And what `context` has given to which session, so that it is not given again while the text is the same.
"""

from collections.abc import Iterable, Iterator

import apsw
import msgspec

from memoryd.daemon.store import rows
from memoryd.daemon.store.rows import Row

# Made of turns: summaries of their session from then on, and facts that name them.
_SUMMARIES = (
    "m.namespace = ? AND m.type = 'note' AND m.source = 'session_summary' AND m.metadata ->> '$.session' = ?"
    " AND m.created_at >= ?"
)
_FACTS = (
    "m.namespace = ? AND m.source = 'extraction' AND json_type(m.metadata, '$.turns') = 'array'"
    " AND EXISTS (SELECT 1 FROM json_each(m.metadata, '$.turns') t WHERE t.value = ?)"
)
_KEEP = (
    "INSERT INTO given (session, memory, content_hash, at) VALUES (?1, ?2, ?3, ?4)"
    " ON CONFLICT DO UPDATE SET content_hash = excluded.content_hash, at = excluded.at"
)
_GIVEN = "SELECT session, memory, at FROM given WHERE at >= ? ORDER BY at DESC, id DESC"


def find_made(connection: apsw.Connection, said: Iterable[Row]) -> list[Row]:
    """Return the summaries and facts that were made of those memories that are turns."""
    made: dict[str, Row] = {}
    for row in said:
        metadata = msgspec.json.decode(row.metadata) if row.turns else {}
        found = rows.select(connection, _FACTS, (row.namespace, row.id)) if row.turns else []
        if isinstance(session := metadata.get("session"), str):
            found += rows.select(connection, _SUMMARIES, (row.namespace, session, row.created_at))
        made |= {one.id: one for one in found}
    return list(made.values())


def read_given(connection: apsw.Connection, session: str) -> dict[str, bytes]:
    """Return the content hashes of the memories that a session was given, by id."""
    return dict(connection.execute("SELECT memory, content_hash FROM given WHERE session = ?", (session,)))


def list_given(connection: apsw.Connection, since: float) -> Iterator[tuple[str, str, float]]:
    """Yield what was given since a time, the latest first: namespace and session, id of the memory, when."""
    yield from connection.execute(_GIVEN, (since,))


def keep_given(connection: apsw.Connection, session: str, memories: Iterable[tuple[str, bytes]], now: float) -> None:
    """Note what a session is given."""
    connection.executemany(_KEEP, [(session, id, key, now) for id, key in memories])


def forget_given(connection: apsw.Connection, session: str) -> None:
    """Forget what a session was given: it no longer has it."""
    connection.execute("DELETE FROM given WHERE session = ?", (session,))

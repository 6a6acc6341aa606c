"""What each session was given, so that it is not given again while the text is the same."""

from collections.abc import Iterable, Iterator

import apsw

_KEEP = (
    "INSERT INTO given (session, memory, content_hash, at) VALUES (?1, ?2, ?3, ?4)"
    " ON CONFLICT DO UPDATE SET content_hash = excluded.content_hash, at = excluded.at"
)
_GIVEN = "SELECT session, memory, at FROM given WHERE at >= ? ORDER BY at DESC, id DESC"


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

"""The memories that each session was given, so that it does not get them again while their text is unchanged."""

from collections.abc import Iterable, Iterator, Sequence

import apsw
import msgspec

TABLES = """
-- The memories that a session was given, so that it does not get them again while their text is unchanged.
CREATE TABLE given (
  id INTEGER PRIMARY KEY,
  session TEXT NOT NULL,       -- namespace and session
  memory TEXT NOT NULL,
  content_hash BLOB NOT NULL,
  at REAL NOT NULL,
  UNIQUE (session, memory)
) STRICT;
CREATE INDEX given_at ON given (at);
"""
_KEEP = (
    "INSERT INTO given (session, memory, content_hash, at) VALUES (?1, ?2, ?3, ?4)"
    " ON CONFLICT DO UPDATE SET content_hash = excluded.content_hash, at = excluded.at"
)
_GIVEN = "SELECT session, memory, at FROM given WHERE at >= ? ORDER BY at DESC, id DESC"


def read_given(connection: apsw.Connection, session: str) -> dict[str, bytes]:
    """Return the content hashes of the memories that a session was given, by id."""
    return dict(connection.execute("SELECT memory, content_hash FROM given WHERE session = ?", (session,)))


def list_given(connection: apsw.Connection, since: float) -> Iterator[tuple[str, str, float]]:
    """Yield (namespace and session, id of the memory, time) of the memories given since a time, the latest first."""
    yield from connection.execute(_GIVEN, (since,))


def keep_given(connection: apsw.Connection, session: str, memories: Iterable[tuple[str, bytes]], now: float) -> None:
    """Record the memories that a session is given."""
    connection.executemany(_KEEP, [(session, id, key, now) for id, key in memories])


def forget_given(connection: apsw.Connection, session: str) -> None:
    """Delete the record of the memories that a session was given."""
    connection.execute("DELETE FROM given WHERE session = ?", (session,))


def erase(connection: apsw.Connection, ids: Sequence[str], numbers: Sequence[int]) -> None:
    """Forget that some memories were given."""
    del numbers
    sql = "DELETE FROM given WHERE memory IN (SELECT value FROM json_each(?))"
    connection.execute(sql, (msgspec.json.encode(list(ids)).decode(),))

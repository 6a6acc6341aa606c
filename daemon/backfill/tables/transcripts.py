"""The files of running sessions with the cursors up to which they were read, and the turn of each entry in them."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import apsw
import msgspec

from memoryd.client.programs.sessions.agents import AGENTS, LINES

TABLES = """
-- Files in which hosts keep sessions that are recorded, and how far each was read. Written together with the turns.
CREATE TABLE transcripts (
  path TEXT NOT NULL,
  session TEXT NOT NULL,
  agent TEXT NOT NULL,
  namespace TEXT NOT NULL,       -- of the turns in the folder
  folder TEXT NOT NULL,
  inode INTEGER NOT NULL DEFAULT 0,
  size INTEGER NOT NULL DEFAULT -1,    -- when the file was last read; -1: it was never read
  offset INTEGER NOT NULL DEFAULT 0,   -- the cursor: the begin of the last exchange, which may continue
  before BLOB NOT NULL DEFAULT x'',    -- SHA-256 of the bytes before the cursor; if it differs, the file was rewritten
  passed INTEGER NOT NULL,       -- unknown entries that begin before this are not recorded
  unheard TEXT NOT NULL DEFAULT '',    -- why the last prompt before the cursor was not recorded; empty: it was
  automated INTEGER NOT NULL DEFAULT 0,
  ended INTEGER NOT NULL DEFAULT 0,    -- size at the last reading to the end; 0: the session runs; -1: not read since
  unmatched TEXT NOT NULL DEFAULT '[]',  -- JSON: reported turns without an entry in the file, and entries not reported
  at REAL NOT NULL,              -- the last event
  PRIMARY KEY (path, session)    -- a database holds many sessions
) STRICT, WITHOUT ROWID;
CREATE INDEX transcripts_place ON transcripts (namespace, at);
-- Entries of files, by the ids that their host gives them, some 200 bytes each. They are kept even if the turn or the
-- file is deleted, so that a copy of the entry, for example in a forked session, is not recorded again.
CREATE TABLE entries (
  id TEXT PRIMARY KEY,
  turn TEXT,                     -- the turn with its text; empty: erased or retracted; NULL: not recorded
  session TEXT NOT NULL DEFAULT ''  -- set if its host deletes retracted entries
) STRICT, WITHOUT ROWID;
CREATE INDEX entries_turn ON entries (turn);
CREATE INDEX entries_session ON entries (session) WHERE session <> '';
"""
_ERASED_FROM = (
    "SELECT path, session, agent FROM transcripts"
    " WHERE session IN (SELECT session FROM turns WHERE key IN (SELECT value FROM json_each(?1))"
    " UNION SELECT metadata ->> '$.session' FROM memories WHERE id IN (SELECT value FROM json_each(?1))"
    " UNION SELECT coalesce(before ->> '$.turn.session', (before ->> '$.row.metadata') ->> '$.session') FROM history"
    " WHERE before IS NOT NULL AND memory IN (SELECT value FROM json_each(?1)))"
)


class Unmatched(msgspec.Struct, array_like=True):
    """A reported turn that is not in the file yet (`entry` is empty), or an entry that no event has reported yet.

    `text` is the SHA-256 of its content.
    """

    entry: str
    role: str
    text: str
    turn: str
    at: float


class Transcript(msgspec.Struct, kw_only=True):
    """A row of `transcripts`."""

    path: str
    session: str
    agent: str
    namespace: str
    folder: str
    inode: int = 0
    size: int = -1
    offset: int = 0
    before: bytes = b""
    passed: int = 0
    unheard: str = ""
    automated: bool = False
    ended: int = 0
    unmatched: list[Unmatched] = []
    at: float


_COLUMNS = Transcript.__struct_fields__
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM transcripts"
_decode = msgspec.json.Decoder(list[Unmatched]).decode


def find(connection: apsw.Connection, path: str, session: str) -> Transcript | None:
    """Return the row of a file, or of a session in a database; None if no event has named it."""
    sql = f"{_SELECT} WHERE path = ?1 AND ?2 IN ('', session)"
    return next(_read(connection.execute(sql, (path, session))), None)


def find_former(connection: apsw.Connection, namespace: str, session: str, limit: int) -> list[Transcript]:
    """Return the rows of a namespace's other sessions, in the order of their latest events, newest first."""
    sql = f"{_SELECT} WHERE namespace = ? AND session <> ? ORDER BY at DESC LIMIT ?"
    return list(_read(connection.execute(sql, (namespace, session, limit))))


def _read(cursor: Any) -> Iterator[Transcript]:
    for values in cursor:
        named = dict(zip(_COLUMNS, values, strict=True))
        named["unmatched"] = _decode(named["unmatched"])
        named["automated"] = bool(named["automated"])
        yield Transcript(**named)


def put(connection: apsw.Connection, row: Transcript) -> None:
    """Write a row."""
    values = [getattr(row, name) for name in _COLUMNS]
    values[_COLUMNS.index("unmatched")] = msgspec.json.encode(row.unmatched).decode()
    sql = f"INSERT OR REPLACE INTO transcripts ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(values))})"
    connection.execute(sql, values)


def find_entries(connection: apsw.Connection, ids: Sequence[str]) -> dict[str, str | None]:
    """Return by id the turns of the known entries among `ids`, as the column `turn` has them."""
    sql = "SELECT id, turn FROM entries WHERE id IN (SELECT value FROM json_each(?))"
    return dict(connection.execute(sql, (_encode(ids),)))


def find_retractable(connection: apsw.Connection, session: str) -> dict[str, str]:
    """Return by entry the turns of a session whose host deletes retracted entries."""
    sql = "SELECT id, turn FROM entries WHERE session = ? AND session <> '' AND turn <> ''"
    return dict(connection.execute(sql, (session,)))


def note_entry(connection: apsw.Connection, id: str, turn: str | None, session: str = "") -> None:
    """Record the turn of an entry; `session` is given if its host deletes retracted entries."""
    connection.execute("INSERT OR REPLACE INTO entries VALUES (?, ?, ?)", (id, turn, session))


def count_entries(connection: apsw.Connection, turn: str) -> int:
    """Return the number of entries that became this turn."""
    return int(connection.execute("SELECT count(*) FROM entries WHERE turn = ?", (turn,)).get)


def erase(connection: apsw.Connection, ids: Sequence[str], numbers: Sequence[int]) -> None:
    """Make sure that the present content of the files of erased turns' sessions is not read again."""
    wanted = _encode(ids)
    concerned: Any = connection.execute(_ERASED_FROM, (wanted,)).fetchall()
    for path, session, agent in concerned:
        with suppress(OSError):
            end = os.lstat(path).st_size if AGENTS[agent].kind == LINES else int(time.time() * 1000)
            sql = "UPDATE transcripts SET passed = max(passed, ?) WHERE path = ? AND session = ?"
            connection.execute(sql, (end, path, session))
    connection.execute("UPDATE entries SET turn = '' WHERE turn IN (SELECT value FROM json_each(?))", (wanted,))


def _encode(ids: Sequence[str]) -> str:
    return msgspec.json.encode(list(ids)).decode()

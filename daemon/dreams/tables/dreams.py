"""Rows of `dreams`: hashes of the input, the data for an undo, and the notes that a workspace's dreams have seen."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import apsw
import msgspec

TABLES = """
-- The inputs and results of dreams; equal inputs are not processed again.
CREATE TABLE dreams (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  workspace INTEGER REFERENCES workspaces (id) ON DELETE CASCADE,
  at REAL NOT NULL,
  inputs BLOB NOT NULL,          -- SHA-256 of all files that were read
  result BLOB NOT NULL,          -- the same with the new MEMORY.md
  state TEXT NOT NULL,           -- begun, done, unchanged, undone
  before BLOB,                   -- SHA-256 of MEMORY.md; null: there was none
  "after" BLOB,
  backup TEXT,                   -- where the old MEMORY.md is, relative to the root; null: it did not change
  diary TEXT,
  seen TEXT                      -- of the latest: notes that dreams have seen, a JSON object of hashes and dates
) STRICT;
CREATE INDEX dreams_workspace ON dreams (workspace);
"""

_SETTLED = "('done', 'unchanged', 'undone')"


class StoredDream(NamedTuple):
    """One dream. `before` is None if there was no MEMORY.md; hashes are SHA-256."""

    id: int
    before: bytes | None
    after: bytes
    backup: str
    diary: str


def is_known(connection: apsw.Connection, workspace: int, digest: bytes) -> bool:
    """Return whether a dream has processed these inputs, or has made them as its result."""
    sql = f"SELECT 1 FROM dreams WHERE workspace = ?1 AND (inputs = ?2 OR result = ?2) AND state IN {_SETTLED}"
    return connection.execute(sql, (workspace, digest)).get is not None


def begin(connection: apsw.Connection, workspace: int, at: float, hashes: tuple[bytes, bytes]) -> int:
    """Record the inputs and the result of a dream; return its number."""
    sql = "INSERT INTO dreams (workspace, at, inputs, result, state) VALUES (?, ?, ?, ?, 'begun') RETURNING id"
    return int(connection.execute(sql, (workspace, at, *hashes)).get)


def keep_files(
    connection: apsw.Connection, number: int, before: bytes | None, after: bytes, names: tuple[str, str]
) -> None:
    """Keep what is needed to undo a dream: hashes of MEMORY.md, names of its copy and of the diary."""
    sql = 'UPDATE dreams SET before = ?, "after" = ?, backup = ?, diary = ? WHERE id = ?'
    connection.execute(sql, (before, after, *names, number))


def end(connection: apsw.Connection, number: int, state: str) -> None:
    """Record how a dream ended: done, unchanged, undone."""
    connection.execute("UPDATE dreams SET state = ? WHERE id = ?", (state, number))


def read_latest(connection: apsw.Connection, workspace: int) -> StoredDream | None:
    """Return the latest dream of a workspace that changed MEMORY.md and is not undone."""
    row: Any = connection.execute(
        'SELECT id, before, "after", backup, diary FROM dreams WHERE workspace = ?'
        " AND state IN ('done', 'begun') AND backup IS NOT NULL ORDER BY id DESC LIMIT 1",
        (workspace,),
    ).fetchone()
    return StoredDream(*row) if row else None


def read_seen(connection: apsw.Connection, workspace: int) -> dict[bytes, str] | None:
    """Return the notes that dreams of a workspace have seen, with their dates; None before the first dream."""
    sql = "SELECT seen FROM dreams WHERE workspace = ? AND seen IS NOT NULL ORDER BY id DESC LIMIT 1"
    seen: Any = connection.execute(sql, (workspace,)).get
    return {bytes.fromhex(note): date for note, date in msgspec.json.decode(seen or "{}").items()} or None


def keep_seen(connection: apsw.Connection, number: int, workspace: int, notes: Mapping[bytes, str]) -> None:
    """Store with a dream the notes that it and earlier dreams have seen."""
    seen = {note.hex(): date for note, date in {**(read_seen(connection, workspace) or {}), **notes}.items()}
    connection.execute("UPDATE dreams SET seen = NULL WHERE workspace = ?", (workspace,))
    connection.execute("UPDATE dreams SET seen = ? WHERE id = ?", (msgspec.json.encode(seen).decode(), number))

"""The memories that wait to be sent to a shared root, and the attempts to send them."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import apsw

from memoryd.daemon.store import database_settings, rows, sent
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import WAITING

TABLES = """
-- Attempts to send memories of the tier `waiting`.
CREATE TABLE sends (
  memory TEXT PRIMARY KEY,
  said BLOB,                   -- SHA-256 of the state that the place may have stored; NULL: nothing was sent
  refused TEXT NOT NULL DEFAULT '',  -- why the place refused the memory; empty: it was not refused
  at REAL NOT NULL             -- the latest attempt
) STRICT, WITHOUT ROWID;
"""
UNCLEAN = "words_of_sent"  # a setting: full text may still have words of sent memories
_KEPT_S = 90 * 86400.0  # as long as the place keeps idempotency keys


class Send(NamedTuple):
    """A waiting memory, the digest of its state when it was first sent (`said`), and why it was refused."""

    row: Row
    said: bytes | None
    refused: str


def list_waiting(connection: apsw.Connection, refused: bool, limit: int) -> list[Send]:
    """Return the waiting memories, oldest first; with `refused` also those that the place refused."""
    condition = "m.tier = ? AND coalesce((SELECT s.refused FROM sends s WHERE s.memory = m.id), '') = ''"
    if refused:
        condition = "m.tier = ?"
    waiting = rows.select(connection, f"{condition} ORDER BY m.row LIMIT {int(limit)}", (WAITING,))
    sql = "SELECT memory, said, refused FROM sends WHERE memory IN (SELECT value FROM json_each(?))"
    known: Any = connection.execute(sql, (json.dumps([row.id for row in waiting]),)).fetchall()
    attempts = {memory: (said, why) for memory, said, why in known}
    return [Send(row, *attempts.get(row.id, (None, ""))) for row in waiting]


def find(connection: apsw.Connection, id: str) -> Send | None:
    """Return the waiting memory with this id, None if there is none."""
    row = rows.read_ids(connection, [id]).get(id)
    if row is None or row.tier != WAITING:
        return None
    known: Any = connection.execute("SELECT said, refused FROM sends WHERE memory = ?", (id,)).fetchone()
    return Send(row, *(known or (None, "")))


def note_said(connection: apsw.Connection, memory: str, said: bytes, now: float) -> None:
    """Record the digest of a memory before its first attempt; later ones keep it, since the place stores the first."""
    sql = (
        "INSERT INTO sends (memory, said, at) VALUES (?1, ?2, ?3)"
        " ON CONFLICT (memory) DO UPDATE SET said = coalesce(said, ?2), at = ?3"
    )
    connection.execute(sql, (memory, said, now))
    connection.execute("DELETE FROM sends WHERE at < ?", (now - _KEPT_S,))


def note_refused(connection: apsw.Connection, memory: str, why: str, now: float) -> None:
    """Record why the place refused a memory; it waits until somebody sends it again."""
    sql = (
        "INSERT INTO sends (memory, refused, at) VALUES (?1, ?2, ?3)"
        " ON CONFLICT (memory) DO UPDATE SET refused = ?2, at = ?3"
    )
    connection.execute(sql, (memory, why, now))


def send_again(connection: apsw.Connection) -> None:
    """Clear the refusals, so that the memories are sent again."""
    connection.execute("UPDATE sends SET refused = '' WHERE refused <> ''")


def erase(connection: apsw.Connection, ids: Sequence[str], numbers: Sequence[int]) -> None:
    """Forget the attempts to send some memories, and what their place has taken of them."""
    del numbers
    connection.executemany("DELETE FROM sends WHERE memory = ?", [(id,) for id in ids])
    sent.remove(connection, ids)


def take_out(connection: apsw.Connection, row: Row) -> None:
    """Delete a memory that its place has stored, with its history here."""
    connection.pragma("secure_delete", True)
    for statement in (
        "DELETE FROM history WHERE memory = ?",
        "DELETE FROM extraction WHERE turn = ?",
        "DELETE FROM given WHERE memory = ?",
        "DELETE FROM later WHERE ?1 IN (memory, later)",
        "DELETE FROM sends WHERE memory = ?",
    ):
        connection.execute(statement, (row.id,))
    rows.delete(connection, [row.row])
    database_settings.put(connection, UNCLEAN, "1")

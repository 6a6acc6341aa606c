"""Memories that the place of a shared root has taken, as they are there; `shared/taken` keeps them for 24 hours."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import apsw
import msgspec

from memoryd.client.protocol import Added, Memory
from memoryd.daemon.store.history import Image, decode_image
from memoryd.daemon.store.rows import Row

_CHANGED = ("content", "type", "summary", "importance", "expires_at", "origin")


class Sent(NamedTuple):
    """A memory that a place has taken by an add with this idempotency key; `id` and `operation` are those there."""

    key: str
    id: str
    operation: str
    row: Row
    supersedes: list[str]


def note(
    connection: apsw.Connection, root: str, key: str, added: Added, row: Row, supersedes: Sequence[str], now: float
) -> None:
    """Store a memory that the place of a root has taken, and delete those that it replaced there."""
    remove(connection, supersedes)
    values = (key, root, added.id, added.operation, _encode(row), msgspec.json.encode(supersedes).decode(), now)
    connection.execute("INSERT OR REPLACE INTO sent VALUES (?, ?, ?, ?, ?, ?, ?)", values)


def list_of(connection: apsw.Connection, root: str) -> list[Sent]:
    """Return what the place of a root has taken, oldest first."""
    sql = "SELECT key, memory, operation, said, supersedes FROM sent WHERE root = ? ORDER BY at"
    found: Any = connection.execute(sql, (root,)).fetchall()
    return [Sent(key, id, done, _decode(said), msgspec.json.decode(old)) for key, id, done, said, old in found]


def change(connection: apsw.Connection, memory: Memory) -> None:
    """Change a memory as it was changed at its place."""
    metadata = {name: value for name, value in memory.metadata.items() if name != "author"}
    fields: dict[str, Any] = {name: getattr(memory, name) for name in _CHANGED} | {"pinned": int(memory.pinned)}
    fields["metadata"] = msgspec.json.encode(metadata).decode()
    found: Any = connection.execute("SELECT key, said FROM sent WHERE memory = ?", (memory.id,)).fetchall()
    for key, said in found:
        row = msgspec.structs.replace(_decode(said), **fields)
        connection.execute("UPDATE sent SET said = ? WHERE key = ?", (_encode(row), key))


def remove(connection: apsw.Connection, ids: Iterable[str]) -> None:
    """Delete memories by their ids at the place."""
    connection.executemany("DELETE FROM sent WHERE memory = ?", [(id,) for id in ids])


def remove_others(connection: apsw.Connection, roots: Iterable[str], since: float) -> None:
    """Delete what was taken before `since`, or by other roots than these."""
    names = msgspec.json.encode(list(roots)).decode()
    connection.execute("DELETE FROM sent WHERE at < ? OR root NOT IN (SELECT value FROM json_each(?))", (since, names))


def find_oldest(connection: apsw.Connection) -> float | None:
    """Return when the oldest was taken, None if there is none."""
    oldest: Any = connection.execute("SELECT min(at) FROM sent").get
    return None if oldest is None else float(oldest)


def _encode(row: Row) -> str:
    return msgspec.json.encode(Image(row=row)).decode()


def _decode(said: str) -> Row:
    row = decode_image(said).row
    assert row is not None
    return row

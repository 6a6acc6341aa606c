"""What is shared with other machines, as this database knows it: roots, entries of shared memories, what is stuck.

A memory is shared if and only if it has an entry. Triggers (in the schema) make it when a memory is written into a
namespace that was chosen, and note each change as dirty, in the writer's transaction, whatever statement makes it.
What changes this machine's copy alone is done within `change_locally`.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import apsw
import msgspec

from memoryd.daemon.shared.tables.shared_schema import ADOPT, MAY_LEAVE, NEXT_CHANGE, TRIGGERS
from memoryd.daemon.store import rows
from memoryd.daemon.store.rows import Row

IN_FORCE = "SELECT name || ' ' || server FROM shared_roots"  # what a restored copy does not connect to
SHARES = "EXISTS (SELECT 1 FROM shared_entries e WHERE e.memory = m.id)"
Misfit = apsw.ConstraintError  # what a row raises that those here leave no place for


class Root(msgspec.Struct, kw_only=True):
    """A shared root. Field order = column order."""

    id: int = 0
    name: str
    server: str
    passfile: str
    conversations: int
    confirmed: int = 1
    writable: int = 1
    cursor: int = 0
    mark: int = 0
    lives: str = "[]"
    partial: int = 0
    added_at: float

    @property
    def timeline(self) -> list[tuple[str, int]]:
        """The lives of the root on its server, each with its first number."""
        return msgspec.json.decode(self.lives, type=list[tuple[str, int]])

    @property
    def life(self) -> str:
        """The life that the server was in when it was last seen; empty: it was not seen yet."""
        return self.timeline[-1][0] if self.timeline else ""


class SharedEntry(msgspec.Struct, kw_only=True):
    """A shared memory: which one it is on the server, and what the server is known to have of it."""

    root: int
    id: str
    memory: str | None
    tag: str = ""
    seq: int = 0
    dirty: int | None = None
    offered: list[str] = []
    offered_dirty: int | None = None
    conflict_of: str | None = None
    purged: int = 0
    deleted: int = 0
    lost_life: str | None = None
    lost_point: int | None = None
    namespace: int | None = None
    key: str | None = None
    device: str = ""
    author: str = ""
    further: str = "{}"


@contextmanager
def change_locally(connection: apsw.Connection) -> Iterator[None]:
    """Change this machine's copy alone within a transaction: nothing of it becomes a change for other machines."""
    made = connection.execute("INSERT OR IGNORE INTO shared_unnoticed VALUES (1) RETURNING 1").get
    try:
        yield
    finally:
        if made:  # else an outer one ends it
            connection.execute("DELETE FROM shared_unnoticed")


# Roots ---------------------------------------------------------------------------------------------------------------


def read_roots(connection: apsw.Connection) -> list[Root]:
    """Return the shared roots."""
    sql = f"SELECT {', '.join(Root.__struct_fields__)} FROM shared_roots ORDER BY name"
    return [Root(**dict(zip(Root.__struct_fields__, values, strict=True))) for values in connection.execute(sql)]


def find_root(connection: apsw.Connection, name: str) -> Root | None:
    """Return the shared root of a name."""
    return next((root for root in read_roots(connection) if root.name == name), None)


def add_root(connection: apsw.Connection, root: Root) -> int:
    """Insert a root; return its number."""
    return rows.insert_struct(connection, "shared_roots", root)


def remove_root(connection: apsw.Connection, root: int) -> None:
    """Forget a root with all its entries; the memories stay."""
    connection.execute("DELETE FROM shared_roots WHERE id = ?", (root,))
    if not connection.execute("SELECT count(*) FROM shared_roots").get:
        connection.execute("DELETE FROM shared_by_name")


def change_root(connection: apsw.Connection, root: int, **fields: Any) -> None:
    """Set columns of a root."""
    listed = ", ".join(f"{name} = ?" for name in fields)
    connection.execute(f"UPDATE shared_roots SET {listed} WHERE id = ?", (*fields.values(), root))


def count_leaving(connection: apsw.Connection, root: str, conversations: bool) -> list[tuple[str, int, int]]:
    """Return (namespace, memories that would be shared, memories that would stay) of each namespace of a root."""
    sql = (
        f"SELECT n.name, count(*) FILTER (WHERE {MAY_LEAVE}), count(*)"
        " FROM memories new JOIN namespaces n ON n.id = new.namespace CROSS JOIN (SELECT ?2 AS conversations) r"
        " WHERE n.name = ?1 OR substr(n.name, 1, length(?1) + 1) = ?1 || '/' GROUP BY n.name ORDER BY n.name"
    )
    found: Any = connection.execute(sql, (root, int(conversations)))
    return [(name, going, every - going) for name, going, every in found]


def share_namespaces(connection: apsw.Connection, root: int, namespaces: Iterable[int]) -> None:
    """Share the memories of namespaces from now on, those that are there included; the feed is read from its start."""
    for namespace in namespaces:
        connection.execute("INSERT OR REPLACE INTO shared_namespaces VALUES (?, ?)", (namespace, root))
    connection.execute(ADOPT, (root,))
    change_root(connection, root, cursor=0)


def list_shared_namespaces(connection: apsw.Connection, root: int | None = None) -> frozenset[int]:
    """Return the numbers of the namespaces of a root (None: of all) that are shared."""
    found: Any = connection.execute("SELECT namespace FROM shared_namespaces WHERE root = ifnull(?, root)", (root,))
    return frozenset(namespace for (namespace,) in found)


def name_for_sharing(connection: apsw.Connection, memory: str) -> None:
    """Note that somebody shared a memory by name: it may leave although it comes from a conversation."""
    connection.execute("INSERT OR IGNORE INTO shared_by_name VALUES (?)", (memory,))
    connection.execute("UPDATE memories SET type = type WHERE id = ?", (memory,))  # by which it gets its entry


def disarm(connection: apsw.Connection, in_force: Collection[str]) -> dict[str, list[str]]:
    """Have roots of a restored copy wait for a person, but those that are in force already; return their names."""
    waiting = [root for root in read_roots(connection) if f"{root.name} {root.server}" not in in_force]
    for root in waiting:
        change_root(connection, root.id, confirmed=0)
    return {"roots": [f"{root.name} ({root.server})" for root in waiting]}


def find_problems(connection: apsw.Connection) -> list[str]:
    """Return a line for each fault that a check of the schema does not see."""
    if not connection.execute("SELECT count(*) FROM shared_unnoticed").get:
        return []
    return ["shared_unnoticed: a row is left, so changes here go unnoticed"]


def clear(connection: apsw.Connection) -> None:
    """Have changes noticed again, and share what was added unnoticed; what was changed so stays here as it is."""
    connection.execute("DELETE FROM shared_unnoticed")
    for root in read_roots(connection):
        if root.writable:
            connection.execute(ADOPT, (root.id,))


def find_fault(connection: apsw.Connection) -> str:
    """Return why changes here may go unnoticed, empty where they do not."""
    there = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")}
    if missing := sorted(TRIGGERS - there):
        return f"The trigger {missing[0]} is missing, so changes here go unnoticed; `memctl repair` makes it again."
    if connection.execute("SELECT count(*) FROM shared_unnoticed").get:
        return "Changes here go unnoticed (a row is left in shared_unnoticed); `memctl repair` removes it."
    return ""


# Entries -------------------------------------------------------------------------------------------------------------

_FIELDS = SharedEntry.__struct_fields__
_SELECT = f"SELECT {', '.join(f'e.{name}' for name in _FIELDS)} FROM shared_entries e"
_HELD = "FROM shared_entries e JOIN memories m ON m.id = e.memory WHERE NOT e.purged"


def _select(connection: apsw.Connection, where: str, values: Sequence[Any], index: str = "") -> list[SharedEntry]:
    by = f" INDEXED BY {index}" if index else ""
    return [_decode(found) for found in connection.execute(f"{_SELECT}{by} WHERE {where}", values)]


def _decode(values: Any) -> SharedEntry:
    named = dict(zip(_FIELDS, values, strict=True))
    return SharedEntry(**{**named, "offered": msgspec.json.decode(named["offered"], type=list[str])})


def read_entries(connection: apsw.Connection, root: int, ids: Sequence[str]) -> dict[str, SharedEntry]:
    """Return the entries of a root by their ids there."""
    listed = msgspec.json.encode(list(ids)).decode()
    found = _select(connection, "e.root = ? AND e.id IN (SELECT value FROM json_each(?))", (root, listed))
    return {entry.id: entry for entry in found}


def read_of_memory(connection: apsw.Connection, memory: str) -> SharedEntry | None:
    """Return the entry of a memory here."""
    return next(iter(_select(connection, "e.memory = ?", (memory,))), None)


def put_entry(connection: apsw.Connection, entry: SharedEntry) -> None:
    """Write an entry."""
    values = {name: getattr(entry, name) for name in _FIELDS}
    values["offered"] = msgspec.json.encode(entry.offered).decode()
    marks = ", ".join("?" * len(values))
    connection.execute(
        f"INSERT OR REPLACE INTO shared_entries ({', '.join(_FIELDS)}) VALUES ({marks})", list(values.values())
    )


def forget_entry(connection: apsw.Connection, entry: SharedEntry) -> None:
    """Forget an entry, and why it was stuck."""
    connection.execute("DELETE FROM shared_entries WHERE root = ? AND id = ?", (entry.root, entry.id))
    forget_stuck(connection, entry)


def touch(connection: apsw.Connection, entry: SharedEntry) -> None:
    """Note an entry as changed here."""
    connection.execute(
        f"UPDATE shared_entries SET dirty = {NEXT_CHANGE} WHERE root = ? AND id = ?", (entry.root, entry.id)
    )


def find_id_there(connection: apsw.Connection, root: int, memory: str) -> str | None:
    """Return the id on the server of a memory here; None for one that is of this machine alone."""
    entry = read_of_memory(connection, memory)
    if entry is not None:
        return entry.id if entry.root == root else None
    return None if rows.read_ids(connection, [memory]) else memory


def find_id_here(connection: apsw.Connection, root: int, id: str) -> str:
    """Return the id here of a memory of the server."""
    entry = read_entries(connection, root, [id]).get(id)
    return entry.memory if entry and entry.memory else id


def read_origins(connection: apsw.Connection, memories: Sequence[str]) -> dict[str, str]:
    """Return which machine and role changed memories last, of those that another machine changed."""
    listed = msgspec.json.encode(list(memories)).decode()
    sql = (
        "SELECT memory, device || ' (' || author || ')' FROM shared_entries"
        " WHERE device <> '' AND memory IN (SELECT value FROM json_each(?))"
    )
    return dict(connection.execute(sql, (listed,)))


def count_memories(connection: apsw.Connection, root: int) -> int:
    """Return how many memories here the server has too."""
    return int(connection.execute(f"SELECT count(*) {_HELD} AND e.seq > 0 AND e.root = ?", (root,)).get)


def count_within(connection: apsw.Connection, reached: str) -> int | None:
    """Return how many memories within reach (a condition on `m`) a server has too; None while nothing is shared."""
    if not connection.execute("SELECT count(*) FROM shared_roots").get:
        return None
    return int(connection.execute(f"SELECT count(*) {_HELD} AND e.seq > 0 AND {reached}").get)


def list_memories(connection: apsw.Connection, root: int) -> list[str]:
    """Return the memories here that are shared."""
    sql = f"SELECT m.id {_HELD} AND e.root = ? ORDER BY m.row"
    return [memory for (memory,) in connection.execute(sql, (root,))]


def list_surplus(connection: apsw.Connection, root: int, count: int) -> list[tuple[int, str]]:
    """Return (row, id) of memories that may be on the server alone: what was never used first, then the oldest.

    Not what was written here, which the server may still lose; nor what is pinned, in conflict or to be pushed.
    """
    sql = (
        f"SELECT m.row, m.id {_HELD} AND e.root = ?1 AND e.seq > 0 AND e.dirty IS NULL AND e.lost_life IS NULL"
        " AND e.device <> '' AND e.conflict_of IS NULL AND NOT m.pinned"
        " AND NOT EXISTS (SELECT 1 FROM shared_entries s WHERE s.root = e.root AND s.conflict_of = e.id)"
        " ORDER BY m.access_count > 0, m.row LIMIT ?2"
    )
    return list(connection.execute(sql, (root, count)))


# Changes that wait ---------------------------------------------------------------------------------------------------

_NOT_STUCK = (
    "NOT EXISTS (SELECT 1 FROM shared_stuck s"
    " WHERE s.root = e.root AND s.id = e.id AND s.direction = 'out' AND s.dirty = coalesce(e.dirty, 0))"
)


def read_lost(connection: apsw.Connection, root: int, limit: int) -> list[SharedEntry]:
    """Return entries of versions that the server lost, without those that it refused."""
    where = f"e.root = ? AND e.lost_life IS NOT NULL AND {_NOT_STUCK} ORDER BY e.seq LIMIT ?"
    return _select(connection, where, (root, limit), "shared_entries_lost")


def read_dirty(connection: apsw.Connection, root: int, limit: int) -> list[SharedEntry]:
    """Return entries that were changed here, in the order of changes, without those that the server refused."""
    where = f"e.root = ? AND e.dirty IS NOT NULL AND {_NOT_STUCK} ORDER BY e.dirty LIMIT ?"
    return _select(connection, where, (root, limit), "shared_entries_dirty")


def count_waiting(connection: apsw.Connection, root: int) -> int:
    """Return how many memories of a root wait to be pushed, those that the server refused included."""
    sql = (
        "SELECT (SELECT count(*) FROM shared_entries INDEXED BY shared_entries_dirty"
        "    WHERE root = ?1 AND dirty IS NOT NULL)"
        " + (SELECT count(*) FROM shared_entries INDEXED BY shared_entries_lost"
        "    WHERE root = ?1 AND lost_life IS NOT NULL AND dirty IS NULL)"
    )
    return int(connection.execute(sql, (root,)).get)


def mark_lost(connection: apsw.Connection, root: int, timeline: Sequence[tuple[str, int]], point: int) -> int:
    """Note which versions a server lost: those with higher numbers than it and this machine have in common."""
    connection.execute(
        "UPDATE shared_entries SET lost_point = min(lost_point, ?2) WHERE root = ?1 AND lost_life IS NOT NULL",
        (root, point),
    )
    for number, (life, start) in enumerate(timeline):
        end = timeline[number + 1][1] if number + 1 < len(timeline) else 2**62
        connection.execute(
            "UPDATE shared_entries SET lost_life = ?2, lost_point = ?3"
            " WHERE root = ?1 AND lost_life IS NULL AND seq > ?3 AND seq >= ?4 AND seq < ?5"
            " AND (deleted OR purged OR EXISTS (SELECT 1 FROM memories m WHERE m.id = shared_entries.memory))",
            (root, life, point, start, end),
        )
    return int(
        connection.execute("SELECT count(*) FROM shared_entries WHERE root = ? AND lost_life IS NOT NULL", (root,)).get
    )


class Stuck(NamedTuple):
    """Why a memory cannot be exchanged as it is: its id there, the change here that is refused (None: it came in)."""

    id: str
    reason: str
    dirty: int | None = None


def note_stuck(connection: apsw.Connection, root: int, stuck: Stuck, now: float) -> None:
    """Note why a memory cannot be exchanged as it is."""
    direction = "in" if stuck.dirty is None else "out"
    values = (root, stuck.id, direction, stuck.dirty or 0, stuck.reason, now)
    connection.execute("INSERT OR REPLACE INTO shared_stuck VALUES (?, ?, ?, ?, ?, ?)", values)


def forget_stuck(connection: apsw.Connection, entry: SharedEntry) -> None:
    """Forget why a memory was stuck."""
    connection.execute("DELETE FROM shared_stuck WHERE root = ? AND id = ?", (entry.root, entry.id))


def read_stuck(connection: apsw.Connection, root: int) -> list[tuple[str, str]]:
    """Return (memory, reason) of what cannot be exchanged as it is."""
    sql = (
        "SELECT coalesce(e.memory, s.id), s.reason FROM shared_stuck s"
        " LEFT JOIN shared_entries e ON e.root = s.root AND e.id = s.id"
        " WHERE s.root = ? AND (s.direction = 'in' OR s.dirty = coalesce(e.dirty, 0)) ORDER BY s.id"
    )
    return list(connection.execute(sql, (root,)))


def mark_purged(connection: apsw.Connection, memories: Iterable[str]) -> None:
    """Note that shared memories are erased for good, which is pushed; one that never left is forgotten."""
    for memory in memories:
        entry = read_of_memory(connection, memory)
        if entry is None or entry.purged:
            continue
        if not (entry.tag or entry.offered or entry.seq):
            forget_entry(connection, entry)
            continue
        emptied = {"further": "{}", "device": "", "author": "", "key": None, "memory": None}
        put_entry(connection, msgspec.structs.replace(entry, purged=1, **emptied))
        touch(connection, entry)
        forget_stuck(connection, entry)


def find_siblings(connection: apsw.Connection, memories: Iterable[str]) -> list[str]:
    """Return the memories here that are other versions of some, made on other machines."""
    return [id for (id,) in connection.execute(_SIBLINGS, (msgspec.json.encode(sorted(memories)).decode(),))]


_SIBLINGS = (
    "SELECT s.memory FROM shared_entries e JOIN shared_entries s ON s.root = e.root AND s.id <> e.id"
    " AND s.conflict_of IN (e.id, iif(substr(e.conflict_of, 17) = substr(e.id, 17), NULL, e.conflict_of))"
    " AND substr(s.id, 17) = substr(e.id, 17)"  # not one that only wanted the same key
    " WHERE s.memory IS NOT NULL AND e.memory IN (SELECT value FROM json_each(?))"
)


# Conflicts -----------------------------------------------------------------------------------------------------------


def read_siblings(connection: apsw.Connection, root: int, id: str) -> list[SharedEntry]:
    """Return the entries that are other versions of a memory of the server."""
    return _select(connection, "e.root = ? AND e.conflict_of = ?", (root, id))


def end_conflict(connection: apsw.Connection, entry: SharedEntry) -> None:
    """Let another version of a memory be a memory of its own, which is pushed."""
    put_entry(connection, msgspec.structs.replace(entry, conflict_of=None))
    touch(connection, entry)


_CONFLICTS = (
    "FROM shared_entries e JOIN shared_entries f ON f.root = e.root AND f.id = e.conflict_of"
    " JOIN memories m ON m.id = e.memory JOIN memories o ON o.id = f.memory WHERE e.conflict_of IS NOT NULL"
)


def read_conflicts(connection: apsw.Connection, limit: int) -> list[tuple[Row, Row, str, str]]:
    """Return (memory, its other version, machine and author of that one) of the conflicts that are not resolved."""
    sql = f"SELECT f.memory, e.memory, e.device, e.author {_CONFLICTS} ORDER BY e.conflict_of, e.id LIMIT ?"
    found: Any = connection.execute(sql, (limit,)).fetchall()
    known = rows.read_ids(connection, list({id for values in found for id in values[:2]}))
    return [(known[memory], known[other], device, author) for memory, other, device, author in found]


def count_conflicts(connection: apsw.Connection, root: int) -> int:
    """Return how many conflicts of a root are not resolved."""
    return int(connection.execute(f"SELECT count(*) {_CONFLICTS} AND e.root = ?", (root,)).get)

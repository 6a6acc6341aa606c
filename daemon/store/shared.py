"""What is shared with other machines, as this database knows it: roots, versions, the outbox.

The outbox is filled by triggers in the writer's transaction, whatever statement changes a memory. They exist while a
root is shared and no longer, so a machine that shares nothing pays nothing. They list what may have changed; whether it
did, and whether it may leave this machine, is decided when it is pushed (`memoryd.daemon.shared.changes`).
"""

from collections.abc import Iterable, Sequence
from typing import Any

import apsw
import msgspec

from memoryd.daemon.store import rows
from memoryd.daemon.store.rows import Row

_WATCHED = (
    "namespace, key, type, source, importance, expires_at, pinned, superseded_by, turns, feedback, summary, metadata,"
    " content"
)
# Of which root a memory is: as its version says, or by its namespace.
_QUEUE = """
  INSERT OR REPLACE INTO shared_outbox (memory, root)
    SELECT memory, root FROM shared_versions WHERE memory = {0}.id
    UNION SELECT {0}.id, root FROM shared_namespaces WHERE namespace = {0}.namespace
      AND NOT EXISTS (SELECT 1 FROM shared_versions WHERE memory = {0}.id);
"""
_TRIGGERS = {
    "shared_added": f"AFTER INSERT ON memories BEGIN {_QUEUE.format('new')} END",
    "shared_changed": f"AFTER UPDATE OF {_WATCHED} ON memories BEGIN {_QUEUE.format('new')} END",
    "shared_deleted": f"AFTER DELETE ON memories BEGIN {_QUEUE.format('old')} END",
}


class Root(msgspec.Struct, kw_only=True):
    """A shared root. Field order = column order."""

    id: int = 0
    name: str
    server: str
    passfile: str
    conversations: int
    cursor: int = 0
    mark: int = 0
    tag: str = ""
    added_at: float
    partial: int = 0  # the server has memories that are not here


class Version(msgspec.Struct, kw_only=True):
    """The version of one memory that the server has, or is to get. Field order = column order."""

    memory: str
    root: int
    version: str = ""
    ancestors: list[str] = []
    body: bytes = b""
    pushed: int = 0
    purged: int = 0
    namespace: str = ""
    conflict_of: str | None = None
    machine: str = ""
    author: str = ""
    further: str = "{}"


class Queued(msgspec.Struct):
    """A memory in the outbox; `change` is the number of its latest change."""

    change: int
    memory: str


# Roots ---------------------------------------------------------------------------------------------------------------


def read_roots(connection: apsw.Connection) -> list[Root]:
    """Return the shared roots."""
    sql = f"SELECT {', '.join(Root.__struct_fields__)} FROM shared_roots ORDER BY name"
    return [Root(**dict(zip(Root.__struct_fields__, values, strict=True))) for values in connection.execute(sql)]


def add_root(connection: apsw.Connection, root: Root) -> int:
    """Insert a root and watch what changes in it; return its number."""
    number = rows.insert_struct(connection, "shared_roots", root)
    for name, rest in _TRIGGERS.items():
        connection.execute(f"CREATE TRIGGER IF NOT EXISTS {name} {rest}")
    return number


def remove_root(connection: apsw.Connection, root: int) -> None:
    """Forget a root with its versions and outbox; with the last one the triggers are dropped."""
    connection.execute(
        "DELETE FROM shared_stuck WHERE memory IN (SELECT memory FROM shared_versions WHERE root = ?1"
        " UNION SELECT memory FROM shared_outbox WHERE root = ?1)",
        (root,),
    )
    for table in ("shared_outbox", "shared_versions", "shared_namespaces"):
        connection.execute(f"DELETE FROM {table} WHERE root = ?", (root,))
    connection.execute("DELETE FROM shared_roots WHERE id = ?", (root,))
    if not connection.execute("SELECT count(*) FROM shared_roots").get:
        connection.execute("DELETE FROM shared_by_name")
        for name in _TRIGGERS:
            connection.execute(f"DROP TRIGGER IF EXISTS {name}")


def change_root(connection: apsw.Connection, root: int, **fields: Any) -> None:
    """Set columns of a root."""
    listed = ", ".join(f"{name} = ?" for name in fields)
    connection.execute(f"UPDATE shared_roots SET {listed} WHERE id = ?", (*fields.values(), root))


def read_root_rows(connection: apsw.Connection, name: str) -> list[tuple[str, Row]]:
    """Return (namespace, row) of what is in a root, for counting; texts are cut."""
    sql = "SELECT n.id, n.name FROM namespaces n WHERE n.name = ?1 OR substr(n.name, 1, length(?1) + 1) = ?1 || '/'"
    found: Any = connection.execute(sql, (name,))
    return [
        (namespace, row)
        for number, namespace in found.fetchall()
        for row in rows.select_beginnings(connection, "m.namespace = ?", (number,), 1)
    ]


def share_namespaces(connection: apsw.Connection, root: int, namespaces: Iterable[int]) -> None:
    """Share the memories of namespaces from now on, those that are there included."""
    for namespace in namespaces:
        connection.execute("INSERT OR REPLACE INTO shared_namespaces VALUES (?, ?)", (namespace, root))
        connection.execute(
            "INSERT OR IGNORE INTO shared_outbox (memory, root)"
            " SELECT m.id, ? FROM memories m WHERE m.namespace = ? ORDER BY m.row",
            (root, namespace),
        )


def list_shared_namespaces(connection: apsw.Connection, root: int) -> frozenset[int]:
    """Return the numbers of the namespaces of a root that are shared."""
    found: Any = connection.execute("SELECT namespace FROM shared_namespaces WHERE root = ?", (root,))
    return frozenset(namespace for (namespace,) in found)


def name_for_sharing(connection: apsw.Connection, memory: str) -> None:
    """Note that somebody shared a memory by name: it may leave although it comes from a conversation."""
    sql = "INSERT OR IGNORE INTO shared_by_name SELECT ?1 WHERE EXISTS (SELECT 1 FROM shared_roots)"
    connection.execute(sql, (memory,))


def is_named(connection: apsw.Connection, memory: str) -> bool:
    """Return whether somebody shared a memory by name, also before its root was shared."""
    found = "SELECT 1 FROM shared_by_name WHERE memory = ?1 UNION SELECT 1 FROM links WHERE origin = ?1 AND kind = ?2"
    return connection.execute(found, (memory, "shared_from")).fetchone() is not None


# Versions ------------------------------------------------------------------------------------------------------------

_FIELDS = Version.__struct_fields__
_SELECT = f"SELECT {', '.join(_FIELDS)} FROM shared_versions"
_COUNT = "SELECT count(*) FROM shared_versions v JOIN memories m ON m.id = v.memory WHERE v.pushed AND NOT v.purged"


def read_versions(connection: apsw.Connection, memories: Sequence[str]) -> dict[str, Version]:
    """Return the versions of those of these memories that have one."""
    listed = msgspec.json.encode(list(memories)).decode()
    found: Any = connection.execute(f"{_SELECT} WHERE memory IN (SELECT value FROM json_each(?))", (listed,))
    return {values[0]: _decode(values) for values in found}


def read_origins(connection: apsw.Connection, memories: Sequence[str]) -> dict[str, str]:
    """Return which machine and role changed memories last, of those that another machine changed."""
    listed = msgspec.json.encode(list(memories)).decode()
    sql = (
        "SELECT memory, machine || ' (' || author || ')' FROM shared_versions"
        " WHERE machine <> '' AND memory IN (SELECT value FROM json_each(?))"
    )
    return dict(connection.execute(sql, (listed,)))


def read_all_versions(connection: apsw.Connection, root: int) -> dict[str, str]:
    """Return the version of each memory of a root."""
    return dict(connection.execute("SELECT memory, version FROM shared_versions WHERE root = ?", (root,)))


def put_version(connection: apsw.Connection, version: Version) -> None:
    """Write the version of a memory."""
    values = {name: getattr(version, name) for name in _FIELDS}
    values["ancestors"] = msgspec.json.encode(version.ancestors).decode()
    marks = ", ".join("?" * len(values))
    connection.execute(f"INSERT OR REPLACE INTO shared_versions VALUES ({marks})", list(values.values()))


def forget_version(connection: apsw.Connection, memory: str) -> None:
    """Forget the version of a memory that the server does not have any more."""
    connection.execute("DELETE FROM shared_versions WHERE memory = ?", (memory,))


def _decode(values: Any) -> Version:
    named = dict(zip(_FIELDS, values, strict=True))
    return Version(**{**named, "ancestors": msgspec.json.decode(named["ancestors"], type=list[str])})


def count_memories(connection: apsw.Connection, root: int) -> int:
    """Return how many memories here the server has too."""
    return int(connection.execute(f"{_COUNT} AND v.root = ?", (root,)).get)


def count_within(connection: apsw.Connection, reached: str) -> int | None:
    """Return how many memories within reach (a condition on `m`) a server has too; None while nothing is shared."""
    if not connection.execute("SELECT count(*) FROM shared_roots").get:
        return None
    return int(connection.execute(f"{_COUNT} AND {reached}").get)


def list_memories(connection: apsw.Connection, root: int) -> list[str]:
    """Return the memories here that the server has too, or is to get."""
    sql = "SELECT v.memory FROM shared_versions v JOIN memories m ON m.id = v.memory WHERE v.root = ? ORDER BY m.row"
    return [memory for (memory,) in connection.execute(sql, (root,))]


def read_siblings(connection: apsw.Connection, memory: str) -> list[str]:
    """Return the memories that are other versions of a memory."""
    found: Any = connection.execute("SELECT memory FROM shared_versions WHERE conflict_of = ?", (memory,))
    return [sibling for (sibling,) in found]


def read_conflicts(connection: apsw.Connection, limit: int) -> list[tuple[Row, Row, str, str]]:
    """Return (memory, its other version, machine and author of that one) of the conflicts that are not resolved."""
    found: Any = connection.execute(
        "SELECT v.conflict_of, v.memory, v.machine, v.author FROM shared_versions v"
        " JOIN memories m ON m.id = v.memory JOIN memories o ON o.id = v.conflict_of"
        " WHERE v.conflict_of IS NOT NULL ORDER BY v.conflict_of, v.memory LIMIT ?",
        (limit,),
    ).fetchall()
    known = rows.read_ids(connection, list({id for values in found for id in values[:2]}))
    return [(known[memory], known[other], machine, author) for memory, other, machine, author in found]


def count_conflicts(connection: apsw.Connection, root: int) -> int:
    """Return how many conflicts of a root are not resolved."""
    sql = (
        "SELECT count(*) FROM shared_versions v WHERE v.root = ? AND v.conflict_of IS NOT NULL"
        " AND EXISTS (SELECT 1 FROM memories WHERE id = v.memory)"
        " AND EXISTS (SELECT 1 FROM memories WHERE id = v.conflict_of)"
    )
    return int(connection.execute(sql, (root,)).get)


def list_surplus(connection: apsw.Connection, root: int, count: int) -> list[tuple[int, str]]:
    """Return (row, id) of memories that may be on the server alone: what was never used first, then the oldest.

    Not what was written here, which the server may still lose; nor what is pinned, in conflict or to be pushed.
    """
    sql = (
        "SELECT m.row, m.id FROM shared_versions v JOIN memories m ON m.id = v.memory WHERE v.root = ?1 AND v.pushed"
        " AND NOT v.purged AND v.machine <> '' AND v.conflict_of IS NULL AND NOT m.pinned"
        " AND NOT EXISTS (SELECT 1 FROM shared_outbox o WHERE o.memory = m.id)"
        " AND NOT EXISTS (SELECT 1 FROM shared_versions s WHERE s.conflict_of = m.id)"
        " ORDER BY m.access_count > 0, m.row LIMIT ?2"
    )
    return list(connection.execute(sql, (root, count)))


# Outbox --------------------------------------------------------------------------------------------------------------


def read_outbox(connection: apsw.Connection, root: int, after: int, limit: int) -> list[Queued]:
    """Return the next memories to be pushed, without those that the server refused as they are."""
    sql = (
        "SELECT o.id, o.memory FROM shared_outbox o WHERE o.root = ? AND o.id > ? AND NOT EXISTS"
        " (SELECT 1 FROM shared_stuck s WHERE s.memory = o.memory AND s.change = o.id) ORDER BY o.id LIMIT ?"
    )
    return [Queued(change, memory) for change, memory in connection.execute(sql, (root, after, limit))]


def queue(connection: apsw.Connection, memory: str, root: int) -> None:
    """Put a memory into the outbox; a push that is under way does not take it out again."""
    connection.execute("INSERT OR REPLACE INTO shared_outbox (memory, root) VALUES (?, ?)", (memory, root))


def unqueue(connection: apsw.Connection, memory: str, change: int | None = None) -> None:
    """Take a memory out of the outbox, unless it was changed after the change of this number."""
    connection.execute("DELETE FROM shared_outbox WHERE memory = ?1 AND (?2 IS NULL OR id = ?2)", (memory, change))
    sql = "DELETE FROM shared_stuck WHERE memory = ?1 AND NOT EXISTS (SELECT 1 FROM shared_outbox WHERE memory = ?1)"
    connection.execute(sql, (memory,))


def count_outbox(connection: apsw.Connection, root: int) -> int:
    """Return how many memories of a root wait to be pushed."""
    return int(connection.execute("SELECT count(*) FROM shared_outbox WHERE root = ?", (root,)).get)


def note_stuck(connection: apsw.Connection, queued: Queued, reason: str, now: float) -> None:
    """Note that the server refuses a memory as it is."""
    sql = "INSERT OR REPLACE INTO shared_stuck VALUES (?, ?, ?, ?)"
    connection.execute(sql, (queued.memory, queued.change, reason, now))


def read_stuck(connection: apsw.Connection, root: int) -> list[tuple[str, str]]:
    """Return (memory, reason) of what the server refuses."""
    sql = (
        "SELECT s.memory, s.reason FROM shared_stuck s JOIN shared_outbox o ON o.memory = s.memory AND o.id = s.change"
        " WHERE o.root = ? ORDER BY s.memory"
    )
    return list(connection.execute(sql, (root,)))


def mark_purged(connection: apsw.Connection, memories: Iterable[str]) -> None:
    """Note that shared memories are erased for good, which is pushed; one that never left is forgotten."""
    for version in read_versions(connection, list(memories)).values():
        unqueue(connection, version.memory)
        if not version.version:
            forget_version(connection, version.memory)
        elif not version.purged:
            emptied = {"further": "{}", "machine": "", "author": ""}
            put_version(connection, msgspec.structs.replace(version, purged=1, pushed=0, **emptied))
            queue(connection, version.memory, version.root)

"""Links between memories: origin, target, kind and time of creation. A link is deleted with either end."""

from collections.abc import Iterable, Sequence
from typing import Any

import apsw
import msgspec

from memoryd.client.protocol import Link
from memoryd.daemon.store.filters import ALIVE, alive_values

CONTRADICTS = "contradicts"
DISMISSED = "dismissed"  # replaces `contradicts` when somebody dismisses that link
StoredLink = tuple[str, str, str, float]  # origin, target, kind, created_at
_COLUMNS = "l.origin, l.target, l.kind, l.created_at"


def add(connection: apsw.Connection, origin: str, target: str, kind: str, now: float) -> None:
    """Link two memories; a contradiction that was dismissed stays dismissed."""
    connection.execute(
        "INSERT OR IGNORE INTO links SELECT ?1, ?2, ?3, ?4 WHERE ?3 <> ?5 OR NOT EXISTS (SELECT 1 FROM links"
        " WHERE kind = ?6 AND ((origin = ?1 AND target = ?2) OR (origin = ?2 AND target = ?1)))",
        (origin, target, kind, now, CONTRADICTS, DISMISSED),
    )


def dismiss(connection: apsw.Connection, one: str, other: str, *, restore: bool = False) -> bool:
    """Dismiss the contradiction of two memories, or undo that; return whether anything changed."""
    was, now = (DISMISSED, CONTRADICTS) if restore else (CONTRADICTS, DISMISSED)
    sql = (
        "UPDATE OR REPLACE links SET kind = ? WHERE kind = ?"
        " AND ((origin = ? AND target = ?) OR (target = ? AND origin = ?)) RETURNING 1"
    )
    return bool(connection.execute(sql, (now, was, one, other, one, other)).fetchall())


def find_contradicted(connection: apsw.Connection, memory: str) -> list[str]:
    """Return the ids of memories that are linked to a memory as a contradiction, in either direction."""
    sql = (
        "SELECT target FROM links WHERE origin = ?1 AND kind = ?2"
        " UNION SELECT origin FROM links WHERE target = ?1 AND kind = ?2"
    )
    return [other for (other,) in connection.execute(sql, (memory, CONTRADICTS))]


def remove_contradiction(connection: apsw.Connection, one: str, other: str) -> bool:
    """Delete the `contradicts` link between two memories; return whether there was one."""
    sql = (
        "DELETE FROM links WHERE kind = ?3 AND ((origin = ?1 AND target = ?2) OR (origin = ?2 AND target = ?1))"
        " RETURNING 1"
    )
    return bool(connection.execute(sql, (one, other, CONTRADICTS)).fetchall())


def select_contradictions(
    connection: apsw.Connection, reached: str, limit: int, now: float
) -> list[tuple[str, str, float]]:
    """Return (newer, older, when) of the latest links between memories alive at `now` in the `reached` namespaces."""
    sql = (
        "SELECT l.origin, l.target, l.created_at FROM links l"
        f" WHERE l.kind = ? AND EXISTS (SELECT 1 FROM memories m WHERE m.id = l.origin AND {reached} AND {ALIVE})"
        f" AND EXISTS (SELECT 1 FROM memories m WHERE m.id = l.target AND {reached} AND {ALIVE})"
        " ORDER BY l.created_at DESC, l.origin LIMIT ?"
    )
    return list(connection.execute(sql, (CONTRADICTS, *alive_values(now), *alive_values(now), limit)))


def find_versions(connection: apsw.Connection, ids: Sequence[str]) -> list[tuple[int, int]]:
    """Return (newer, older) rows of memories that contradict each other, where one of the two is among `ids`."""
    if not ids:
        return []
    ids_sql = "SELECT value FROM json_each(?1)"
    links = (
        f"SELECT origin, target FROM links WHERE kind = '{CONTRADICTS}' AND origin IN ({ids_sql})"
        f" UNION SELECT origin, target FROM links WHERE kind = '{CONTRADICTS}' AND target IN ({ids_sql})"
    )
    pairs: Any = connection.execute(
        f"SELECT n.row, o.row, n.created_at >= o.created_at FROM ({links}) l"
        " CROSS JOIN memories n ON n.id = l.origin CROSS JOIN memories o ON o.id = l.target",
        (msgspec.json.encode(ids).decode(),),
    )
    return [(there, here) if is_newer else (here, there) for there, here, is_newer in pairs]


def restore(connection: apsw.Connection, links: Iterable[StoredLink]) -> None:
    """Insert deleted links again if both ends exist."""
    connection.executemany(
        "INSERT OR IGNORE INTO links (origin, target, kind, created_at) SELECT ?1, ?2, ?3, ?4"
        " WHERE (SELECT count(*) FROM memories WHERE id IN (?1, ?2)) = 2",
        links,
    )


def read_links(connection: apsw.Connection, memory: str) -> list[StoredLink]:
    """Return the links from or to a memory."""
    return list(connection.execute(f"SELECT {_COLUMNS} FROM links l WHERE l.origin = ?1 OR l.target = ?1", (memory,)))


def read_within(connection: apsw.Connection, ids: Sequence[str], reached: str) -> dict[str, list[Link]]:
    """Return the links from or to each id whose other end is in the `reached` namespaces (a condition on `m`)."""
    join = "" if reached == "TRUE" else f" CROSS JOIN memories m ON m.id = {{}} AND {reached}"
    ids_sql = "(SELECT value FROM json_each(?1))"
    entries: Any = connection.execute(
        f"SELECT l.origin, {_COLUMNS} FROM links l{join.format('l.target')} WHERE l.origin IN {ids_sql}"
        f" UNION SELECT l.target, {_COLUMNS} FROM links l{join.format('l.origin')} WHERE l.target IN {ids_sql}",
        (msgspec.json.encode(ids).decode(),),
    )
    links: dict[str, list[Link]] = {}
    for key, origin, target, kind, created_at in entries:
        links.setdefault(key, []).append(Link(origin=origin, target=target, kind=kind, created_at=created_at))
    return links


def remove(connection: apsw.Connection, memories: Iterable[str]) -> None:
    """Delete the links from and to memories."""
    ends = [(memory,) for memory in memories]
    connection.executemany("DELETE FROM links WHERE origin = ?", ends)
    connection.executemany("DELETE FROM links WHERE target = ?", ends)

"""Statements that change the graph of L2, each for one node. Run in the writer's transaction.

A node whose `size` differs from the number of its members is unsettled: its centroid is computed again later.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import apsw
import numpy as np

from memoryd.daemon.store.graph import strengthen
from memoryd.daemon.store.vectors import Vector


def insert_node(
    connection: apsw.Connection, node: int, of: tuple[int, int, str, str], size: int, mean: Vector, now: float
) -> None:
    """Insert a node; `of` is its namespace, model, kind and label."""
    connection.execute(
        "INSERT INTO nodes (id, namespace, model, kind, label, size, created_at, updated_at, centroid)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8)",
        (node, *of, size, now, _encode(mean)),
    )


def delete_node(connection: apsw.Connection, node: int) -> None:
    """Delete a node with its edges and memberships."""
    connection.execute("DELETE FROM nodes WHERE id = ?", (node,))


def update_centroid(connection: apsw.Connection, node: int, size: int, mean: Vector, now: float) -> None:
    """Set the centroid of a node and the number of members that it is the mean of."""
    sql = "UPDATE nodes SET size = ?2, centroid = ?3, settled = 0, updated_at = ?4 WHERE id = ?1"
    connection.execute(sql, (node, size, _encode(mean), now))


def update_concept(connection: apsw.Connection, node: int, label: str, mean: Vector, now: float) -> None:
    """Set label and centroid of a concept; its size is the number of clusters that it represents."""
    connection.execute(
        "UPDATE nodes SET label = ?2, centroid = ?3, settled = 1, updated_at = ?4, named_by = '', named_of = NULL,"
        " size = (SELECT count(*) FROM edges WHERE origin = ?1 AND kind = 'abstracted_from') WHERE id = ?1",
        (node, label, _encode(mean), now),
    )


def mark_unsettled(connection: apsw.Connection, node: int) -> None:
    """Have a node compared with all others again: it has fewer members."""
    connection.execute("UPDATE nodes SET settled = 0 WHERE id = ?", (node,))


def settle(connection: apsw.Connection, node: int, size: int, label: str) -> bool:
    """Give a cluster its label and note that it was compared; return False when its members changed since."""
    connection.execute(
        "UPDATE nodes SET label = ?3, settled = 1, named_by = CASE WHEN label = ?3 THEN named_by ELSE '' END,"
        " named_of = CASE WHEN label = ?3 THEN named_of END WHERE id = ?1 AND size = ?2 AND kind = 'cluster'"
        " AND size = (SELECT count(*) FROM members WHERE node = ?1)",
        (node, size, label),
    )
    return connection.changes() == 1


def join_from_backlog(connection: apsw.Connection, node: int, namespace: int, new: Iterable[tuple[int, bytes]]) -> None:
    """Make memories (row, hash of the text) members of a node, unless they changed since."""
    connection.executemany(
        "INSERT INTO members SELECT b.memory, ?1 FROM backlog b CROSS JOIN memories m ON m.row = b.memory"
        " WHERE b.memory = ?2 AND m.text_hash = ?3 AND m.namespace = ?4",
        [(node, row, text_hash, namespace) for row, text_hash in new],
    )


def leave_nodes(connection: apsw.Connection, memories: Iterable[int]) -> None:
    """Take memories out of their nodes."""
    connection.executemany("DELETE FROM members WHERE memory = ?", ((row,) for row in memories))


def move_members(connection: apsw.Connection, node: int, moved: Iterable[tuple[int, int]]) -> None:
    """Move memories (row, its node now) into a node."""
    sql = "UPDATE members SET node = ?1 WHERE memory = ?2 AND node = ?3"
    connection.executemany(sql, [(node, row, former) for row, former in moved])


def merge_nodes(connection: apsw.Connection, into: int, merged: int) -> None:
    """Move members and edges of one node to another and delete it."""
    connection.execute("UPDATE members SET node = ? WHERE node = ?", (into, merged))
    copy_weights(connection, into, merged)
    connection.execute(
        "INSERT OR IGNORE INTO edges SELECT ?1, target, kind, weight FROM edges"
        " WHERE origin = ?2 AND kind = 'derived_from' AND target <> ?1",
        (into, merged),
    )
    connection.execute(
        "INSERT OR IGNORE INTO edges SELECT origin, ?1, kind, weight FROM edges"
        " WHERE target = ?2 AND kind <> 'co_occurs' AND origin <> ?1",
        (into, merged),
    )
    delete_node(connection, merged)


def copy_weights(connection: apsw.Connection, node: int, other: int) -> None:
    """Add to a node the `co_occurs` weights of another."""
    found: list[Any] = connection.execute(
        "SELECT CASE WHEN origin = ?1 THEN target ELSE origin END, weight FROM edges"
        " WHERE (origin = ?1 OR target = ?1) AND kind = 'co_occurs'",
        (other,),
    ).fetchall()
    for neighbour, weight in found:
        strengthen(connection, [(node, neighbour)], weight)


def put_edge(connection: apsw.Connection, origin: int, target: int, kind: str, weight: float) -> None:
    """Insert or replace an edge, unless its target was deleted."""
    connection.execute(
        "INSERT OR REPLACE INTO edges (origin, target, kind, weight) SELECT ?1, ?2, ?3, ?4"
        " WHERE EXISTS (SELECT 1 FROM nodes WHERE id = ?2)",
        (origin, target, kind, float(weight)),
    )


def delete_abstractions(connection: apsw.Connection, concept: int) -> None:
    """Delete the edges from a concept to the clusters that it represents."""
    connection.execute("DELETE FROM edges WHERE origin = ? AND kind = 'abstracted_from'", (concept,))


def put_topic(connection: apsw.Connection, topic: int, namespace: int, label: str) -> bool:
    """Insert or rename a topic; return False when its number is another namespace's by now."""
    return bool(
        connection.execute(
            "INSERT INTO topics (id, namespace, label) VALUES (?1, ?2, ?3)"
            " ON CONFLICT DO UPDATE SET label = excluded.label WHERE namespace = excluded.namespace RETURNING 1",
            (topic, namespace, label),
        ).get
    )


def delete_topic(connection: apsw.Connection, topic: int, namespace: int) -> None:
    """Delete a topic."""
    connection.execute("DELETE FROM topics WHERE id = ? AND namespace = ?", (topic, namespace))


def assign_topic(connection: apsw.Connection, topic: int, namespace: int, nodes: Sequence[int]) -> None:
    """Note the topic of nodes; 0 is that of nodes which belong to none."""
    sql = "UPDATE nodes SET topic = ? WHERE id = ? AND namespace = ?"
    connection.executemany(sql, [(topic, node, namespace) for node in nodes])


def size_of(connection: apsw.Connection, node: int) -> int | None:
    """Return the size that a node was given, None when there is no such node."""
    size: Any = connection.execute("SELECT size FROM nodes WHERE id = ?", (node,)).get
    return size  # type: ignore[no-any-return]


def count_members(connection: apsw.Connection, node: int) -> int:
    """Return how many memories are in a node."""
    return int(connection.execute("SELECT count(*) FROM members WHERE node = ?", (node,)).get)


def _encode(mean: Vector) -> bytes:
    return mean.astype(np.float32, copy=False).tobytes()

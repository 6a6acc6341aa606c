"""The graph of L2 on disk: nodes, their members, the edges between them.

A centroid is stored as the running mean of its members' unit vectors; it is renormalised where it is compared. `size`
is the number of members in that mean: where it differs from the members that are there, the mean has to be rebuilt.
`co_occurs` edges are undirected and stored with origin < target; the other kinds point from what was made to what it
was made of. Reads may be given thousands of numbers; results hold only what exists. Each statement that changes the
graph is for one node; it runs in the writer's transaction.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import apsw
import numpy as np

from memoryd.daemon.store.vectors import Vector, build_matrix

CLUSTER, CONCEPT = "cluster", "concept"
DERIVED_FROM, ABSTRACTED_FROM = "derived_from", "abstracted_from"
_MOST_MET = 5  # nodes of one search that count as having met


class StoredNode(NamedTuple):
    """One node without its centroid; `topic` is None where the topics are older than the node, 0 where it has none."""

    id: int
    namespace: int
    kind: str
    label: str
    topic: int | None
    size: int
    settled: int
    created_at: float
    updated_at: float
    named_by: str


class Waiting(NamedTuple):
    """A memory of the backlog that has a vector."""

    row: int
    text_hash: bytes


_NODE = f"SELECT {', '.join('n.' + name for name in StoredNode._fields)} FROM nodes n"
# Strongest first; among equals the older node. The window bounds the list of each node.
_NEIGHBOURS = (
    "SELECT here, there, weight FROM (SELECT here, there, weight,"
    " row_number() OVER (PARTITION BY here ORDER BY weight DESC, there) AS place FROM ("
    "SELECT origin AS here, target AS there, weight FROM edges WHERE origin IN ({0}) AND kind = 'co_occurs'"
    " UNION ALL "
    "SELECT target, origin, weight FROM edges WHERE target IN ({0}) AND kind = 'co_occurs'"
    ") {1}) WHERE place <= ? ORDER BY here, place"
)
_STRENGTHEN = (
    "INSERT INTO edges (origin, target, kind, weight) SELECT ?1, ?2, 'co_occurs', ?3"
    # A node may be deleted since the search that saw it.
    " WHERE (SELECT count(*) FROM nodes WHERE id IN (?1, ?2)) = 2"
    " ON CONFLICT DO UPDATE SET weight = weight + excluded.weight"
)


def select_nodes(connection: apsw.Connection, where: str, values: Sequence[Any] = ()) -> list[StoredNode]:
    """Return the nodes for a condition (and ORDER BY, LIMIT) on the alias `n`."""
    return [StoredNode._make(found) for found in connection.execute(f"{_NODE} WHERE {where}", values)]


def find_node(connection: apsw.Connection, node: int, within: str = "TRUE") -> StoredNode | None:
    """Return a node if it exists within reach (a condition on `n`)."""
    return next(iter(select_nodes(connection, f"n.id = ? AND {within}", (node,))), None)


def read_nodes(connection: apsw.Connection, numbers: Iterable[int]) -> list[StoredNode]:
    """Return those nodes that exist, by rising number."""
    return select_nodes(connection, f"n.id IN ({join(numbers)}) ORDER BY n.id")


def read_kind(
    connection: apsw.Connection, model: int, kind: str, namespace: int | None = None, unsettled: bool = False
) -> list[StoredNode]:
    """Return the nodes of a kind and model, of a namespace or all, by rising number; or only the `unsettled` ones."""
    where = f"n.model = ? AND n.kind = {kind!r}"  # the literal lets the index of unsettled clusters be used
    where += " AND n.namespace = ?" * (namespace is not None) + " AND n.settled = 0" * unsettled
    values = (model,) if namespace is None else (model, namespace)
    return select_nodes(connection, f"{where} ORDER BY n.id", values)


def read_unnamed(connection: apsw.Connection, limit: int) -> list[StoredNode]:
    """Return settled nodes that a language model has not named."""
    where = "n.named_of IS NULL AND n.settled = 1 AND n.size > 1 ORDER BY n.id LIMIT ?"
    return select_nodes(connection, where, (limit,))


def read_after(connection: apsw.Connection, number: int, within: str, limit: int) -> list[StoredNode]:
    """Return the next nodes after a number within reach (a condition on `n`), by rising number."""
    return select_nodes(connection, f"n.id > ? AND {within} ORDER BY n.id LIMIT ?", (number, limit))


def find_nodes(connection: apsw.Connection, rows: Iterable[int]) -> dict[int, int]:
    """Return the node of each memory that has one."""
    return dict(connection.execute(f"SELECT memory, node FROM members WHERE memory IN ({join(rows)})"))


def read_members(connection: apsw.Connection, numbers: Iterable[int]) -> dict[int, list[int]]:
    """Return the memories of each node that has any, by rising row number."""
    members: dict[int, list[int]] = {}
    sql = f"SELECT node, memory FROM members WHERE node IN ({join(numbers)}) ORDER BY node, memory"
    for node, memory in connection.execute(sql):
        members.setdefault(node, []).append(memory)
    return members


def neighbours(
    connection: apsw.Connection, numbers: Iterable[int], limit: int, namespaces: frozenset[int] | None = None
) -> dict[int, list[tuple[int, float]]]:
    """Return the nodes that co-occurred with each node and how often, strongest first, at most `limit` each."""
    found: dict[int, list[tuple[int, float]]] = {}
    # Looked up for each neighbour: `there IN (SELECT …)` walks all nodes of the namespaces.
    among = (
        "" if namespaces is None else f"WHERE (SELECT namespace FROM nodes WHERE id = there) IN ({join(namespaces)})"
    )
    for here, there, weight in connection.execute(_NEIGHBOURS.format(join(numbers), among), (limit,)):
        found.setdefault(here, []).append((there, weight))
    return found


def note_searches(connection: apsw.Connection, searches: Sequence[Iterable[int]]) -> None:
    """Strengthen the edges between the nodes of rows that one search found together, each search's best few nodes."""
    nodes = find_nodes(connection, {row for rows in searches for row in rows})
    met: Counter[tuple[int, int]] = Counter()
    for rows in searches:
        found = list(dict.fromkeys(nodes[row] for row in rows if row in nodes))[:_MOST_MET]
        met.update(combinations(sorted(found), 2))
    for weight in set(met.values()):
        strengthen(connection, [pair for pair, count in met.items() if count == weight], float(weight))


def strengthen(connection: apsw.Connection, pairs: Iterable[tuple[int, int]], weight: float = 1.0) -> None:
    """Add `weight` to the `co_occurs` edge of each pair of nodes, making it if it is new (on the writer's connection).

    A pair of one node with itself or with a node that no longer exists is left out; the order within a pair is of no
    meaning.
    """
    edges = [(min(pair), max(pair), weight) for pair in pairs if pair[0] != pair[1]]
    connection.executemany(_STRENGTHEN, edges)


def read_centroids(connection: apsw.Connection, numbers: Iterable[int]) -> tuple[list[int], Vector]:
    """Return the means of those nodes that exist, as (nodes, matrix); not of unit length."""
    sql = f"SELECT id, centroid FROM nodes WHERE id IN ({join(numbers)}) ORDER BY id"
    rows: list[Any] = connection.execute(sql).fetchall()
    return [node for node, _ in rows], build_matrix([blob for _, blob in rows])


def read_vectors(connection: apsw.Connection, model: int, rows: Iterable[int]) -> tuple[list[Waiting], Vector]:
    """Return memories that have a vector of the model, with their vectors, by rising row number."""
    found: list[Any] = connection.execute(
        "SELECT m.row, m.text_hash, e.vector FROM memories m NOT INDEXED CROSS JOIN vec_embeddings e"
        f" ON e.text_hash = m.text_hash AND e.model = ? WHERE m.row IN ({join(rows)}) ORDER BY m.row",
        (model,),
    ).fetchall()
    return [Waiting(row, key) for row, key, _ in found], build_matrix([blob for _, _, blob in found])


def read_backlog(connection: apsw.Connection, model: int) -> dict[int, list[int]]:
    """Return the memories that wait for a node and have a vector, by namespace and rising row number."""
    backlog: dict[int, list[int]] = {}
    sql = (
        "SELECT m.namespace, m.row FROM backlog b CROSS JOIN memories m ON m.row = b.memory"
        " WHERE EXISTS (SELECT 1 FROM vec_embeddings e WHERE e.model = ? AND e.text_hash = m.text_hash)"
        " ORDER BY m.row"
    )
    for namespace, row in connection.execute(sql, (model,)):
        backlog.setdefault(namespace, []).append(row)
    return backlog


def count_waiting(connection: apsw.Connection) -> int:
    """Return how many memories of L2 wait for a node, those without a vector included."""
    return int(connection.execute("SELECT count(*) FROM backlog").get)


def find_targets(connection: apsw.Connection, origins: Iterable[int], kind: str) -> dict[int, list[int]]:
    """Return the nodes that edges of a kind lead to from each node that has any, by rising number."""
    found: dict[int, list[int]] = {}
    sql = f"SELECT origin, target FROM edges WHERE origin IN ({join(origins)}) AND kind = ? ORDER BY origin, target"
    for origin, target in connection.execute(sql, (kind,)):
        found.setdefault(origin, []).append(target)
    return found


def read_co_occurrences(connection: apsw.Connection, namespace: int) -> list[tuple[int, int, float]]:
    """Return the `co_occurs` edges (origin, target, weight) between nodes of one namespace."""
    sql = (
        "SELECT e.origin, e.target, e.weight FROM edges e"
        " JOIN nodes a ON a.id = e.origin JOIN nodes b ON b.id = e.target"
        " WHERE e.kind = 'co_occurs' AND a.namespace = ?1 AND b.namespace = ?1"
    )
    return list(connection.execute(sql, (namespace,)))


def read_sequence(connection: apsw.Connection, table: str) -> int:
    """Return the largest number that a table with AUTOINCREMENT ever gave."""
    number = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).get
    return number if isinstance(number, int) else 0


def join(numbers: Iterable[int]) -> str:
    """Return numbers for a list in a statement."""
    return ", ".join(map(str, numbers))


# Writing -------------------------------------------------------------------------------------------------------------


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
    sql = (
        "INSERT INTO topics (id, namespace, label) VALUES (?1, ?2, ?3)"
        " ON CONFLICT DO UPDATE SET label = excluded.label WHERE namespace = excluded.namespace RETURNING 1"
    )
    return bool(connection.execute(sql, (topic, namespace, label)).get)


def delete_topic(connection: apsw.Connection, topic: int, namespace: int) -> None:
    """Delete a topic."""
    connection.execute("DELETE FROM topics WHERE id = ? AND namespace = ?", (topic, namespace))


def assign_topic(connection: apsw.Connection, topic: int, namespace: int, nodes: Sequence[int]) -> None:
    """Note the topic of nodes; 0 is that of nodes which belong to none."""
    sql = "UPDATE nodes SET topic = ? WHERE id = ? AND namespace = ?"
    connection.executemany(sql, [(topic, node, namespace) for node in nodes])


def size_of(connection: apsw.Connection, node: int) -> int | None:
    """Return the size that a node was given, None when there is no such node."""
    size: int | None = connection.execute("SELECT size FROM nodes WHERE id = ?", (node,)).get
    return size


def count_members(connection: apsw.Connection, node: int) -> int:
    """Return how many memories are in a node."""
    return int(connection.execute("SELECT count(*) FROM members WHERE node = ?", (node,)).get)


def erase(connection: apsw.Connection, ids: Sequence[str], numbers: Sequence[int]) -> None:
    """Delete the nodes of some memories with concepts and topics above them, whose labels may have their words."""
    listed = ", ".join(map(str, numbers))
    nodes = f"SELECT node FROM members WHERE memory IN ({listed})"
    above = (
        f"SELECT origin FROM edges WHERE target IN ({nodes}) UNION SELECT target FROM edges WHERE origin IN ({nodes})"
    )
    sql = f"SELECT id, topic FROM nodes WHERE id IN ({nodes}) OR (kind <> 'cluster' AND id IN ({above}))"
    found: Any = connection.execute(sql).fetchall()
    topics = ", ".join({str(topic) for _, topic in found if topic})
    for node, _ in found:
        connection.execute("DELETE FROM names WHERE node = ?", (node,))
        delete_node(connection, node)
    connection.execute(f"UPDATE nodes SET topic = NULL WHERE topic IN ({topics})")
    connection.execute(f"DELETE FROM topics WHERE id IN ({topics})")


def _encode(mean: Vector) -> bytes:
    return mean.astype(np.float32, copy=False).tobytes()

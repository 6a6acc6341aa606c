"""What clustering writes, and how: each step carries one of these values, and is checked again before it is written.

A step names the state it was planned for (sizes, where a memory was, its text); where that holds no more it is skipped,
and the next run plans anew. A node whose `size` is not the number of its members, for whatever reason, is unsettled and
gets a new centroid from the members that are there. Numbers of new nodes are part of the plan, so that a dry run shows
what will be.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import apsw
import numpy as np

from memoryd.daemon.core.core import Core
from memoryd.daemon.lifecycle.work import Step
from memoryd.daemon.store.graph import ABSTRACTED_FROM, CLUSTER, CONCEPT, DERIVED_FROM, strengthen
from memoryd.daemon.store.vectors import Vector
from memoryd.daemon.store.writer import Transaction

# What a step did, in the counts of a run.
DONE = {
    "found": "founded",
    "join": "joined",
    "split": "split",
    "merge": "merged",
    "recentre": "recentred",
    "drop": "dropped",
    "name": "named",
    "abstract": "abstracted",
    "topic": "topics",
}


class Coming(NamedTuple):
    """A memory that comes into a node, from the backlog (`node` 0) or from another node."""

    row: int
    text_hash: bytes
    node: int


class Put(NamedTuple):
    """A node takes in memories, or is left with fewer. `was` is its size before, 0 for a new one."""

    node: int
    namespace: int
    model: int
    was: int
    size: int
    coming: tuple[Coming, ...]
    mean: Vector
    label: str


class Merge(NamedTuple):
    """Node `gone` becomes part of node `into`; their sizes before."""

    into: int
    gone: int
    sizes: tuple[int, int]
    namespace: int
    model: int
    mean: Vector


class Drop(NamedTuple):
    """A node has no members any more; or a concept stands for nothing."""

    node: int


class Name(NamedTuple):
    """A node of this size was compared with all others and gets its label."""

    node: int
    size: int
    label: str


class Concept(NamedTuple):
    """A concept node over these clusters."""

    node: int
    namespace: int
    model: int
    new: bool
    clusters: tuple[int, ...]
    mean: Vector
    label: str


class Topic(NamedTuple):
    """These nodes belong to a topic; 0 is that of the nodes which belong to none. Without nodes it ends."""

    topic: int
    namespace: int
    label: str
    nodes: tuple[int, ...]


def apply(core: Core, transaction: Transaction, steps: Sequence[Step], operation: int) -> dict[str, int]:
    """Write a slice of steps; the graph is derived, so nothing goes into the operation's history."""
    del operation
    counts: Counter[str] = Counter()
    for step in steps:
        done = _WRITERS[type(step.data)](core, transaction, step.data)
        counts[DONE[step.action] if done else "skipped"] += 1
    return dict(counts)


def _put(core: Core, transaction: Transaction, put: Put) -> bool:
    connection = transaction.connection
    if put.was == 0:
        if _size(connection, put.node) is not None:
            return False
        _insert(core, connection, put.node, put, CLUSTER, put.size)
    elif _size(connection, put.node) != put.was:
        return False
    _move(connection, put)
    if put.was == 0 and _members(connection, put.node) == 0:
        connection.execute("DELETE FROM nodes WHERE id = ?", (put.node,))
        return False
    _recentre(core, transaction, put.node, put.size, put)
    if put.was == 0:
        _inherit(connection, put)
    return True


def _move(connection: apsw.Connection, put: Put) -> None:
    connection.executemany(
        "INSERT INTO members SELECT b.memory, ?1 FROM backlog b CROSS JOIN memories m ON m.row = b.memory"
        " WHERE b.memory = ?2 AND m.text_hash = ?3 AND m.namespace = ?4",
        [(put.node, row, text_hash, put.namespace) for row, text_hash, node in put.coming if not node],
    )
    connection.executemany(
        "UPDATE members SET node = ?1 WHERE memory = ?2 AND node = ?3",
        [(put.node, row, node) for row, _, node in put.coming if node],
    )


def _inherit(connection: apsw.Connection, put: Put) -> None:
    """Give a part that was split off the edges of the node it comes from, and an edge to that node."""
    for parent, count in Counter(coming.node for coming in put.coming if coming.node).items():
        strengthen_like(connection, put.node, parent)
        _edge(connection, put.node, parent, DERIVED_FROM, count)
        connection.execute("UPDATE nodes SET settled = 0 WHERE id = ?", (parent,))  # it has members less


def _merge(core: Core, transaction: Transaction, merge: Merge) -> bool:
    connection = transaction.connection
    into, gone = merge.into, merge.gone
    if (_size(connection, into), _size(connection, gone)) != merge.sizes:
        return False
    connection.execute("UPDATE members SET node = ? WHERE node = ?", (into, gone))
    strengthen_like(connection, into, gone)
    connection.execute(
        "INSERT OR IGNORE INTO edges SELECT ?1, target, kind, weight FROM edges"
        " WHERE origin = ?2 AND kind = 'derived_from' AND target <> ?1",
        (into, gone),
    )
    connection.execute(
        "INSERT OR IGNORE INTO edges SELECT origin, ?1, kind, weight FROM edges"
        " WHERE target = ?2 AND kind <> 'co_occurs' AND origin <> ?1",
        (into, gone),
    )
    connection.execute("DELETE FROM nodes WHERE id = ?", (gone,))
    _recentre(core, transaction, into, sum(merge.sizes), merge)
    transaction.after_commit(lambda: core.centroids.remove(gone))
    return True


def strengthen_like(connection: apsw.Connection, node: int, other: int) -> None:
    """Add to a node the `co_occurs` weights of another."""
    found: list[Any] = connection.execute(
        "SELECT CASE WHEN origin = ?1 THEN target ELSE origin END, weight FROM edges"
        " WHERE (origin = ?1 OR target = ?1) AND kind = 'co_occurs'",
        (other,),
    ).fetchall()
    for neighbour, weight in found:
        strengthen(connection, [(node, neighbour)], weight)


def _drop(core: Core, transaction: Transaction, drop: Drop) -> bool:
    connection = transaction.connection
    if _size(connection, drop.node) is None or _members(connection, drop.node):
        return False
    connection.execute("DELETE FROM nodes WHERE id = ?", (drop.node,))
    transaction.after_commit(lambda: core.centroids.remove(drop.node))
    return True


def _name(core: Core, transaction: Transaction, name: Name) -> bool:
    transaction.after_commit(core.cognition.thoughts.set)  # a language model may name it
    transaction.connection.execute(
        "UPDATE nodes SET label = ?3, settled = 1, named_by = CASE WHEN label = ?3 THEN named_by ELSE '' END,"
        " named_of = CASE WHEN label = ?3 THEN named_of END WHERE id = ?1 AND size = ?2 AND kind = 'cluster'"
        " AND size = (SELECT count(*) FROM members WHERE node = ?1)",
        name,
    )
    return transaction.connection.changes() == 1


def _concept(core: Core, transaction: Transaction, concept: Concept) -> bool:
    connection = transaction.connection
    there = _size(connection, concept.node) is not None
    if there == concept.new:
        return False
    if concept.new:
        _insert(core, connection, concept.node, concept, CONCEPT, 0)
    connection.execute("DELETE FROM edges WHERE origin = ? AND kind = 'abstracted_from'", (concept.node,))
    for cluster in concept.clusters:
        _edge(connection, concept.node, cluster, ABSTRACTED_FROM, 1.0)
    connection.execute(
        "UPDATE nodes SET label = ?2, centroid = ?3, settled = 1, updated_at = ?4, named_by = '', named_of = NULL,"
        " size = (SELECT count(*) FROM edges WHERE origin = ?1 AND kind = 'abstracted_from') WHERE id = ?1",
        (concept.node, concept.label, _blob(concept.mean), core.clock()),
    )
    return True


def _topic(core: Core, transaction: Transaction, topic: Topic) -> bool:
    del core
    connection = transaction.connection
    if topic.topic and topic.nodes:
        kept = connection.execute(
            "INSERT INTO topics (id, namespace, label) VALUES (?1, ?2, ?3)"
            " ON CONFLICT DO UPDATE SET label = excluded.label WHERE namespace = excluded.namespace RETURNING 1",
            topic[:3],
        ).get
        if not kept:
            return False  # the plan is old: the number is another namespace's by now
    elif topic.topic:
        connection.execute("DELETE FROM topics WHERE id = ? AND namespace = ?", (topic.topic, topic.namespace))
    connection.executemany(
        "UPDATE nodes SET topic = ? WHERE id = ? AND namespace = ?",
        [(topic.topic, node, topic.namespace) for node in topic.nodes],
    )
    return True


_WRITERS: dict[type, Callable[[Core, Transaction, Any], bool]] = {
    Put: _put,
    Merge: _merge,
    Drop: _drop,
    Name: _name,
    Concept: _concept,
    Topic: _topic,
}


def _insert(core: Core, connection: apsw.Connection, node: int, made: Put | Concept, kind: str, size: int) -> None:
    connection.execute(
        "INSERT INTO nodes (id, namespace, model, kind, label, size, created_at, updated_at, centroid)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8)",
        (node, made.namespace, made.model, kind, made.label, size, core.clock(), _blob(made.mean)),
    )


def _recentre(core: Core, transaction: Transaction, node: int, size: int, made: Put | Merge) -> None:
    transaction.connection.execute(
        "UPDATE nodes SET size = ?2, centroid = ?3, settled = 0, updated_at = ?4 WHERE id = ?1",
        (node, size, _blob(made.mean), core.clock()),
    )
    transaction.after_commit(lambda: core.centroids.put(made.model, node, made.namespace, made.mean))


def _edge(connection: apsw.Connection, origin: int, target: int, kind: str, weight: float) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO edges (origin, target, kind, weight) SELECT ?1, ?2, ?3, ?4"
        " WHERE EXISTS (SELECT 1 FROM nodes WHERE id = ?2)",
        (origin, target, kind, float(weight)),
    )


def _size(connection: apsw.Connection, node: int) -> int | None:
    size: Any = connection.execute("SELECT size FROM nodes WHERE id = ?", (node,)).get
    return size  # type: ignore[no-any-return]


def _members(connection: apsw.Connection, node: int) -> int:
    count: Any = connection.execute("SELECT count(*) FROM members WHERE node = ?", (node,)).get
    return int(count)


def _blob(mean: Vector) -> bytes:
    return mean.astype(np.float32, copy=False).tobytes()

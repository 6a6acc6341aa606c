"""What clustering writes, and how: each step carries one of these values, and is checked again before it is written.

A step names the state it was planned for (sizes, where a memory was, its text); where that holds no more it is skipped,
and the next run plans again. A node whose `size` is not the number of its members, for whatever reason, is unsettled
and gets a new centroid from the members that are there. Numbers of new nodes are part of the plan, so that a dry run
shows what will be.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from memoryd.daemon.core.core import Core
from memoryd.daemon.core.work import Step
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.vectors import Vector
from memoryd.daemon.store.writer import Transaction
from memoryd.daemon.topics.nodes import Centroids
from memoryd.daemon.topics.tables import graph as store
from memoryd.daemon.topics.tables.graph import ABSTRACTED_FROM, CLUSTER, CONCEPT, DERIVED_FROM

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


class PutNode(NamedTuple):
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
    """Node `gone` is merged into node `into`; their sizes before."""

    into: int
    gone: int
    sizes: tuple[int, int]
    namespace: int
    model: int
    mean: Vector


class Drop(NamedTuple):
    """A node has no members any more; or a concept represents nothing."""

    node: int


class NameNode(NamedTuple):
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


class SetTopic(NamedTuple):
    """These nodes belong to a topic; 0 is that of the nodes which belong to none. Without nodes it ends."""

    topic: int
    namespace: int
    label: str
    nodes: tuple[int, ...]


def apply(core: Core, transaction: Transaction, steps: Sequence[Step], operation: str) -> dict[str, int]:
    """Write a slice of steps; the graph is derived, so the operation's history holds nothing of it."""
    counts: Counter[str] = Counter()
    for step in steps:
        done = _WRITERS[type(step.data)](core, transaction, step.data)
        counts[DONE[step.action] if done else "skipped"] += 1
    return dict(counts)


def _put(core: Core, transaction: Transaction, put: PutNode) -> bool:
    connection = transaction.connection
    if put.was == 0:
        if store.size_of(connection, put.node) is not None:
            return False
        _insert(core, connection, put, CLUSTER, put.size)
    elif store.size_of(connection, put.node) != put.was:
        return False
    new = [(row, text_hash) for row, text_hash, node in put.coming if not node]
    store.join_from_backlog(connection, put.node, put.namespace, new)
    store.move_members(connection, put.node, [(row, node) for row, _, node in put.coming if node])
    if put.was == 0 and store.count_members(connection, put.node) == 0:
        store.delete_node(connection, put.node)
        return False
    _recentre(core, transaction, put.node, put.size, put)
    if put.was == 0:
        _inherit(connection, put)
    return True


def _inherit(connection: Connection, put: PutNode) -> None:
    """Give a part that was split off the edges of the node it comes from, and an edge to that node."""
    for parent, count in Counter(coming.node for coming in put.coming if coming.node).items():
        store.copy_weights(connection, put.node, parent)
        store.put_edge(connection, put.node, parent, DERIVED_FROM, count)
        store.mark_unsettled(connection, parent)


def _merge(core: Core, transaction: Transaction, merge: Merge) -> bool:
    connection = transaction.connection
    into, gone = merge.into, merge.gone
    if (store.size_of(connection, into), store.size_of(connection, gone)) != merge.sizes:
        return False
    store.merge_nodes(connection, into, gone)
    _recentre(core, transaction, into, sum(merge.sizes), merge)
    transaction.after_commit(lambda: core.state(Centroids).remove(gone))
    return True


def _drop(core: Core, transaction: Transaction, drop: Drop) -> bool:
    connection = transaction.connection
    if store.size_of(connection, drop.node) is None or store.count_members(connection, drop.node):
        return False
    store.delete_node(connection, drop.node)
    transaction.after_commit(lambda: core.state(Centroids).remove(drop.node))
    return True


def _name(core: Core, transaction: Transaction, name: NameNode) -> bool:
    transaction.after_commit(core.cognition.wake.set)  # a language model may name it
    return store.settle(transaction.connection, *name)


def _write_concept(core: Core, transaction: Transaction, concept: Concept) -> bool:
    connection = transaction.connection
    if (store.size_of(connection, concept.node) is not None) == concept.new:
        return False
    if concept.new:
        _insert(core, connection, concept, CONCEPT, 0)
    store.delete_abstractions(connection, concept.node)
    for cluster in concept.clusters:
        store.put_edge(connection, concept.node, cluster, ABSTRACTED_FROM, 1.0)
    store.update_concept(connection, concept.node, concept.label, concept.mean, core.clock())
    return True


def _write_topic(core: Core, transaction: Transaction, topic: SetTopic) -> bool:
    connection = transaction.connection
    if topic.topic and topic.nodes:
        if not store.put_topic(connection, topic.topic, topic.namespace, topic.label):
            return False
    elif topic.topic:
        store.delete_topic(connection, topic.topic, topic.namespace)
    store.assign_topic(connection, topic.topic, topic.namespace, topic.nodes)
    return True


_WRITERS: dict[type, Callable[[Core, Transaction, Any], bool]] = {
    PutNode: _put,
    Merge: _merge,
    Drop: _drop,
    NameNode: _name,
    Concept: _write_concept,
    SetTopic: _write_topic,
}


def _insert(core: Core, connection: Connection, made: PutNode | Concept, kind: str, size: int) -> None:
    of = (made.namespace, made.model, kind, made.label)
    store.insert_node(connection, made.node, of, size, made.mean, core.clock())


def _recentre(core: Core, transaction: Transaction, node: int, size: int, made: PutNode | Merge) -> None:
    store.update_centroid(transaction.connection, node, size, made.mean, core.clock())
    transaction.after_commit(lambda: core.state(Centroids).put(made.model, node, made.namespace, made.mean))

"""The calls that read the graph within a caller's reach: lists of nodes, one node with its neighbours, topics."""

from typing import Any

import numpy as np

from memoryd.client import protocol
from memoryd.client.protocol import topics as calls
from memoryd.daemon.core.core import Core
from memoryd.daemon.embedding.generation import Generation
from memoryd.daemon.memories.changing import visible_condition
from memoryd.daemon.registry import handles
from memoryd.daemon.store import rows, vectors
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.vectors import Vector
from memoryd.daemon.topics.clusters import scale_to_unit
from memoryd.daemon.topics.tables import graph
from memoryd.daemon.topics.tables.graph import ABSTRACTED_FROM, CLUSTER, PREFIX, StoredNode

SIMILAR = 5  # similar nodes that are shown
_NEAR = 64  # memories nearest to a node, whose nodes are compared with it
_PREVIEW = 200


@handles(calls.GraphNodes)
def list_nodes(core: Core, call: calls.GraphNodes) -> calls.NodePage:
    """Return one page of nodes, or one node with its members and neighbours."""
    within = _condition(core, call)
    for prefix in (call.node, call.topic):
        if prefix is not None:
            rows.check_prefix(prefix.removeprefix(PREFIX))
    with core.store.reading() as connection:
        if call.node is not None:
            return _read_node(core, connection, call.node, within)
        nodes, total = graph.list_nodes(connection, within, call.query, call.topic, (call.limit, call.offset))
    return calls.NodePage(nodes=[_show(core, node) for node in nodes], total=total)


@handles(calls.GraphTopics)
def list_topics(core: Core, call: calls.GraphTopics) -> calls.TopicList:
    """Return the topics within reach, the largest first."""
    within = _condition(core, call)
    with core.store.reading() as connection:
        found = graph.list_topics(connection, within)
        alone = graph.count_without_topic(connection, within)
    shown = [
        calls.Topic(
            id=name,
            namespace=core.store.namespaces.name(place),
            label=label,
            about=_shorten(about),
            nodes=nodes,
            memories=memories,
        )
        for name, place, label, about, nodes, memories in found
    ]
    return calls.TopicList(topics=shown, alone=alone)


def _condition(core: Core, call: protocol.Scoped[Any]) -> str:
    return visible_condition(core, call).replace("m.namespace", "n.namespace")


def _read_node(core: Core, connection: Connection, prefix: str, within: str) -> calls.NodePage:
    found = graph.find_named(connection, prefix, within, rows.CANDIDATES)
    rows.choose_unique(prefix, [node.name for node in found], "node")
    [node] = found
    members = graph.read_present_members(connection, node.id)
    generation = core.embedding.active
    centre = _find_centre(connection, generation, [row for row, *_ in members]) if generation else None
    cosines = _compute_cosines(connection, generation, [row for row, *_ in members], centre)
    shown = [
        calls.NodeMember(id=id, preview=_shorten(text), created_at=at, similarity=cosines.get(row))
        for row, id, text, at in members
    ]
    neighbours = _list_neighbours(core, connection, node, within)
    if generation and centre is not None and node.kind == CLUSTER:
        neighbours += _find_similar(core, connection, generation, node, centre)
    return calls.NodePage(
        nodes=[_show(core, node)],
        total=1,
        members=sorted(shown, key=lambda member: (-(member.similarity or -2.0), member.created_at)),
        neighbours=neighbours,
    )


def _show(core: Core, node: StoredNode) -> calls.Node:
    return calls.Node(
        id=node.name,
        namespace=core.store.namespaces.name(node.namespace),
        kind="cluster" if node.kind == CLUSTER else "concept",
        label=node.label,
        about=_shorten(node.about),
        size=node.size,
        topic=node.topic,
        named_by=node.named_by or "rules",
    )


def _list_neighbours(core: Core, connection: Connection, node: StoredNode, within: str) -> list[calls.Neighbour]:
    edges = graph.edges_of(connection, node.id, within)
    known = {one.id: one for one in graph.read_nodes(connection, {other for _, other, _, _ in edges})}
    return [
        _describe(known[other], "abstraction" if kind == ABSTRACTED_FROM and not outward else kind, weight)
        for kind, other, weight, outward in edges
    ]


def _describe(node: StoredNode, relation: Any, weight: float) -> calls.Neighbour:
    return calls.Neighbour(
        node=node.name, label=node.label, about=_shorten(node.about), relation=relation, weight=weight
    )


def _find_similar(
    core: Core, connection: Connection, generation: Generation, node: StoredNode, centre: Vector
) -> list[calls.Neighbour]:
    """Return the related clusters nearest to a cluster in the same namespace."""
    near = generation.index.find_nearest(centre, _NEAR, namespaces=frozenset([node.namespace])).rows.tolist()
    numbers = set(graph.find_nodes(connection, near).values()) - {node.id}
    cosines = {}
    for number, members in graph.read_members(connection, numbers).items():
        other = _find_centre(connection, generation, members)
        if other is not None:
            cosines[number] = round(float(other @ centre), 4)
    related = [one for one in graph.read_nodes(connection, cosines) if one.namespace == node.namespace]
    related = [one for one in related if cosines[one.id] >= generation.embedder.floors.related]
    best = sorted(related, key=lambda one: (-cosines[one.id], one.id))[:SIMILAR]
    return [_describe(one, "similar", cosines[one.id]) for one in best]


def _find_centre(connection: Connection, generation: Generation, members: list[int]) -> Vector | None:
    """Return the centre of memories as a unit vector, None if none has a vector."""
    found, matrix = vectors.read_exact(connection, generation.model, members)
    return np.ascontiguousarray(scale_to_unit(matrix.sum(axis=0)[None, :])[0]) if found else None


def _compute_cosines(
    connection: Connection, generation: Generation | None, members: list[int], centre: Vector | None
) -> dict[int, float]:
    if generation is None or centre is None:
        return {}
    found, matrix = vectors.read_exact(connection, generation.model, members)
    return {row: round(value, 4) for row, value in zip(found, (matrix @ centre).tolist(), strict=True)}


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _PREVIEW else line[: _PREVIEW - 1] + "…"

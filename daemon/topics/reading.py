"""Reading the graph for people: lists, one node with its surroundings, topics, export, all within a caller's reach."""

from typing import Any

import numpy as np

from memoryd.client import protocol
from memoryd.client.errors import NotFound
from memoryd.client.protocol import topics as calls
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories.changing import visible_condition
from memoryd.daemon.registry import handles
from memoryd.daemon.store import vectors
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.vectors import Vector
from memoryd.daemon.topics.clusters import unit
from memoryd.daemon.topics.nodes import Centroids
from memoryd.daemon.topics.tables import graph as stored
from memoryd.daemon.topics.tables import graph_reading

SIMILAR = 5  # similar nodes that are shown
EXPORTED_SIMILAR = 3
_PREVIEW = 200
_OTHER_END: dict[str, Any] = {"derived_from": "derived", "abstracted_from": "abstraction", "co_occurs": "co_occurs"}


@handles(calls.GraphNodes)
def list_nodes(core: Core, call: calls.GraphNodes) -> calls.NodePage:
    """Return one page of nodes."""
    exact = [("kind", call.kind), ("topic", call.topic)]
    page = (call.sort, call.limit, call.offset)
    with core.store.reading() as connection:
        nodes, total = graph_reading.find_nodes(connection, _condition(core, call), call.query, exact, page)
        waiting = graph_reading.count_backlog(connection, visible_condition(core, call))
    return calls.NodePage(nodes=[_show(core, node) for node in nodes], total=total, waiting=waiting)


@handles(calls.GraphEdges)
def edges(core: Core, call: calls.GraphEdges) -> calls.EdgePage:
    """Return one page of edges with both ends within reach."""
    window = (call.limit, call.offset)
    with core.store.reading() as connection:
        rows, total = graph_reading.find_edges(connection, _condition(core, call), call.kind, call.node, window)
        ends = {end for origin, target, _, _ in rows for end in (origin, target)}
        labels = graph_reading.read_labels(connection, ends)
    return calls.EdgePage(edges=_edges(rows), total=total, labels=sorted(labels.items()))


@handles(calls.GraphNode)
def show(core: Core, call: calls.GraphNode) -> calls.NodeDetail:
    """Return one node with its members and neighbours; raise `NotFound` for one that is not within reach."""
    within = _condition(core, call)
    with core.store.reading() as connection:
        node = stored.find_node(connection, call.node, within)
        if node is None:
            raise NotFound(f"There is no node {call.node}.", {"node": call.node})
        return calls.NodeDetail(
            node=_show(core, node),
            topic=graph_reading.read_topic_label(connection, node.topic),
            members=_read_members(core, connection, node),
            neighbours=[*_neighbours(connection, node.id, within), *_find_similar(core, connection, node, SIMILAR)],
        )


@handles(calls.GraphTopics)
def topics(core: Core, call: calls.GraphTopics) -> calls.TopicList:
    """Return the topics within reach, the largest first."""
    within = _condition(core, call)
    with core.store.reading() as connection:
        rows = graph_reading.find_topics(connection, within)
        alone = graph_reading.count_without_topic(connection, within)
    shown = [
        calls.Topic(id=id, namespace=core.store.namespaces.name(place), label=label, nodes=nodes, memories=memories)
        for id, place, label, nodes, memories in rows
    ]
    return calls.TopicList(topics=shown, alone=alone)


@handles(calls.GraphExport)
def export(core: Core, call: calls.GraphExport) -> calls.GraphPart:
    """Return the next part of the graph."""
    within = _condition(core, call)
    with core.store.reading() as connection:
        nodes = stored.read_after(connection, call.after, within, call.limit)
        previews = _read_previews(connection, [node.id for node in nodes], call.preview)
        edges = _edges(graph_reading.edges_of(connection, within, [node.id for node in nodes]))
        exported = [
            calls.ExportedNode(
                node=_show(core, node),
                members=previews.get(node.id, []),
                similar=[(n.node, n.weight) for n in _find_similar(core, connection, node, EXPORTED_SIMILAR)],
            )
            for node in nodes
        ]
    more = nodes[-1].id if len(nodes) == call.limit else None
    return calls.GraphPart(nodes=exported, edges=edges, next=more)


# Parts ----------------------------------------------------------------------------------------------------------------


def _condition(core: Core, call: protocol.Scoped[Any]) -> str:
    """Return the SQL condition on the nodes `n` that a call reaches."""
    return visible_condition(core, call).replace("m.namespace", "n.namespace")


def _show(core: Core, node: stored.StoredNode) -> calls.Node:
    return calls.Node(
        id=node.id,
        namespace=core.store.namespaces.name(node.namespace),
        kind="concept" if node.kind == stored.CONCEPT else "cluster",
        label=node.label,
        size=node.size,
        topic=node.topic or None,
        created_at=node.created_at,
        updated_at=node.updated_at,
        named_by=node.named_by or "rules",
    )


def _edges(rows: list[graph_reading.EdgeRow]) -> list[calls.Edge]:
    return [calls.Edge(origin=a, target=b, kind=kind, weight=weight) for a, b, kind, weight in rows]


def _read_members(core: Core, connection: Connection, node: stored.StoredNode) -> list[calls.NodeMember]:
    rows = stored.read_members(connection, [node.id]).get(node.id, [])
    similarities = _compute_similarities(core, connection, node, rows)
    found = graph_reading.read_beginnings(connection, rows, 2 * _PREVIEW)
    members = [
        calls.NodeMember(id=id, preview=_shorten(text, _PREVIEW), created_at=at, similarity=similarities.get(row))
        for row, id, text, at in found
    ]
    return sorted(members, key=lambda member: (-(member.similarity or -2.0), member.created_at))


def _compute_similarities(
    core: Core, connection: Connection, node: stored.StoredNode, rows: list[int]
) -> dict[int, float]:
    generation = core.embedding.active
    centre = _find_centre(connection, node.id)
    if generation is None or centre is None or not rows:
        return {}
    numbers, matrix = vectors.read_exact(connection, generation.model, rows)
    if matrix.shape[1:] != centre.shape:
        return {}
    return {row: round(value, 4) for row, value in zip(numbers, (matrix @ centre).tolist(), strict=True)}


def _find_centre(connection: Connection, node: int) -> Vector | None:
    _, means = stored.read_centroids(connection, [node])
    return unit(means)[0] if len(means) else None


def _neighbours(connection: Connection, node: int, within: str) -> list[calls.Neighbour]:
    rows = graph_reading.neighbours_of(connection, node, within)
    return [
        calls.Neighbour(node=other, label=label, relation=kind if outward else _OTHER_END[kind], weight=weight)
        for kind, other, label, weight, outward in rows
    ]


def _find_similar(core: Core, connection: Connection, node: stored.StoredNode, count: int) -> list[calls.Neighbour]:
    """Return the clusters of the same namespace nearest to a cluster, from what counts as related on."""
    generation = core.embedding.active
    centre = _find_centre(connection, node.id)
    if generation is None or centre is None or node.kind != stored.CLUSTER:
        return []
    if len(centre) != generation.index.dimensions:
        return []
    place = frozenset([node.namespace])
    near = core.state(Centroids).find_nearest(
        connection, generation.model, np.ascontiguousarray(centre), count + 1, place
    )
    near = [(other, cosine) for other, cosine in near if other != node.id][:count]
    labels = graph_reading.read_labels(connection, {other for other, _ in near})
    return [
        calls.Neighbour(node=other, label=labels[other], relation="similar", weight=round(cosine, 4))
        for other, cosine in near
        if cosine >= generation.embedder.floors.related
    ]


def _read_previews(connection: Connection, numbers: list[int], length: int) -> dict[int, list[str]]:
    texts: dict[int, list[str]] = {}
    if length:
        for node, text in graph_reading.read_member_texts(connection, numbers, 2 * length):
            texts.setdefault(node, []).append(_shorten(text, length))
    return texts


def _shorten(text: str, length: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"

"""Reading the graph for people: lists, one node with its surroundings, topics, export, all within a caller's reach."""

import re
from typing import Any

import apsw
import numpy as np

from memoryd.client.errors import NotFound
from memoryd.client.protocol import (
    Edge,
    EdgePage,
    ExportedNode,
    GraphEdges,
    GraphExport,
    GraphNode,
    GraphNodes,
    GraphPart,
    GraphTopics,
    Neighbour,
    Node,
    NodeDetail,
    NodeMember,
    NodePage,
    Scoped,
    Topic,
    TopicList,
)
from memoryd.daemon.core.changing import visible
from memoryd.daemon.core.core import Core
from memoryd.daemon.registry import handles
from memoryd.daemon.store import graph as stored
from memoryd.daemon.store import vectors
from memoryd.daemon.store.vectors import Vector
from memoryd.daemon.tiers.clusters import unit

SIMILAR = 5  # similar nodes that are shown
EXPORTED_SIMILAR = 3
_PREVIEW = 200
_ORDER = {"size": "n.size DESC, n.id", "updated": "n.updated_at DESC, n.id", "label": "n.label, n.id"}
_WORD = re.compile(r"\w+")
_BOTH = "e.origin IN (SELECT n.id FROM nodes n WHERE {0}) AND e.target IN (SELECT n.id FROM nodes n WHERE {0})"
_OTHER_END: dict[str, Any] = {"derived_from": "derived", "abstracted_from": "abstraction", "co_occurs": "co_occurs"}


@handles(GraphNodes)
def nodes(core: Core, call: GraphNodes) -> NodePage:
    """Return one page of nodes."""
    conditions = [_within(core, call)]
    values: list[Any] = []
    if call.kind is not None:
        conditions.append("n.kind = ?")
        values.append(call.kind)
    if call.topic is not None:
        conditions.append("n.topic = ?")
        values.append(call.topic)
    if call.query.strip():
        condition, words = _has_words(call.query)
        conditions.append(condition)
        values += words
    where = " AND ".join(conditions)
    with core.store.reading() as connection:
        total: Any = connection.execute(f"SELECT count(*) FROM nodes n WHERE {where}", values).get
        page = f"{where} ORDER BY {_ORDER[call.sort]} LIMIT ? OFFSET ?"
        found = stored.nodes(connection, page, (*values, call.limit, call.offset))
        waiting = _waiting(connection, visible(core, call))
    return NodePage(nodes=[_shown(core, node) for node in found], total=total, waiting=waiting)


@handles(GraphEdges)
def edges(core: Core, call: GraphEdges) -> EdgePage:
    """Return one page of edges with both ends within reach."""
    where = _BOTH.format(_within(core, call))
    values: list[Any] = []
    if call.kind is not None:
        where += " AND e.kind = ?"
        values.append(call.kind)
    if call.node is not None:
        where += " AND ? IN (e.origin, e.target)"
        values.append(call.node)
    with core.store.reading() as connection:
        total: Any = connection.execute(f"SELECT count(*) FROM edges e WHERE {where}", values).get
        found = _edges(connection, f"{where} ORDER BY e.weight DESC, e.origin, e.target LIMIT ? OFFSET ?",
                       (*values, call.limit, call.offset))  # fmt: skip
        ends = {end for edge in found for end in (edge.origin, edge.target)}
        labels = _labels(connection, ends)
    return EdgePage(edges=found, total=total, labels=sorted(labels.items()))


@handles(GraphNode)
def show(core: Core, call: GraphNode) -> NodeDetail:
    """Return one node with its members and neighbours; raise `NotFound` for one that is not within reach."""
    within = _within(core, call)
    with core.store.reading() as connection:
        found = stored.nodes(connection, f"n.id = ? AND {within}", (call.node,))
        if not found:
            raise NotFound(f"There is no node {call.node}.", {"node": call.node})
        node = found[0]
        topic = connection.execute("SELECT label FROM topics WHERE id = ?", (node.topic,)).get
        return NodeDetail(
            node=_shown(core, node),
            topic=str(topic or ""),
            members=_members(core, connection, node),
            neighbours=[*_neighbours(connection, node.id, within), *_similar(core, connection, node, SIMILAR)],
        )


@handles(GraphTopics)
def topics(core: Core, call: GraphTopics) -> TopicList:
    """Return the topics within reach, the largest first."""
    within = _within(core, call)
    with core.store.reading() as connection:
        found: list[Any] = connection.execute(
            "SELECT t.id, t.namespace, t.label, count(*), sum(n.size) FROM topics t JOIN nodes n ON n.topic = t.id"
            f" AND n.namespace = t.namespace WHERE {within} GROUP BY t.id ORDER BY 5 DESC, 1"
        ).fetchall()
        alone: Any = connection.execute(
            f"SELECT count(*) FROM nodes n WHERE n.kind = 'cluster' AND coalesce(n.topic, 0) = 0 AND {within}"
        ).get
    shown = [
        Topic(id=id, namespace=core.store.namespaces.name(place), label=label, nodes=nodes, memories=memories)
        for id, place, label, nodes, memories in found
    ]
    return TopicList(topics=shown, alone=alone)


@handles(GraphExport)
def export(core: Core, call: GraphExport) -> GraphPart:
    """Return the next part of the graph."""
    within = _within(core, call)
    with core.store.reading() as connection:
        found = stored.nodes(connection, f"n.id > ? AND {within} ORDER BY n.id LIMIT ?", (call.after, call.limit))
        previews = _previews(connection, [node.id for node in found], call.preview)
        part = ", ".join(str(node.id) for node in found)
        edges = _edges(connection, f"e.origin IN ({part}) AND {_BOTH.format(within)} ORDER BY 1, 2, 3")
        exported = [
            ExportedNode(
                node=_shown(core, node),
                members=previews.get(node.id, []),
                similar=[(n.node, n.weight) for n in _similar(core, connection, node, EXPORTED_SIMILAR)],
            )
            for node in found
        ]
    more = found[-1].id if len(found) == call.limit else None
    return GraphPart(nodes=exported, edges=edges, next=more)


# Parts ----------------------------------------------------------------------------------------------------------------


def _within(core: Core, call: Scoped[Any]) -> str:
    """Return the SQL condition on the nodes `n` that a call reaches."""
    return visible(core, call).replace("m.namespace", "n.namespace")


def _waiting(connection: apsw.Connection, condition: str) -> int:
    if condition == "TRUE":
        return stored.waiting(connection)
    count: Any = connection.execute(
        f"SELECT count(*) FROM backlog b CROSS JOIN memories m ON m.row = b.memory WHERE {condition}"
    ).get
    return int(count)


def _has_words(query: str) -> tuple[str, list[str]]:
    """Return the condition that a label or one member has all words of a query, and its values."""
    words = _WORD.findall(query)
    expression = " AND ".join(f'"{word}"' for word in words) or '""'
    escaped = query.strip().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    condition = (
        "(n.label LIKE ? ESCAPE '\\' OR n.id IN (SELECT p.node FROM members p WHERE p.memory IN"
        " (SELECT rowid FROM memories_fts WHERE memories_fts MATCH ?)))"
    )
    return condition, [f"%{escaped}%", expression]


def _shown(core: Core, node: stored.Node) -> Node:
    return Node(
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


def _edges(connection: apsw.Connection, where: str, values: tuple[Any, ...] = ()) -> list[Edge]:
    found: Any = connection.execute(f"SELECT e.origin, e.target, e.kind, e.weight FROM edges e WHERE {where}", values)
    return [Edge(origin=origin, target=target, kind=kind, weight=weight) for origin, target, kind, weight in found]


def _labels(connection: apsw.Connection, numbers: set[int]) -> dict[int, str]:
    found: Any = connection.execute(f"SELECT id, label FROM nodes WHERE id IN ({', '.join(map(str, numbers))})")
    return dict(found)


def _members(core: Core, connection: apsw.Connection, node: stored.Node) -> list[NodeMember]:
    rows = stored.members(connection, [node.id]).get(node.id, [])
    similarities = _similarities(core, connection, node, rows)
    listed = ", ".join(map(str, rows))
    found = connection.execute(
        f"SELECT row, id, substr(content, 1, {2 * _PREVIEW}), created_at FROM memories WHERE row IN ({listed})"
    )
    members = [
        NodeMember(id=id, preview=_preview(text, _PREVIEW), created_at=at, similarity=similarities.get(row))
        for row, id, text, at in found
    ]
    return sorted(members, key=lambda member: (-(member.similarity or -2.0), member.created_at))


def _similarities(core: Core, connection: apsw.Connection, node: stored.Node, rows: list[int]) -> dict[int, float]:
    generation = core.embedding.active
    centre = _centre(connection, node.id)
    if generation is None or centre is None or not rows:
        return {}
    numbers, matrix = vectors.of_rows(connection, generation.model, rows)
    if matrix.shape[1:] != centre.shape:
        return {}
    return {row: round(value, 4) for row, value in zip(numbers, (matrix @ centre).tolist(), strict=True)}


def _centre(connection: apsw.Connection, node: int) -> Vector | None:
    _, means = stored.centroids(connection, [node])
    return unit(means)[0] if len(means) else None


def _neighbours(connection: apsw.Connection, node: int, within: str) -> list[Neighbour]:
    found: Any = connection.execute(
        "SELECT e.kind, n.id, n.label, e.weight, TRUE FROM edges e JOIN nodes n ON n.id = e.target"
        f" WHERE e.origin = ?1 AND {within} UNION ALL "
        "SELECT e.kind, n.id, n.label, e.weight, FALSE FROM edges e JOIN nodes n ON n.id = e.origin"
        f" WHERE e.target = ?1 AND {within} ORDER BY 1, 4 DESC, 2",
        (node,),
    )
    return [
        Neighbour(node=other, label=label, relation=kind if outward else _OTHER_END[kind], weight=weight)
        for kind, other, label, weight, outward in found
    ]


def _similar(core: Core, connection: apsw.Connection, node: stored.Node, count: int) -> list[Neighbour]:
    """Return the clusters of the same namespace nearest to a cluster, from what counts as related on."""
    generation = core.embedding.active
    centre = _centre(connection, node.id)
    if generation is None or centre is None or node.kind != stored.CLUSTER:
        return []
    if len(centre) != generation.index.dimensions:
        return []
    place = frozenset([node.namespace])
    near = core.centroids.nearest(connection, generation.model, np.ascontiguousarray(centre), count + 1, place)
    near = [(other, cosine) for other, cosine in near if other != node.id][:count]
    labels = _labels(connection, {other for other, _ in near})
    return [
        Neighbour(node=other, label=labels[other], relation="similar", weight=round(cosine, 4))
        for other, cosine in near
        if cosine >= generation.embedder.floors.relevant
    ]


def _previews(connection: apsw.Connection, numbers: list[int], length: int) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    if length:
        listed = ", ".join(map(str, numbers))
        sql = (
            f"SELECT p.node, substr(m.content, 1, {2 * length}) FROM members p JOIN memories m ON m.row = p.memory"
            f" WHERE p.node IN ({listed}) ORDER BY p.node, p.memory"
        )
        for node, text in connection.execute(sql):
            found.setdefault(node, []).append(_preview(text, length))
    return found


def _preview(text: str, length: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"

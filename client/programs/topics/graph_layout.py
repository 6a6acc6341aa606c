"""The layout of an exported graph on its page: the same graph gives the same layout.

Each topic is a disc: its largest node in the middle, the others around it as the seeds of a sunflower, so that none
covers another. Discs lie beside those they are most related to, the largest first, and do not overlap.
"""

import math
from collections import Counter
from typing import Any, NamedTuple

from memoryd.client.programs.topics.graph_data import ExportedGraph, all_edges

_GOLDEN = math.pi * (3 - math.sqrt(5))
_GAP = 30.0  # between discs
_ALONE = 0


class Disc(NamedTuple):
    """A topic's place."""

    x: float
    y: float
    radius: float


def lay_out(graph: ExportedGraph) -> dict[str, Any]:
    """Return what the page shows, as plain values."""
    edges = [edge for edge in all_edges(graph) if edge[2] != "derived_from"]
    topic_of = _topics(graph, edges)
    groups: dict[int, list[int]] = {}
    for place, item in enumerate(graph.nodes):
        groups.setdefault(topic_of[item.node.id], []).append(place)
    radii = [radius(item.node.size, item.node.kind) for item in graph.nodes]
    discs = _place_discs(groups, radii, _relations(edges, topic_of))
    spots = {
        place: spot
        for topic, places in groups.items()
        for place, spot in _place_seeds(discs[topic], places, radii).items()
    }
    memories: Counter[int | None] = Counter()
    for node in (item.node for item in graph.nodes):
        memories[node.topic] += node.size if node.kind == "cluster" else 0
    place_of = {item.node.id: place for place, item in enumerate(graph.nodes)}
    return {
        "total": graph.total,
        "nodes": [
            _node_values(graph, place, spots[place], radii[place], topic_of) for place in range(len(graph.nodes))
        ],
        "edges": [[place_of[a], place_of[b], kind, round(weight, 3)] for a, b, kind, weight in edges],
        "topics": [
            {
                "id": topic.id,
                "label": topic.label,
                "namespace": topic.namespace,
                "memories": memories[topic.id],
                **_circle_values(discs[topic.id]),
            }
            for topic in sorted(graph.topics, key=lambda topic: (-memories[topic.id], topic.id))
            if topic.id in discs
        ],
    }


def radius(size: int, kind: str) -> float:
    """Return the radius of a node: its area grows with its members."""
    return 7.0 if kind == "concept" else 3.0 + 1.7 * math.sqrt(size)


def _node_values(
    graph: ExportedGraph, place: int, spot: tuple[float, float], size: float, topics: dict[int, int]
) -> dict[str, Any]:
    node, members = graph.nodes[place].node, graph.nodes[place].members
    return {
        "id": node.id,
        "label": node.label,
        "kind": node.kind,
        "size": node.size,
        "namespace": node.namespace,
        "topic": topics[node.id],
        "x": round(spot[0], 1),
        "y": round(spot[1], 1),
        "r": round(size, 1),
        "members": members,
    }


def _circle_values(disc: Disc) -> dict[str, float]:
    return {"x": round(disc.x, 1), "y": round(disc.y, 1), "r": round(disc.radius, 1)}


def _topics(graph: ExportedGraph, edges: list[tuple[int, int, str, float]]) -> dict[int, int]:
    """Return the topic of each node; a concept has that of most of its clusters."""
    found = {item.node.id: item.node.topic or _ALONE for item in graph.nodes}
    below: dict[int, Counter[int]] = {}
    for origin, target, kind, _ in edges:
        if kind == "abstracted_from":
            below.setdefault(origin, Counter())[found[target]] += 1
    for node, counts in below.items():
        found[node] = min(counts, key=lambda topic: (-counts[topic], topic))
    return found


def _relations(edges: list[tuple[int, int, str, float]], topic_of: dict[int, int]) -> dict[int, Counter[int]]:
    """Return how strongly each topic is related to others."""
    found: dict[int, Counter[int]] = {}
    for origin, target, _, weight in edges:
        a, b = topic_of[origin], topic_of[target]
        if a != b and _ALONE not in (a, b):
            found.setdefault(a, Counter())[b] += weight  # type: ignore[assignment]
            found.setdefault(b, Counter())[a] += weight  # type: ignore[assignment]
    return found


def _place_discs(
    groups: dict[int, list[int]], radii: list[float], relations: dict[int, Counter[int]]
) -> dict[int, Disc]:
    """Place one disc for each topic, the largest first; nodes without a topic come last, at the rim."""
    sizes = {topic: _extent(places, radii) for topic, places in groups.items()}
    placed: dict[int, Disc] = {}
    for topic in sorted(sizes, key=lambda topic: (topic == _ALONE, -sizes[topic], topic)):
        near = [(placed[other], weight) for other, weight in relations.get(topic, {}).items() if other in placed]
        total = sum(weight for _, weight in near)
        x = sum(disc.x * weight for disc, weight in near) / total if total else 0.0
        y = sum(disc.y * weight for disc, weight in near) / total if total else 0.0
        placed[topic] = _find_free_disc(x, y, sizes[topic], list(placed.values()))
    return placed


def _find_free_disc(x: float, y: float, size: float, placed: list[Disc]) -> Disc:
    """Return the free place for a disc that is nearest to a point, found on a widening spiral."""
    turn, step = 0.0, 0.25 * size + 6.0
    while True:
        distance = step * turn / (2 * math.pi)
        spot = Disc(x + 1.25 * distance * math.cos(turn), y + distance * math.sin(turn), size)
        if all(math.hypot(spot.x - o.x, spot.y - o.y) >= size + o.radius + _GAP for o in placed):
            return spot
        turn += min(0.6, step / max(distance, step))


def _extent(places: list[int], radii: list[float]) -> float:
    """Return the radius of a disc that holds these nodes."""
    return _spacing(places, radii) * math.sqrt(len(places) - 1) + min(radii[place] for place in places) + 4.0


def _spacing(places: list[int], radii: list[float]) -> float:
    """Return the distance that keeps neighbouring seeds apart: they lie about 1.8 times as far from each other."""
    mean = sum(radii[place] for place in places) / len(places)
    return (mean + max(radii[place] for place in places)) / 1.6


def _place_seeds(disc: Disc, places: list[int], radii: list[float]) -> dict[int, tuple[float, float]]:
    spacing = _spacing(places, radii)
    ordered = sorted(places, key=lambda place: (-radii[place], place))
    found = {}
    for number, place in enumerate(ordered):
        distance = spacing * math.sqrt(number) if len(ordered) > 1 else 0.0
        angle = number * _GOLDEN
        found[place] = (disc.x + distance * math.cos(angle), disc.y + distance * math.sin(angle))
    return found

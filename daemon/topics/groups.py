"""Nodes over nodes: concepts, which stand for clusters that are alike, and topics, communities for people to look at.

Both are rebuilt as a whole for one namespace, from the clusters as they will be, and compared with what is there:
what has not changed gives no step. A concept or topic keeps its number as long as it shares more clusters with its
former self than any other has.

The weight of an edge between two clusters is the cosine of their centroids, if one is among the other's nearest and it
reaches a floor, plus ln(1 + weight of their `co_occurs` edge): a fresh graph has topics by similarity alone, and use
brings together what belongs together. Communities are found by Leiden (Traag, Waltman, van Eck 2019) with modularity
and a fixed seed. The library is loaded when topics are made.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from memoryd.daemon.core.work import Step
from memoryd.daemon.store.vectors import Vector
from memoryd.daemon.topics.clusters import MAX_MEMBERS, ClusterPlaces, group_vectors, split
from memoryd.daemon.topics.draft import Draft
from memoryd.daemon.topics.tables import graph as stored
from memoryd.daemon.topics.tables import graph_reading
from memoryd.daemon.topics.writes import Concept, Drop, SetTopic

LEAST = 3  # clusters that a concept represents
_PER_NODE, _TEXTS = 3, 48  # texts that a group is named by
NEAREST = 5
_SEED = 20
_BLOCK = 256

NumberPair = tuple[int, int]


def plan_concepts(draft: Draft, floor: float) -> Iterator[Step]:
    """Give each group of clusters that are alike a concept node."""
    living = list_alive(draft)
    units = draft.clusters.units[living]
    groups = [[int(living[i]) for i in group] for group in _group_alike(units, floor) if len(group) >= LEAST]
    there = _read_concepts(draft)
    former = [(cluster, node) for node, clusters in there.items() for cluster in clusters]
    numbered = [[draft.ids[place] for place in group] for group in groups]
    numbers = renumber(numbered, former, draft.setting.numbers.nodes)
    for number, group, nodes in zip(numbers, groups, numbered, strict=True):
        if number not in there or there[number] != sorted(nodes):
            yield _plan_concept(draft, number, group, number not in there)
    for number in sorted(set(there) - set(numbers)):
        yield Step("drop", f"node {number}", "its clusters are no longer alike", Drop(number))


def _group_alike(units: Vector, floor: float) -> list[list[int]]:
    """Return the positions of centroids in groups of those that are alike, none larger than a node may be."""
    found = group_vectors(units, floor)
    parts = [
        [[group[i] for i in part] for part in split(units[group], floor)] if len(group) > MAX_MEMBERS else [group]
        for group in found
    ]
    return sorted(part for divided in parts for part in divided)


def _plan_concept(draft: Draft, number: int, group: list[int], new: bool) -> Step:
    mean = draft.clusters.units[group].mean(axis=0)
    label = group_label(draft, group)
    nodes = tuple(sorted(draft.ids[place] for place in group))
    model, namespace = draft.setting.generation.model, draft.setting.namespace
    data = Concept(number, namespace, model, new, nodes, mean, label)
    return Step("abstract", f"node {number}", f"represents {len(nodes)} nodes: {label}", data)


def _read_concepts(draft: Draft) -> dict[int, list[int]]:
    """Return the clusters of the concepts that are there."""
    with draft.setting.store.reading() as connection:
        model, namespace = draft.setting.generation.model, draft.setting.namespace
        nodes = stored.read_kind(connection, model, stored.CONCEPT, namespace)
        clusters = stored.find_targets(connection, [node.id for node in nodes], stored.ABSTRACTED_FROM)
    return {node.id: clusters.get(node.id, []) for node in nodes}


def topics(draft: Draft, floor: float) -> Iterator[Step]:
    """Find the communities of clusters; yield a step for each topic that is new, changed or at its end."""
    living, namespace = list_alive(draft), draft.setting.namespace
    edges = weights(find_similar(draft.clusters.units[living], floor), _sum_co_occurrences(draft, living))
    groups = [[int(living[i]) for i in group] for group in find_communities(edges)]
    former = [(draft.ids[p], draft.topics[p] or 0) for p in living.tolist() if draft.topics[p]]
    with draft.setting.store.reading() as connection:
        labels = graph_reading.read_topics(connection, namespace)
    numbers = renumber([[draft.ids[p] for p in group] for group in groups], former, draft.setting.numbers.topics)
    belongs = {place: number for number, group in zip(numbers, groups, strict=True) for place in group}
    for number, group in zip(numbers, groups, strict=True):
        moved = [place for place in group if draft.topics[place] != number]
        left = any(draft.topics[p] == number and belongs.get(p) != number for p in living.tolist())
        if moved or left or number not in labels:
            yield _plan_topic(draft, number, group, moved)
    alone = [place for place in living.tolist() if place not in belongs and draft.topics[place] != 0]
    if alone:
        nodes = tuple(draft.ids[place] for place in alone)
        yield Step("topic", "topic 0", f"{len(nodes)} nodes belong to no topic", SetTopic(0, namespace, "", nodes))
    for number in sorted(set(labels) - set(numbers)):
        yield Step("drop", f"topic {number}", "its nodes belong to others", SetTopic(number, namespace, "", ()))


def _plan_topic(draft: Draft, number: int, group: list[int], moved: list[int]) -> Step:
    label = group_label(draft, group)
    nodes = tuple(draft.ids[place] for place in moved) or (draft.ids[group[0]],)
    for place in moved:
        draft.topics[place] = number
    data = SetTopic(number, draft.setting.namespace, label, nodes)
    return Step("topic", f"topic {number}", f"{len(group)} nodes: {label}", data)


def list_alive(draft: Draft) -> ClusterPlaces:
    """Return the places of clusters that have members, by rising node number, so that the order is no accident."""
    living = np.flatnonzero(draft.clusters.sizes[: draft.clusters.count])
    return living[np.argsort(np.asarray(draft.ids, np.int64)[living], kind="stable")]


def group_label(draft: Draft, group: Sequence[int]) -> str:
    """Name a group of clusters by the terms of some memories of the largest of them."""
    largest = sorted(group, key=lambda place: (-int(draft.clusters.sizes[place]), draft.ids[place]))
    chosen = largest[: _TEXTS // _PER_NODE]
    rows = draft.list_rows(chosen)
    return draft.label_of([row for place in chosen for row in rows[place][:_PER_NODE]])


def _sum_co_occurrences(draft: Draft, living: ClusterPlaces) -> dict[NumberPair, float]:
    """Return the weights of `co_occurs` edges by positions in `living`; those of a merged node count for its heir."""
    position = {draft.ids[place]: i for i, place in enumerate(living.tolist())}
    with draft.setting.store.reading() as connection:
        found = stored.read_co_occurrences(connection, draft.setting.namespace)
    weights: dict[NumberPair, float] = {}
    for origin, target, weight in found:
        a, b = position.get(_find_heir(draft, origin)), position.get(_find_heir(draft, target))
        if a is not None and b is not None and a != b:
            pair = (min(a, b), max(a, b))
            weights[pair] = weights.get(pair, 0.0) + weight
    return weights


def _find_heir(draft: Draft, node: int) -> int:
    while node in draft.heirs:
        node = draft.heirs[node]
    return node


def is_due(new: int, total: int) -> bool:
    """Return whether concepts and topics are to be rebuilt: one cluster of fifty is newer than they are."""
    return new > 0 and new * 50 >= total


# Communities ----------------------------------------------------------------------------------------------------------


def find_similar(units: Vector, floor: float, nearest: int = NEAREST) -> dict[NumberPair, float]:
    """Return the cosine of each pair of places (lower first) of which one is among the other's nearest."""
    found: dict[NumberPair, float] = {}
    k = min(nearest, len(units) - 1)
    for start in range(0, len(units), _BLOCK) if k > 0 else ():
        cosines = units[start : start + _BLOCK] @ units.T
        lines = np.arange(len(cosines))
        cosines[lines, start + lines] = -2.0  # itself
        for _ in range(k):  # several passes of argmax are ten times faster than one argpartition
            best = cosines.argmax(axis=1)
            values = cosines[lines, best]
            cosines[lines, best] = -2.0
            for place, other, cosine in zip((start + lines).tolist(), best.tolist(), values.tolist(), strict=True):
                if cosine >= floor:
                    found[min(place, other), max(place, other)] = cosine
    return found


def weights(cosines: dict[NumberPair, float], co_occurs: dict[NumberPair, float]) -> dict[NumberPair, float]:
    """Return the weight of each edge between places."""
    found = dict(cosines)
    for pair, weight in co_occurs.items():
        found[pair] = found.get(pair, 0.0) + math.log1p(weight)
    return found


def find_communities(edges: dict[NumberPair, float]) -> list[list[int]]:
    """Return the places in each community of two or more, by rising first place."""
    if not edges:
        return []
    from graspologic_native import leiden

    given = [(str(a), str(b), weight) for a, b, weight in _order(edges)]
    _, found = leiden(
        edges=given,
        starting_communities=None,
        resolution=1.0,
        randomness=0.001,
        iterations=1,
        use_modularity=True,
        seed=_SEED,
        trials=1,
    )
    groups: dict[int, list[int]] = {}
    for place, community in found.items():
        groups.setdefault(community, []).append(int(place))
    return sorted(sorted(group) for group in groups.values() if len(group) > 1)


def _order(edges: dict[NumberPair, float]) -> Iterator[tuple[int, int, float]]:
    """Yield edges by rising places, since the outcome depends on the order; no long sort, which would hold the GIL."""
    by_first: dict[int, list[tuple[int, float]]] = {}
    for (a, b), weight in edges.items():
        by_first.setdefault(a, []).append((b, weight))
    for a in sorted(by_first):
        for b, weight in sorted(by_first[a]):
            yield a, b, weight


def renumber(groups: Sequence[Sequence[int]], former: Iterable[tuple[int, int]], new: Iterable[int]) -> list[int]:
    """Return a number for each group of nodes: that of the former group it shares most with, else a new one.

    `former` are (node, number) pairs; each former number is given at most once, the largest overlap first.
    """
    number_of = dict(former)
    overlaps = [
        (-count, number, place)
        for place, group in enumerate(groups)
        for number, count in Counter(number_of[node] for node in group if node in number_of).items()
    ]
    given: dict[int, int] = {}
    for _, number, place in sorted(overlaps):
        if place not in given and number not in given.values():
            given[place] = number
    fresh = iter(new)
    return [given[place] if place in given else next(fresh) for place in range(len(groups))]

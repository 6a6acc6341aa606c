"""Nodes over nodes: concepts, which stand for clusters that are alike, and topics, communities for people to look at.

Both are rebuilt as a whole for one namespace, from the clusters as they will be, and compared with what is there:
what has not changed gives no step. A concept or topic keeps its number as long as it shares more clusters with its
former self than any other has.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from memoryd.daemon.core.work import Step
from memoryd.daemon.graph import topics as graph_topics
from memoryd.daemon.graph.clusters import MAX_MEMBERS, group_vectors, split
from memoryd.daemon.graph.draft import Draft
from memoryd.daemon.graph.topics import renumber
from memoryd.daemon.graph.writes import Concept, Drop, Topic
from memoryd.daemon.store import graph as stored
from memoryd.daemon.store import graph_reading
from memoryd.daemon.store.vectors import Vector

LEAST = 3  # clusters that a concept represents
_PER_NODE, _TEXTS = 3, 48  # texts that a group is named by

Places = NDArray[np.int64]


def plan_concepts(draft: Draft, floor: float) -> Iterator[Step]:
    """Give each group of clusters that are alike a concept node."""
    living = list_alive(draft)
    units = draft.clusters.units[living]
    groups = [[int(living[i]) for i in group] for group in _group_alike(units, floor) if len(group) >= LEAST]
    there = _read_concepts(draft)
    former = [(cluster, node) for node, (_, clusters) in there.items() for cluster in clusters]
    numbered = [[draft.ids[place] for place in group] for group in groups]
    numbers = renumber(numbered, former, draft.setting.numbers.nodes)
    for number, group, nodes in zip(numbers, groups, numbered, strict=True):
        if number not in there or there[number][1] != sorted(nodes):
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


def _read_concepts(draft: Draft) -> dict[int, tuple[str, list[int]]]:
    """Return label and clusters of the concepts that are there."""
    with draft.setting.store.reading() as connection:
        model, namespace = draft.setting.generation.model, draft.setting.namespace
        nodes = stored.read_kind(connection, model, stored.CONCEPT, namespace)
        clusters = stored.find_targets(connection, [node.id for node in nodes], stored.ABSTRACTED_FROM)
    return {node.id: (node.label, clusters.get(node.id, [])) for node in nodes}


def topics(draft: Draft, floor: float) -> Iterator[Step]:
    """Find the communities of clusters; yield a step for each topic that is new, changed or at its end."""
    living = list_alive(draft)
    edges = graph_topics.weights(
        graph_topics.find_similar(draft.clusters.units[living], floor), _sum_co_occurrences(draft, living)
    )
    groups = [[int(living[i]) for i in group] for group in graph_topics.find_communities(edges)]
    former = [(draft.ids[p], draft.topics[p] or 0) for p in living.tolist() if draft.topics[p]]
    labels = _topics(draft)
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
        data = Topic(0, draft.setting.namespace, "", nodes)
        yield Step("topic", "topic 0", f"{len(nodes)} nodes belong to no topic", data)
    for number in sorted(set(labels) - set(numbers)):
        yield Step(
            "drop", f"topic {number}", "its nodes belong to others", Topic(number, draft.setting.namespace, "", ())
        )


def _plan_topic(draft: Draft, number: int, group: list[int], moved: list[int]) -> Step:
    label = group_label(draft, group)
    nodes = tuple(draft.ids[place] for place in moved) or (draft.ids[group[0]],)
    for place in moved:
        draft.topics[place] = number
    data = Topic(number, draft.setting.namespace, label, nodes)
    return Step("topic", f"topic {number}", f"{len(group)} nodes: {label}", data)


def list_alive(draft: Draft) -> Places:
    """Return the places of clusters that have members, by rising node number, so that the order is no accident."""
    living = np.flatnonzero(draft.clusters.sizes[: draft.clusters.count])
    return living[np.argsort(np.asarray(draft.ids, np.int64)[living], kind="stable")]


def group_label(draft: Draft, group: Sequence[int]) -> str:
    """Name a group of clusters by the terms of some memories of the largest of them."""
    largest = sorted(group, key=lambda place: (-int(draft.clusters.sizes[place]), draft.ids[place]))
    chosen = largest[: _TEXTS // _PER_NODE]
    rows = draft.list_rows(chosen)
    return draft.label_of([row for place in chosen for row in rows[place][:_PER_NODE]])


def _sum_co_occurrences(draft: Draft, living: Places) -> dict[tuple[int, int], float]:
    """Return the weights of `co_occurs` edges by positions in `living`; those of a merged node count for its heir."""
    position = {draft.ids[place]: i for i, place in enumerate(living.tolist())}
    with draft.setting.store.reading() as connection:
        found = stored.read_co_occurrences(connection, draft.setting.namespace)
    weights: dict[tuple[int, int], float] = {}
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


def _topics(draft: Draft) -> dict[int, str]:
    with draft.setting.store.reading() as connection:
        return graph_reading.read_topics(connection, draft.setting.namespace)


def is_due(new: int, total: int) -> bool:
    """Return whether concepts and topics are to be rebuilt: one cluster of fifty is newer than they are."""
    return new > 0 and new * 50 >= total

"""Rebuild the graph of a namespace: the nightly job `cluster`, and the call `graph_rebuild`.

1. Clusters: memories of L2 are joined by falling cosine down to the model's floor `join`, up to 20 in a node.
2. Clusters above the floor `merge` are merged if they fit into one node.
3. Concepts: nodes above three or more clusters whose cosines are halfway between the floors `related` and `join`.
4. Edges: how often searches returned memories of two nodes together.
5. Topics: communities of clusters that are related or were returned together, shown to people.

The data is read in short snapshots and processed in portions that give way to searches; then the differences from the
present graph are written in small transactions. The same memories always give the same graph.
"""

import hashlib
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np

from memoryd.client.errors import ModelUnavailable
from memoryd.client.protocol.topics import GraphRebuild, Rebuilt
from memoryd.client.transport.batches import split_evenly
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.work import Step, StopCheck, Work
from memoryd.daemon.embedding.generation import Generation
from memoryd.daemon.registry import handles
from memoryd.daemon.store import namespaces, tokenizer, vectors
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.vectors import Vector
from memoryd.daemon.store.writer import Transaction
from memoryd.daemon.topics import label_words
from memoryd.daemon.topics.clusters import (
    MAX_MEMBERS,
    Pairs,
    Pause,
    agglomerate,
    find_communities,
    find_pairs,
    scale_to_unit,
)
from memoryd.daemon.topics.tables import graph
from memoryd.daemon.topics.tables.graph import ABSTRACTED_FROM, CLUSTER, CONCEPT, PREFIX, EdgeKey, MemoryKey, NewNode

LEAST = 3  # clusters in a concept
_NEAREST, _NEAREST_NODES = 8, 5  # nearest neighbours considered for a memory, and for a node
_WORK_S = 0.003  # of CPU time between two pauses for searches
_GIVE_WAY_S = 0.1  # how long it waits for clients at most in each pause
_READ = 1000  # memories per snapshot
_WRITTEN = 100  # nodes per transaction, some ms
_LABELLED = 4  # nodes whose texts are read together
_TEXTS = 24  # memories that the label of a concept or topic is made from


class RebuildLock:
    """Serialises rebuilds."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


def plan(core: Core, now: float) -> Iterator[Step]:
    """Plan to rebuild the graph of each namespace."""
    if core.embedding.active is None:
        return
    with core.store.reading() as connection:
        counts = graph.list_namespaces(connection)
    for namespace, count in sorted(counts.items()):
        name = core.store.namespaces.name(namespace)
        yield Step("rebuild", f"namespace {name or '/'}", f"{count:,} memories of L2", namespace)


def run(core: Core, step: Step, check: StopCheck) -> dict[str, int]:
    """Rebuild the graph of one namespace."""
    generation = core.embedding.active
    return dict(rebuild(core, generation, step.data, check)) if generation else {}


CLUSTER_WORK = Work(plan, alone=run)


@handles(GraphRebuild)
def rebuild_reached(core: Core, call: GraphRebuild) -> "Future[Rebuilt]":
    """Start to rebuild the graph on another thread."""
    generation = core.embedding.active
    if generation is None:
        raise ModelUnavailable("The graph rests on vectors, and no embedding model is ready yet.")
    reached = core.store.namespaces.reach(namespaces.check(call.namespace), call.reach)

    def work() -> Rebuilt:
        with core.store.reading() as connection:
            places = sorted(graph.list_namespaces(connection))
        counts: Counter[str] = Counter()
        for place in places:
            if reached is None or place in reached:
                counts += rebuild(core, generation, place, core.background.check_open, call.dry_run)
        topics = None if call.dry_run else counts.pop("topics", 0)
        return Rebuilt(dry_run=call.dry_run, topics=topics, **counts)

    return core.background.run("graph", work)


def rebuild(
    core: Core, generation: Generation, namespace: int, check: StopCheck, dry_run: bool = False
) -> Counter[str]:
    """Rebuild the graph of a namespace; return how many nodes were added, changed, removed and so on."""
    rested_at = time.thread_time()

    def pause() -> None:
        nonlocal rested_at
        check()
        if time.thread_time() - rested_at >= _WORK_S:
            core.give_way(_GIVE_WAY_S)
            rested_at = time.thread_time()

    with core.state(RebuildLock).lock:
        draft = _build_draft(core, generation, namespace, pause)
        with core.store.reading() as connection:
            former = graph.read_graph(connection, namespace)
        nodes = {node.name: node for node in _label(core, draft, former, pause)}
        removed = [name for name in former if name not in nodes]
        put = [node for name, node in nodes.items() if former.get(name) != node]
        added = sum(node.name not in former for node in put)
        counts = Counter(
            nodes=len(nodes), concepts=len(draft.concepts), added=added, changed=len(put) - added, removed=len(removed)
        )
        if not dry_run:
            _write(core, removed, pause, graph.delete_nodes)
            _write(core, put, pause, lambda connection, part: graph.put_nodes(connection, namespace, part))
            weights = _write_edges(core, draft, namespace, pause)
            counts["topics"] = _write_topics(core, draft, namespace, weights, pause)
            core.cognition.wake.set()  # a language model may name nodes
        return counts


# Building ------------------------------------------------------------------------------------------------------------


class Draft(NamedTuple):
    """The new graph: memories and their clusters. Concepts and pairs refer to clusters by index."""

    keys: list[MemoryKey]
    clusters: list[list[int]]  # indexes in `keys`
    names: list[str]  # of clusters
    centres: Vector
    pairs: Pairs  # of related clusters
    concepts: dict[str, list[int]]
    related: float
    namer: label_words.Namer


def _build_draft(core: Core, generation: Generation, namespace: int, pause: Pause) -> Draft:
    floors = generation.embedder.floors
    keys, units = _read(core, generation, namespace, pause)
    clusters = _find_clusters(units, floors.join, pause)
    centres = _find_centres(units, clusters, pause)
    pairs = find_pairs(centres, floors.related, _NEAREST_NODES, pause)
    merged = agglomerate(
        centres, [len(members) for members in clusters], pairs.above(floors.merge), floors.merge, MAX_MEMBERS, pause
    )
    if len(merged) < len(clusters):
        clusters = [sorted(row for place in group for row in clusters[place]) for group in merged]
        centres = _find_centres(units, clusters, pause)
        pairs = _translate_pairs(pairs, merged)
    middles = [_find_medoid(units, members, centres[place], pause) for place, members in enumerate(clusters)]
    named = [keys[place].id for place in middles]
    alike = (floors.related + floors.join) / 2
    groups = agglomerate(centres, [1] * len(centres), pairs.above(alike), alike, MAX_MEMBERS, pause)
    concepts = {PREFIX + named[_find_middle(centres, group)]: group for group in groups if len(group) >= LEAST}
    return Draft(keys, clusters, named, centres, pairs, concepts, floors.related, _build_namer(core, keys))


def _read(core: Core, generation: Generation, namespace: int, pause: Pause) -> tuple[list[MemoryKey], Vector]:
    """Return the memories of L2 that have a vector, by row number, and their unit vectors in half precision."""
    keys, parts, after = list[MemoryKey](), list[Any](), 0
    while True:
        with core.store.reading() as connection:
            part = graph.read_memories(connection, namespace, after, _READ)
            rows, matrix = vectors.read_exact(connection, generation.model, [key.row for key in part])
        if not part:
            break
        after = part[-1].row
        order = np.argsort(rows)
        present = set(rows)
        keys += [key for key in part if key.row in present]
        parts.append(scale_to_unit(matrix[order]).astype(np.float16) if rows else matrix.astype(np.float16))
        pause()
    filled = [part for part in parts if len(part)]
    return keys, np.concatenate(filled) if filled else np.zeros((0, generation.index.dimensions), np.float16)


def _find_clusters(units: Vector, floor: float, pause: Pause) -> list[list[int]]:
    """Return clusters of vectors by index. Equal vectors are grouped first, else they would only find each other."""
    equal: dict[bytes, list[int]] = {}
    for place, vector in enumerate(units):
        equal.setdefault(vector.tobytes(), []).append(place)
    runs = [same[start : start + MAX_MEMBERS] for same in equal.values() for start in range(0, len(same), MAX_MEMBERS)]
    chosen = units[[run[0] for run in runs]]
    pairs = find_pairs(chosen, floor, _NEAREST, pause)
    groups = agglomerate(chosen, [len(run) for run in runs], pairs, floor, MAX_MEMBERS, pause)
    return [sorted(place for run in group for place in runs[run]) for group in groups]


def _find_centres(units: Vector, groups: Sequence[Sequence[int]], pause: Pause) -> Any:
    centres = np.zeros((len(groups), units.shape[1]), np.float16)
    for start in range(0, len(groups), 256):
        part = groups[start : start + 256]
        starts = np.cumsum([0, *map(len, part)])[:-1]
        members = units[[place for group in part for place in group]].astype(np.float32)
        centres[start : start + len(part)] = scale_to_unit(np.add.reduceat(members, starts, axis=0))
        pause()
    return centres


def _translate_pairs(pairs: Pairs, merged: Sequence[Sequence[int]]) -> Pairs:
    group_of = np.zeros(sum(map(len, merged)), np.int64)
    for number, group in enumerate(merged):
        group_of[group] = number
    one, other = group_of[pairs.lower], group_of[pairs.upper]
    kept = one != other
    return Pairs(np.minimum(one, other)[kept], np.maximum(one, other)[kept], pairs.cosines[kept])


def _find_medoid(units: Vector, members: Sequence[int], centre: Vector, pause: Pause) -> int:
    if len(members) == 1:
        return members[0]
    pause()
    return members[int((units[members].astype(np.float32) @ centre.astype(np.float32)).argmax())]


def _find_middle(centres: Vector, group: Sequence[int]) -> int:
    """Return the cluster of a group that is nearest to the mean of their centres."""
    chosen = centres[group].astype(np.float32)
    return group[int((chosen @ chosen.sum(axis=0)).argmax())]


# Labels ---------------------------------------------------------------------------------------------------------------


def _build_namer(core: Core, keys: Sequence[MemoryKey]) -> label_words.Namer:
    sample = [key.row for key in keys[:: max(1, len(keys) // label_words.SAMPLE)]][: label_words.SAMPLE]
    with core.store.reading() as connection:
        texts = graph.read_texts(connection, sample, label_words.LONGEST)
        return label_words.Namer(texts.values(), tokenizer.build_stemmer(connection))


def _label(core: Core, draft: Draft, former: dict[str, NewNode], pause: Pause) -> Iterator[NewNode]:
    """Yield all nodes with labels: the former label if the members' texts are unchanged, else one made by rules."""
    made = [_describe(draft, CLUSTER, name, [place]) for place, name in enumerate(draft.names)]
    made += [_describe(draft, CONCEPT, name, group) for name, group in draft.concepts.items()]
    unnamed = []
    for node, places in made:
        known = former.get(node.name)
        if known and (known.kind, known.texts) == (node.kind, node.texts):
            yield node._replace(label=known.label, named_by=known.named_by, asked=known.asked)
        elif len(node.members) < 2:
            yield node
        else:
            unnamed.append((node, places))
    for part in split_evenly(unnamed, _LABELLED):
        labels = _label_groups(core, draft, [places for _, places in part])
        yield from (node._replace(label=label) for (node, _), label in zip(part, labels, strict=True))
        pause()


def _describe(draft: Draft, kind: str, name: str, places: Sequence[int]) -> tuple[NewNode, Sequence[int]]:
    """Return the node of a cluster, or of a concept, and the clusters in it."""
    keys = [draft.keys[row] for place in places for row in draft.clusters[place]]
    texts = hashlib.sha256(kind.encode() + b"".join(sorted(key.text_hash for key in keys))).digest()
    members: Any = [key.row for key in keys] if kind == CLUSTER else sorted(draft.names[place] for place in places)
    return NewNode(name, kind, tuple(members), texts), places


def _label_groups(core: Core, draft: Draft, groups: Sequence[Sequence[int]]) -> list[str]:
    """Return a label for each group of clusters, made from a sample of its memories."""
    chosen = [_choose_rows(draft, group) for group in groups]
    with core.store.reading() as connection:
        texts = graph.read_texts(connection, [row for rows in chosen for row in rows], label_words.LONGEST)
        stemmer = tokenizer.build_stemmer(connection)
        return [draft.namer.label([texts[row] for row in rows if row in texts], stemmer) for rows in chosen]


def _choose_rows(draft: Draft, group: Sequence[int]) -> list[int]:
    rows = [draft.keys[row].row for place in group for row in draft.clusters[place]]
    return rows[:: max(1, -(-len(rows) // _TEXTS))]


# Writing --------------------------------------------------------------------------------------------------------------


def _write(core: Core, items: Sequence[Any], pause: Pause, write: Callable[[Connection, Sequence[Any]], None]) -> None:
    """Write some items in one transaction, then the next ones."""
    for part in split_evenly(items, _WRITTEN):

        def job(transaction: Transaction, part: Sequence[Any] = part) -> None:
            write(transaction.connection, part)

        core.store.write(job).result()
        pause()


def _write_edges(core: Core, draft: Draft, namespace: int, pause: Pause) -> dict[tuple[int, int], float]:
    """Write the edges; return the weights of `co_occurs` edges by pairs of clusters."""
    with core.store.reading() as connection:
        numbers = graph.read_numbers(connection, namespace)
        wanted = graph.sum_pairs(connection, namespace)
        present = graph.read_edges(connection, namespace)
    place_of = {numbers[name]: place for place, name in enumerate(draft.names) if name in numbers}
    weights = {
        (min(a, b), max(a, b)): weight
        for (one, other, _), weight in wanted.items()
        if (a := place_of.get(one)) is not None and (b := place_of.get(other)) is not None
    }
    for name, group in draft.concepts.items():
        for place in group:
            if name in numbers and draft.names[place] in numbers:
                wanted[numbers[name], numbers[draft.names[place]], ABSTRACTED_FROM] = 1.0
    gone: list[EdgeKey] = [key for key in present if key not in wanted]
    new = [(key, weight) for key, weight in wanted.items() if present.get(key) != weight]
    _write(core, gone, pause, graph.delete_edges)
    _write(core, new, pause, graph.put_edges)
    return weights


def _write_topics(core: Core, draft: Draft, namespace: int, weights: dict[tuple[int, int], float], pause: Pause) -> int:
    """Find the topics and write the changed ones; return how many there are."""
    groups = find_communities(_weigh(draft.pairs, weights))
    pause()
    with core.store.reading() as connection:
        numbers = graph.read_numbers(connection, namespace)
        former = graph.read_topics(connection, namespace)
    topics = {draft.names[_find_middle(draft.centres, group)]: group for group in groups}
    nodes = {
        name: frozenset(numbers[draft.names[place]] for place in group if draft.names[place] in numbers)
        for name, group in topics.items()
    }
    _write(core, [name for name in former if name not in topics], pause, graph.delete_topics)
    changed = [name for name in topics if name not in former or former[name][1] != nodes[name]]
    for part in split_evenly(changed, _LABELLED):
        labels = _label_groups(core, draft, [topics[name] for name in part])
        made = [(name, label, nodes[name]) for name, label in zip(part, labels, strict=True)]
        _write(core, made, pause, lambda connection, given: graph.put_topics(connection, namespace, given))
    return len(topics)


def _weigh(pairs: Pairs, co_occurs: dict[tuple[int, int], float]) -> list[tuple[int, int, float]]:
    """Return sorted edges between clusters, weighted by cosine + ln(1 + the number of searches that returned both)."""
    weights: dict[tuple[int, int], float] = {}
    for lower, upper, cosine in zip(pairs.lower.tolist(), pairs.upper.tolist(), pairs.cosines.tolist(), strict=True):
        weights.setdefault((lower, upper), cosine)
    for pair, count in co_occurs.items():
        weights[pair] = weights.get(pair, 0.0) + math.log1p(count)
    by_first: dict[int, list[tuple[int, float]]] = {}  # one long sort would hold the GIL
    for (lower, upper), weight in weights.items():
        by_first.setdefault(lower, []).append((upper, weight))
    return [(lower, *one) for lower in sorted(by_first) for one in sorted(by_first[lower])]

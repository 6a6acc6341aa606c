"""The job that keeps the graph of L2: it takes in the backlog, splits, merges, names, and makes concepts and topics.

Its cost is that of what changed: a few new memories are compared with the nearest nodes that the index of centroids in
RAM finds, many with all nodes of their namespace. Afterwards every node has at most `MAX_MEMBERS` members, no two that
are alike could be merged, and a second run finds nothing to do. The same rows in the same order, in the same batches,
give the same graph. Each namespace is clustered by itself. Calls do one of these things by hand, at once, or show it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count
from typing import Any, NamedTuple

from memoryd.client.errors import ModelUnavailable
from memoryd.client.protocol import PlannedStep
from memoryd.client.protocol.topics import GraphAbstract, GraphChange, GraphDedupe, GraphRegroup
from memoryd.client.transport.batches import split_evenly
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.work import Step, Work
from memoryd.daemon.embedding.generation import Generation
from memoryd.daemon.registry import handles
from memoryd.daemon.store import namespaces, vectors
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.topics.draft import Draft, NextNumbers, Setting
from memoryd.daemon.topics.groups import is_due, plan_concepts, topics
from memoryd.daemon.topics.names import NodeNamer
from memoryd.daemon.topics.nodes import Centroids
from memoryd.daemon.topics.tables import graph as stored
from memoryd.daemon.topics.tables import graph_reading
from memoryd.daemon.topics.writes import DONE, apply
from memoryd.models import Floors

FEW = 64  # changes up to which only the nodes near them are looked at
_SMALL = 256  # nodes up to which all are looked at in any case
_NEAR = 8  # nodes looked at for each change
SHOWN = 1000  # steps of a change by hand
_SLICE = 32  # steps in one transaction: a few ms


class NamespaceState(NamedTuple):
    """What one namespace has: memories that wait, how many clusters changed, are newer than the topics, are in all."""

    namespace: int
    waiting: list[int]
    unsettled: int
    new: int
    nodes: int


def abstraction_floor(floors: Floors) -> float:
    """Return the cosine from which clusters belong to one concept: halfway between related and of one node."""
    return (floors.related + floors.join) / 2


def plan(core: Core, now: float) -> Iterator[Step]:
    """Plan what keeps the graph in order."""
    generation = core.embedding.active
    if generation is None:
        return
    numbers = _read_numbers(core)
    for state in read_states(core, generation):
        if state.waiting or state.unsettled or is_due(state.new, state.nodes):
            yield from _maintain(core, generation, state, numbers)


def _maintain(core: Core, generation: Generation, state: NamespaceState, numbers: NextNumbers) -> Iterator[Step]:
    draft = _build_draft(core, generation, state.namespace, numbers)
    changes = len(state.waiting) + state.unsettled
    whole = changes > FEW or state.nodes <= _SMALL or is_due(state.new + changes, state.nodes)
    yield from draft.load(_read_nodes(core, draft) if whole else _find_near(core, draft, state.waiting))
    yield from draft.join(state.waiting)
    if not whole:
        yield from draft.load(_find_near_changed(core, draft))
    yield from draft.merge()
    yield from draft.name()
    if whole and is_due(*_count_new_and_all(draft)):
        yield from plan_concepts(draft, abstraction_floor(generation.embedder.floors))
        yield from topics(draft, generation.embedder.floors.related)


# The parts by themselves: what calls ask for --------------------------------------------------------------------------


@handles(GraphDedupe)
def dedupe(core: Core, call: GraphDedupe) -> GraphChange:
    """Merge nodes that are alike, by the threshold of the call in place of the model's own."""

    def plan_merges(draft: Draft) -> Iterator[Step]:
        draft.changed.update(dict.fromkeys(place for place, size in enumerate(draft.clusters.sizes) if size))
        yield from draft.merge()
        draft.changed = dict.fromkeys(draft.places[node] for node in draft.heirs.values() if node not in draft.heirs)
        yield from draft.name()

    return _change(core, call, plan_merges, call.threshold)


@handles(GraphAbstract)
def abstract(core: Core, call: GraphAbstract) -> GraphChange:
    """Make concept nodes."""

    def plan_groups(draft: Draft) -> Iterator[Step]:
        floor = abstraction_floor(draft.setting.generation.embedder.floors)
        return plan_concepts(draft, floor if call.threshold is None else call.threshold)

    return _change(core, call, plan_groups)


@handles(GraphRegroup)
def regroup(core: Core, call: GraphRegroup) -> GraphChange:
    """Find the topics again."""
    return _change(core, call, lambda draft: topics(draft, draft.setting.generation.embedder.floors.related))


def _change(
    core: Core,
    call: GraphDedupe | GraphAbstract | GraphRegroup,
    plan_steps: Callable[[Draft], Iterable[Step]],
    merge: float | None = None,
) -> GraphChange:
    """Apply, or only show, what is planned for the reached namespaces."""
    generation = core.embedding.active
    if generation is None:
        raise ModelUnavailable("The graph rests on vectors, and no embedding model is ready yet.")
    reached = core.store.namespaces.reach(namespaces.check(call.namespace), call.reach)
    steps = list[Step]()
    numbers = _read_numbers(core)
    with core.store.reading() as connection:
        places = sorted(graph_reading.count_clusters(connection))
    for place in places:
        if reached is None or place in reached:
            draft = _build_draft(core, generation, place, numbers, merge)
            steps += draft.load(_read_nodes(core, draft))
            steps += plan_steps(draft)
    counts: Counter[str] = Counter()
    if call.dry_run:
        counts.update(DONE[step.action] for step in steps)
    else:
        for part in split_evenly(steps, _SLICE):
            counts.update(core.store.write(partial(apply, core, steps=part, operation="")).result())
    shown = [PlannedStep(action=step.action, target=step.target, reason=step.reason) for step in steps[:SHOWN]]
    return GraphChange(dry_run=call.dry_run, counts=dict(counts), total=len(steps), steps=shown)


# What is there --------------------------------------------------------------------------------------------------------


def read_states(core: Core, generation: Generation) -> list[NamespaceState]:
    """Return what each namespace that has anything in L2 has, by rising number."""
    with core.store.reading() as connection:
        waiting = stored.read_backlog(connection, generation.model)
        unsettled = graph_reading.count_clusters(connection, unsettled=True)
        new = graph_reading.count_clusters(connection, without_topic=True)
        places = sorted({*waiting, *unsettled, *new})
        count = core.state(Centroids).build_counter(connection, generation.model, generation.index.dimensions)
    return [
        NamespaceState(place, waiting.get(place, []), unsettled.get(place, 0), new.get(place, 0), count(place))
        for place in places
    ]


def _count_new_and_all(draft: Draft) -> tuple[int, int]:
    living = [draft.topics[place] for place in range(draft.clusters.count) if draft.clusters.sizes[place]]
    return sum(topic is None for topic in living), len(living)


def _read_numbers(core: Core) -> NextNumbers:
    with core.store.reading() as connection:
        return NextNumbers(*(count(stored.read_sequence(connection, table) + 1) for table in ("nodes", "topics")))


def _build_draft(
    core: Core, generation: Generation, namespace: int, numbers: NextNumbers, merge: float | None = None
) -> Draft:
    floors = generation.embedder.floors
    setting = Setting(
        core.store, core.state(NodeNamer), generation, namespace, numbers, floors.join, merge or floors.merge
    )
    return Draft(setting)


def _read_nodes(core: Core, draft: Draft) -> list[stored.StoredNode]:
    """Return all clusters of a draft's namespace."""
    with core.store.reading() as connection:
        return stored.read_kind(connection, draft.setting.generation.model, stored.CLUSTER, draft.setting.namespace)


def _find_near(core: Core, draft: Draft, rows: list[int]) -> list[stored.StoredNode]:
    """Return the clusters near some memories, and those that changed since they were compared with the others."""
    model, namespace = draft.setting.generation.model, draft.setting.namespace
    with core.store.reading() as connection:
        unsettled = stored.read_kind(connection, model, stored.CLUSTER, namespace, unsettled=True)
        _, matrix = vectors.read_exact(connection, model, rows) if rows else ([], [])
        return [*unsettled, *_find_nearest(core, connection, draft, matrix)]


def _find_near_changed(core: Core, draft: Draft) -> list[stored.StoredNode]:
    """Return the clusters near those that changed in the draft."""
    with core.store.reading() as connection:
        return _find_nearest(core, connection, draft, draft.clusters.units[list(draft.changed)])


def _find_nearest(core: Core, connection: Connection, draft: Draft, matrix: Any) -> list[stored.StoredNode]:
    setting = draft.setting
    found = {
        node
        for vector in matrix
        for node, _ in core.state(Centroids).find_nearest(
            connection, setting.generation.model, vector, _NEAR, frozenset([setting.namespace])
        )
    }
    return stored.read_nodes(connection, found)


CLUSTER = Work(plan, apply)

"""Changing the graph by hand: the same plans as the job's, applied at once or only shown."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from memoryd.client.errors import ModelUnavailable
from memoryd.client.protocol import GraphAbstract, GraphChange, GraphDedupe, GraphRegroup, PlannedStep, Scoped
from memoryd.client.transport.batches import split_evenly
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.work import Step
from memoryd.daemon.graph import clustering
from memoryd.daemon.graph.writes import DONE, apply
from memoryd.daemon.registry import handles
from memoryd.daemon.store import namespaces

SHOWN = 1000
_SLICE = 32  # steps in one transaction: a few ms


@handles(GraphDedupe)
def dedupe(core: Core, call: GraphDedupe) -> GraphChange:
    """Merge nodes that are alike."""
    return _change(core, clustering.dedupe(core, _reach(core, call), call.threshold), call.dry_run)


@handles(GraphAbstract)
def abstract(core: Core, call: GraphAbstract) -> GraphChange:
    """Make concept nodes."""
    return _change(core, clustering.abstract(core, _reach(core, call), call.threshold), call.dry_run)


@handles(GraphRegroup)
def regroup(core: Core, call: GraphRegroup) -> GraphChange:
    """Find the topics again."""
    return _change(core, clustering.regroup(core, _reach(core, call)), call.dry_run)


def _reach(core: Core, call: Scoped[Any]) -> frozenset[int] | None:
    if core.embedding.active is None:
        raise ModelUnavailable("The graph rests on vectors, and no embedding model is ready yet.")
    return core.store.namespaces.reach(namespaces.check(call.namespace), call.reach)


def _change(core: Core, planned: Iterable[Step], dry_run: bool) -> GraphChange:
    steps = list(planned)
    counts: Counter[str] = Counter()
    if dry_run:
        counts.update(DONE[step.action] for step in steps)
    else:
        for part in split_evenly(steps, _SLICE):
            counts.update(_write(core, part))
    shown = [PlannedStep(action=step.action, target=step.target, reason=step.reason) for step in steps[:SHOWN]]
    return GraphChange(dry_run=dry_run, counts=dict(counts), total=len(steps), steps=shown)


def _write(core: Core, steps: list[Step]) -> dict[str, int]:
    return core.store.write(lambda transaction: apply(core, transaction, steps, 0)).result()

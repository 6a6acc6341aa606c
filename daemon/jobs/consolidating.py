"""Consolidation by hand: everything within reach moves through all tiers now, whatever its age.

Judge what waits, empty L0, move all of L1 to the registry, cluster. The moves are one
operation. The facts of what was said and not processed yet are due then.
A dry run counts what would happen to what is there now; turns that are not judged yet count as they are.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from memoryd.client.errors import Conflict
from memoryd.client.protocol import Consolidate, Consolidated, JobRun, Progress, RunJob
from memoryd.daemon.conversations import judging, promoting, thinking
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.work import Apply, Step
from memoryd.daemon.jobs import sweeping
from memoryd.daemon.jobs.runner import Runner
from memoryd.daemon.jobs.table import list_jobs
from memoryd.daemon.memories.adding import compute_expiry
from memoryd.daemon.registry import ReportProgress, handles
from memoryd.daemon.store import history, namespaces, rows
from memoryd.daemon.store.namespaces import condition
from memoryd.daemon.store.tiers import L1
from memoryd.daemon.store.writer import Transaction

SLICE = 32  # steps per transaction: a few ms of the writer
_CLUSTER = "cluster"  # the job of topics, which may not be there
_STANDSTILL_S, _POLL_S = 10.0, 0.05
_EACH_S = 0.2  # at most, for a vector: others may write faster than is embedded


class Tools(NamedTuple):
    """What a consolidation needs of its caller: a function that reports progress, and one that runs the cluster job."""

    report: ReportProgress
    cluster: Callable[[], JobRun | None]


@handles(Consolidate)
def handle(core: Core, report: ReportProgress, jobs: Runner, call: Consolidate) -> Consolidated:
    """Move everything on."""

    def cluster() -> JobRun | None:
        try:
            return jobs.run(RunJob(name=_CLUSTER), report).result()
        except Conflict:  # it is under way: what was moved is taken in by that run or the next
            return None

    return consolidate(core, call, Tools(report, cluster))


def consolidate(core: Core, call: Consolidate, tools: Tools) -> Consolidated:
    """Consolidate, or count what would be done."""
    began = time.perf_counter()
    reached = core.store.namespaces.reach(namespaces.check(call.namespace), call.reach)
    run, clustered = _Moves(core, call.namespace, tools.report), None
    if call.dry_run:
        counts = predict(core, reached)
    else:
        counts = run.counts
        counts["judged"] = _judge_all(core, tools.report)
        concerned = [number for number in core.active.fill() if reached is None or number in reached]
        run.apply_stage("promote", promoting.plan_steps(core, concerned, "asked for"), promoting.apply)
        run.apply_stage("move", sweeping.plan_all(core, core.clock(), reached), sweeping.apply)
        _embed_all(core, tools.report)
        if _CLUSTER in list_jobs():
            tools.report(Progress(stage=_CLUSTER, done=0, total=1))
            clustered = tools.cluster()
        thinking.hurry(core, reached)
    return Consolidated(
        dry_run=call.dry_run,
        judged=counts["judged"],
        promoted=counts["promoted"],
        dropped=counts["dropped"],
        moved=counts["moved"],
        paired=0,
        clustered=clustered.counts if clustered else {},
        operation=run.operation,
        took_ms=(time.perf_counter() - began) * 1000,
    )


def _judge_all(core: Core, report: ReportProgress) -> int:
    total = _count_unjudged(core)
    portions = judging.count_batches(core)  # and no more: others may observe faster than is judged
    for portion in range(portions):
        report(Progress(stage="judge", done=portion, total=portions))
        if not judging.step_at_once(core):
            break
    report(Progress(stage="judge", done=portions, total=portions))
    return max(0, total - _count_unjudged(core))  # without a model some must wait


def _embed_all(core: Core, report: ReportProgress) -> None:
    """Wait for the vectors of what was promoted, so that it is clustered with the rest; not when they do not get on."""
    generation = core.embedding.active
    if generation is None:
        return
    total = waiting = len(generation.pending)
    end = time.monotonic() + _STANDSTILL_S + _EACH_S * total
    give_up_at = time.monotonic() + _STANDSTILL_S
    while waiting and time.monotonic() < min(end, give_up_at):
        report(Progress(stage="embed", done=total - waiting, total=total))
        time.sleep(_POLL_S)
        if (now := len(generation.pending)) < waiting:
            give_up_at = time.monotonic() + _STANDSTILL_S
        total, waiting = max(total, now), now


def _count_unjudged(core: Core) -> int:
    """Return how many judgements wait that decide where a turn moves; summaries are made at the end."""
    waiting = judging.count_waiting(core)
    return waiting.get("rate", 0) + waiting.get("embed", 0)


class _Moves:
    """Steps applied in slices, as one operation."""

    def __init__(self, core: Core, namespace: str, report: ReportProgress) -> None:
        self._core, self._namespace, self._report = core, namespace, report
        self.counts: Counter[str] = Counter()
        self.operation: str | None = None

    def apply_stage(self, stage: str, planned: Iterable[Step], apply: Apply) -> None:
        """Apply all steps; between two slices the other writers have their turn."""
        steps = list(planned)
        for start in range(0, len(steps), SLICE):
            self._report(Progress(stage=stage, done=start, total=len(steps)))
            part = steps[start : start + SLICE]
            write = partial(self._apply_slice, part=part, apply=apply)
            self.operation, counts = self._core.store.write(write).result()
            self.counts.update(counts)

    def _apply_slice(self, transaction: Transaction, part: Sequence[Step], apply: Apply) -> tuple[str, dict[str, int]]:
        operation = self.operation
        if operation is None:
            connection = transaction.connection
            operation = history.begin(connection, "consolidate", self._namespace, self._core.clock())
        return operation, apply(self._core, transaction, part, operation)


# Dry run -------------------------------------------------------------------------------------------------------------


def predict(core: Core, reached: frozenset[int] | None) -> Counter[str]:
    """Return what a consolidation would count."""
    counts: Counter[str] = Counter(judged=_count_unjudged(core))
    leaving = [promoting.judge(core, turn) for turn in core.active.list_turns(reached)]
    dropped = sum(one.dropped is not None for one in leaving)
    counts.update(promoted=len(leaving) - dropped, dropped=dropped)
    promoted = [one.turn for one in leaving if one.tier == L1]
    now = core.clock()
    ends = (compute_expiry(core, turn.source, turn.created_at) for turn in promoted)  # as it is promoted
    moved = sum(end is None or end > now for end in ends)
    with core.store.reading() as connection:
        counts.update(moved=moved + rows.count_leaving(connection, condition(reached), now))
    return counts

"""Empty L0 on request: rate the waiting turns, then move all turns of L0 to L1 or L2 as one operation.

Memories of L1 stay there; the sweep moves them by age. The extraction of facts from unprocessed turns becomes due. A
dry run counts what would happen to the present turns, with the importance that they have now.
"""

import time
from collections import Counter
from collections.abc import Sequence
from functools import partial

from memoryd.client.protocol import Consolidate, Consolidated, Progress
from memoryd.daemon.conversations import extracting, judging, promoting
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.work import Step
from memoryd.daemon.registry import ReportProgress, handles
from memoryd.daemon.store import history, namespaces
from memoryd.daemon.store.writer import Transaction

SLICE = 32  # steps per transaction: a few ms of the writer
_STANDSTILL_S, _POLL_S = 10.0, 0.05
_EACH_S = 0.2  # the most time granted per vector, since others may write faster than vectors are made


@handles(Consolidate)
def consolidate(core: Core, report: ReportProgress, call: Consolidate) -> Consolidated:
    """Consolidate, or with `dry_run` count what would be done."""
    began = time.perf_counter()
    reached = core.store.namespaces.reach(namespaces.check(call.namespace), call.reach)
    operation: str | None = None
    if call.dry_run:
        counts = predict(core, reached)
    else:
        judged = _judge_all(core, report)
        emptied = [number for number in core.active.fill() if reached is None or number in reached]
        steps = list(promoting.plan_steps(core, emptied, "asked for"))
        operation, counts = _promote(core, call.namespace, steps, report)
        counts["judged"] = judged
        _embed_all(core, report)
        extracting.make_facts_due(core, reached)
    return Consolidated(
        dry_run=call.dry_run,
        judged=counts["judged"],
        promoted=counts["promoted"],
        dropped=counts["dropped"],
        moved=0,
        paired=0,
        operation=operation,
        took_ms=(time.perf_counter() - began) * 1000,
    )


def _judge_all(core: Core, report: ReportProgress) -> int:
    total = _count_unjudged(core)
    batches = judging.count_batches(core)  # a limit, since turns may come in faster than they are rated
    for batch in range(batches):
        report(Progress(stage="judge", done=batch, total=batches))
        if not judging.step_at_once(core):
            break
    report(Progress(stage="judge", done=batches, total=batches))
    return max(0, total - _count_unjudged(core))  # without a model, embedding waits


def _embed_all(core: Core, report: ReportProgress) -> None:
    """Wait for the vectors of the promoted turns; give up if there is no progress."""
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
    """Return how many ratings and vectors are missing; summaries do not decide where a turn goes."""
    waiting = judging.count_waiting(core)
    return waiting.get("rate", 0) + waiting.get("embed", 0)


def _promote(
    core: Core, namespace: str, steps: Sequence[Step], report: ReportProgress
) -> tuple[str | None, Counter[str]]:
    """Apply all steps as one operation, in slices between which other writes can run."""
    operation: str | None = None
    counts: Counter[str] = Counter()
    for start in range(0, len(steps), SLICE):
        report(Progress(stage="promote", done=start, total=len(steps)))
        part = steps[start : start + SLICE]
        operation, done = core.store.write(partial(_apply_slice, core, namespace, operation, part)).result()
        counts.update(done)
    return operation, counts


def _apply_slice(
    core: Core, namespace: str, operation: str | None, part: Sequence[Step], transaction: Transaction
) -> tuple[str, Counter[str]]:
    if operation is None:
        operation = history.begin(transaction.connection, "consolidate", namespace, core.clock())
    return operation, promoting.apply(core, transaction, part, operation)


# Dry run -------------------------------------------------------------------------------------------------------------


def predict(core: Core, reached: frozenset[int] | None) -> Counter[str]:
    """Return the counts of a dry run."""
    counts: Counter[str] = Counter(judged=_count_unjudged(core))
    leaving = [promoting.judge(core, turn) for turn in core.active.list_turns(reached)]
    dropped = sum(one.dropped is not None for one in leaving)
    counts.update(promoted=len(leaving) - dropped, dropped=dropped)
    return counts

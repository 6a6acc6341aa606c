"""Move turns out of L0: important ones become memories of L1, the others of L2. Includes the job for quiet namespaces.

Importance decides the tier, never whether a turn is kept; only `[tiers] drop_unimportant` drops turns. `leave` is
called in the transaction that makes turns leave L0. A promoted turn keeps its key, as its id, and its time; the text of
the turns around it is indexed with it for full-text search.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from memoryd.daemon.core.core import Core
from memoryd.daemon.core.work import Step, Work
from memoryd.daemon.store import extraction, history, rows, turns
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import L1, L2
from memoryd.daemon.store.turns import Skip, StoredTurn
from memoryd.daemon.store.writer import Transaction

UNIMPORTANT = "unimportant"
QUIET_H = 24.0  # the turns of a namespace leave L0 when the last one is older than this
CONDENSE_CHARS = 240  # a shorter memory is its own summary


class Leaving(NamedTuple):
    """A turn that leaves L0, the tier that it moves to, and the reason if it is dropped instead (None: it is kept)."""

    turn: StoredTurn
    tier: str
    dropped: str | None = None


def judge(core: Core, turn: StoredTurn) -> Leaving:
    """Decide where a turn goes when it leaves L0, by its present importance."""
    settings = core.config.tiers
    if turn.importance >= settings.promote_from:
        return Leaving(turn, L1)
    return Leaving(turn, L2, UNIMPORTANT if settings.drop_unimportant else None)


def leave(
    core: Core, transaction: Transaction, leaving: Sequence[StoredTurn], operation: str | None = None
) -> Counter[str]:
    """Move turns from L0 to memories; return how many were promoted and dropped."""
    connection = transaction.connection
    if not leaving:
        return Counter()
    if operation is None:
        place = core.store.namespaces.name(leaving[0].namespace)
        operation = history.begin(connection, f"{history.JOB}promote", place, core.clock())
    taken = rows.read_ids(connection, [turn.key for turn in leaving])
    near = turns.find_neighbours(connection, leaving)
    promoted: list[Row] = []
    dropped: list[Leaving] = []
    for one in (judge(core, turn) for turn in leaving):
        turn = one.turn
        history.record_turn(connection, operation, turn, core.store.namespaces.name(turn.namespace))
        if one.dropped:
            dropped.append(one)
            continue
        row = turns.to_memory(turn, one.tier, near[turn.key], core.config.lifetime.days)
        if turn.key in taken:  # an import has added a memory with this id meanwhile
            row.id = core.new_id()
        row.row = rows.insert(connection, row)
        promoted.append(row)
    turns.remove(connection, leaving)
    # Memories without a vector are found without a queue, so the turns' own entries go.
    extraction.remove(connection, "embed", (turn.key for turn in leaving))
    _count_leaving(core, transaction, promoted, dropped)
    core.active.follow(transaction, {turn.namespace for turn in leaving})
    return Counter(promoted=len(promoted), dropped=len(dropped))


def _count_leaving(core: Core, transaction: Transaction, promoted: list[Row], dropped: list[Leaving]) -> None:
    """Count what became of the turns, queue the work on promoted ones, and list the dropped ones as skipped."""
    connection = transaction.connection
    for row in promoted:
        turns.count(connection, row.namespace, f"gone: {history.JOB}promote")  # the new memory balances it
    extraction.queue(
        connection, (row.id for row in promoted if row.tier == L1 and len(row.content) > CONDENSE_CHARS), "condense"
    )
    skips = []
    for turn, _, reason in dropped:
        turns.count(connection, turn.namespace, f"dropped: {reason}")
        skips.append(Skip(turn.namespace, turn.session, turn.role, turn.content, _describe(turn), turn.created_at))
    if skips:
        turns.skip(connection, skips)
    if promoted:
        numbers = [row.row for row in promoted]
        transaction.after_commit(lambda: core.embedding.refresh(numbers))
        transaction.after_commit(core.cognition.wake.set)


def _describe(turn: StoredTurn) -> str:
    return f"left L0 with importance {turn.importance:.2f}"


# The job -------------------------------------------------------------------------------------------------------------


def plan(core: Core, now: float) -> Iterator[Step]:
    """Plan to empty L0 of the namespaces that have been quiet for `QUIET_H` hours."""
    with core.store.reading() as connection:
        quiet = turns.find_quiet(connection, now - QUIET_H * 3600)
    yield from plan_steps(core, quiet, f"quiet for {QUIET_H:g} h")


def plan_steps(core: Core, namespaces: Iterable[int], why: str) -> Iterator[Step]:
    """Plan to empty L0 of `namespaces`, the oldest turns first."""
    for namespace in sorted(namespaces):
        with core.store.reading() as connection:
            ring = turns.read_ring(connection, namespace)
        for turn in ring:
            dropped = judge(core, turn).dropped
            yield Step("drop" if dropped else "promote", turn.key, f"{why}; {_describe(turn)}" if dropped else why)


def apply(core: Core, transaction: Transaction, planned: Sequence[Step], operation: str) -> Counter[str]:
    """Apply one slice; skip turns that have left L0 meanwhile."""
    present = turns.read_keys(transaction.connection, [step.target for step in planned])
    leaving = sorted(present.values(), key=lambda turn: turn.id)
    counts = leave(core, transaction, leaving, operation)
    counts["skipped"] += len(planned) - len(leaving)
    return +counts


PROMOTE = Work(plan, apply)

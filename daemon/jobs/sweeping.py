"""The job `sweep`: memories that were not used for a long time move from L1 to the registry (L2) unchanged.

Recency is `2^(-age / half_life)`, with the age since the last use: creation, change or access. With the half-life of 7
days the limit of 0.2 is reached after 7 x log2(5) = 16.25 days. Pinned memories do not decay, so they stay; superseded
memories move like others; expired memories stay until the job `expire` deletes them.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from memoryd.daemon.core.core import Core
from memoryd.daemon.core.work import Step, Work
from memoryd.daemon.store import aging, history, rows
from memoryd.daemon.store.aging import Leaf
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import L1, TIERS
from memoryd.daemon.store.writer import Transaction

DAY_S = 86400.0
COLD_BELOW = 0.2  # recency below which a memory leaves L1
COLD_AFTER_S = 300.0  # a younger memory does not leave L1 because of its age


def recency(age_s: float, half_life_days: float) -> float:
    """Return the recency, 0.5 ** (age / half_life): 1 at the time of use. A time in the future counts as now."""
    return float(2.0 ** (-max(0.0, age_s) / (half_life_days * DAY_S)))


def cold_age_s(below: float, half_life_days: float) -> float:
    """Return the age at which recency falls below a limit: the inverse of `recency`."""
    return half_life_days * DAY_S * -math.log2(below) if below > 0 else math.inf


# Planning ------------------------------------------------------------------------------------------------------------


def plan(core: Core, now: float) -> Iterator[Step]:
    """Plan to move memories whose recency is below the limit."""
    settings = core.config.tiers
    line = now - cold_age_s(COLD_BELOW, TIERS[L1].half_life_days(settings))
    born = now - COLD_AFTER_S

    def reason(leaf: Leaf) -> str:
        value = recency(now - leaf.used_at, TIERS[L1].half_life_days(settings))
        return f"not used for {(now - leaf.used_at) / DAY_S:.1f} days, recency {value:.2f}"

    with core.store.reading() as connection:
        yield from plan_steps(aging.find_unused(connection, now, line, born), reason)


def plan_steps(leaving: Iterator[Leaf], reason: Callable[[Leaf], str]) -> Iterator[Step]:
    """Plan the moves of memories."""
    return (Step("move", leaf.id, reason(leaf), leaf) for leaf in leaving)


# Applying ------------------------------------------------------------------------------------------------------------


def apply(core: Core, transaction: Transaction, planned: Sequence[Step], operation: str) -> Counter[str]:
    """Run one slice; skip memories that were used, pinned or moved since the plan was made."""
    counts: Counter[str] = Counter()
    moves: list[Leaf] = [step.data for step in planned]
    present = rows.read_rows(transaction.connection, [move.row for move in moves])
    for move in moves:
        if (row := _find_unused(present, move)) is None:
            counts["skipped"] += 1
            continue
        place = core.store.namespaces.name(row.namespace)
        history.record_move(transaction.connection, operation, place, row)
        rows.change(transaction.connection, row.row, {"tier": TIERS[L1].to})
        counts["moved"] += 1
    return counts


def _find_unused(present: dict[int, Row], move: Leaf) -> Row | None:
    row = present.get(move.row)
    if row is None or row.tier != L1 or row.pinned:
        return None
    return row if max(row.updated_at, row.last_accessed_at or 0.0) <= move.used_at else None


SWEEP = Work(plan, apply)

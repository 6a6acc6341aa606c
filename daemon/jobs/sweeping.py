"""The job `sweep`: memories that were not used for a long time move from L1 to the registry (L2) unchanged.

Recency is `2^(-age / half_life)`, with the age since the last use: creation, change or access. With the half-life of 7
days the limit of 0.2 is reached after 7 x log2(5) = 16.25 days. Pinned memories do not decay, so they stay; superseded
memories move like others; expired memories stay until the job `expire` deletes them.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from memoryd.daemon.core.core import Core
from memoryd.daemon.core.work import Step, Work
from memoryd.daemon.store import aging, history, rows
from memoryd.daemon.store.aging import Leaf
from memoryd.daemon.store.tiers import L1, TIERS
from memoryd.daemon.store.writer import Transaction

DAY_S = 86400.0
COLD_BELOW = 0.2  # recency below which a memory leaves L1
COLD_AFTER_S = 300.0  # a younger memory does not leave L1 because of its age


def recency(age_s: float, half_life_days: float) -> float:
    """Return the recency, 0.5 ** (age / half_life): 1 at the time of use. A time in the future counts as now."""
    return float(2.0 ** (-max(0.0, age_s) / (half_life_days * DAY_S)))


def plan(core: Core, now: float) -> Iterator[Step]:
    """Plan to move memories whose recency is below the limit."""
    half_life_days = TIERS[L1].half_life_days(core.config.tiers)
    used_before = now - half_life_days * DAY_S * -math.log2(COLD_BELOW)  # the inverse of `recency`
    with core.store.reading() as connection:
        for leaf in aging.find_unused(connection, now, used_before, now - COLD_AFTER_S):
            age_s = now - leaf.used_at
            value = recency(age_s, half_life_days)
            yield Step("move", leaf.id, f"not used for {age_s / DAY_S:.1f} days, recency {value:.2f}", leaf)


def apply(core: Core, transaction: Transaction, planned: Sequence[Step], operation: str) -> Counter[str]:
    """Run one slice; skip memories that were used, pinned or moved since the plan was made."""
    counts: Counter[str] = Counter()
    moves: list[Leaf] = [step.data for step in planned]
    present = rows.read_rows(transaction.connection, [move.row for move in moves])
    for move in moves:
        row = present.get(move.row)
        if (
            row is None
            or row.tier != L1
            or row.pinned
            or max(row.updated_at, row.last_accessed_at or 0.0) > move.used_at
        ):
            counts["skipped"] += 1
            continue
        place = core.store.namespaces.name(row.namespace)
        history.record_move(transaction.connection, operation, place, row)
        rows.change(transaction.connection, row.row, {"tier": TIERS[L1].to})
        counts["moved"] += 1
    return counts


SWEEP = Work(plan, apply)

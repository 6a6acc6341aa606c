"""Caps: L1 over its limit passes its least recent memories on to L2; L2 over its limit loses its weakest.

The limits are per namespace; extracted facts have one of their own, in whatever tier they are. L1 is ordered by (last
use, importance); L2 by confidence x recency, where confidence is the metadata's number of that name, else the
importance; so do facts, corrections last. Pinned memories count, but are never moved or deleted.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import apsw

from memoryd.daemon.conversations.learning import SOURCE
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.work import Step, Work
from memoryd.daemon.jobs import sweeping
from memoryd.daemon.jobs.sweeping import DAY_S, Leaf
from memoryd.daemon.language.marks import CORRECTION
from memoryd.daemon.memories.removing import remove
from memoryd.daemon.store import rows
from memoryd.daemon.store.tiers import L1, L2, TIERS, half_life_days
from memoryd.daemon.store.writer import Transaction

_USED = "max(m.updated_at, coalesce(m.last_accessed_at, 0))"
_OVER = "SELECT m.namespace, count(*) FROM memories m WHERE m.tier = '{tier}' GROUP BY 1 HAVING count(*) > ? ORDER BY 1"
_LEAST_RECENT = (
    f"{sweeping.RECENT} AND m.namespace = ?2 AND NOT m.pinned ORDER BY {_USED}, m.importance, m.row LIMIT ?3"
)
_CONFIDENCE = (
    "CASE WHEN json_type(m.metadata, '$.confidence') IN ('integer', 'real')"
    " THEN min(max(json_extract(m.metadata, '$.confidence'), 0), 1) ELSE m.importance END"
)
_WEAKEST = (
    f"SELECT m.row, m.id, {_CONFIDENCE} * pow(0.5, max(0, ?2 - {_USED}) / ?3) AS worth FROM memories m"
    f" WHERE m.tier = {L2!r} AND m.namespace = ?1 AND NOT m.pinned ORDER BY worth, {_USED}, m.row LIMIT ?4"
)
_MANY_FACTS = (
    f"SELECT m.namespace, count(*) FROM memories m WHERE m.source = '{SOURCE}' GROUP BY 1 HAVING count(*) > ?"
    " ORDER BY 1"
)
# What corrected an agent is deleted last.
_WEAKEST_FACTS = (
    f"SELECT m.row, m.id, {_CONFIDENCE} * pow(0.5, max(0, ?2 - {_USED}) / ?3) AS worth FROM memories m"
    f" WHERE m.source = '{SOURCE}' AND m.namespace = ?1 AND NOT m.pinned"
    f" ORDER BY m.type = '{CORRECTION}', worth, {_USED}, m.row LIMIT ?4"
)


def plan(core: Core, now: float) -> Iterator[Step]:
    """Plan what brings every namespace below its limits."""
    settings = core.config.tiers
    with core.store.reading() as connection:
        for namespace, count in _namespaces_over(connection, L1, TIERS[L1].limit(settings)):
            yield from _plan_moves(core, connection, namespace, count, now)
        if limit := TIERS[L2].limit(settings):
            for namespace, count in _namespaces_over(connection, L2, limit):
                yield from _weakest(core, connection, namespace, count, now)
        if limit := core.config.cognition.max_facts:
            for namespace, count in _facts(connection, limit):
                yield from _least_facts(core, connection, namespace, count, now)


def _namespaces_over(connection: apsw.Connection, tier: str, limit: int) -> list[tuple[int, int]]:
    found: Any = connection.execute(_OVER.format(tier=tier), (limit,)).fetchall()
    return list(found)


def _plan_moves(core: Core, connection: apsw.Connection, namespace: int, count: int, now: float) -> Iterator[Step]:
    limit = TIERS[L1].limit(core.config.tiers)
    why = f"{L1} of {core.store.namespaces.name(namespace) or 'the root'} has {count}, its limit is {limit}"
    found: Any = connection.execute(_LEAST_RECENT, (now, namespace, count - limit))
    leaves = (Leaf(*values) for values in found)
    yield from sweeping.steps(connection, now, leaves, lambda leaf: True, lambda leaf: why)


def _weakest(core: Core, connection: apsw.Connection, namespace: int, count: int, now: float) -> Iterator[Step]:
    limit = TIERS[L2].limit(core.config.tiers)
    why = f"{L2} of {core.store.namespaces.name(namespace) or 'the root'} has {count}, its limit is {limit}"
    values = (namespace, now, half_life_days(L2, core.config.tiers) * DAY_S, count - limit)
    found: Any = connection.execute(_WEAKEST, values)
    for row, id, worth in found:
        yield Step("delete", id, f"{why}; confidence x recency {worth:.3f}", row)


def _facts(connection: apsw.Connection, limit: int) -> list[tuple[int, int]]:
    found: Any = connection.execute(_MANY_FACTS, (limit,)).fetchall()
    return list(found)


def _least_facts(core: Core, connection: apsw.Connection, namespace: int, count: int, now: float) -> Iterator[Step]:
    limit = core.config.cognition.max_facts
    why = f"{core.store.namespaces.name(namespace) or 'the root'} has {count} extracted facts, its limit is {limit}"
    values = (namespace, now, half_life_days(L2, core.config.tiers) * DAY_S, count - limit)
    found: Any = connection.execute(_WEAKEST_FACTS, values)
    for row, id, worth in found:
        yield Step("delete", id, f"{why}; confidence x recency {worth:.3f}", row)


def apply(core: Core, transaction: Transaction, planned: Sequence[Step], operation: int) -> Counter[str]:
    """Run one slice."""
    counts = sweeping.apply(core, transaction, [step for step in planned if step.action != "delete"], operation)
    weak = [step.data for step in planned if step.action == "delete"]
    present = rows.by_rows(transaction.connection, weak)
    going = [row for row in present.values() if (row.tier == L2 or row.source == SOURCE) and not row.pinned]
    remove(core, transaction, going, operation)
    counts.update(deleted=len(going), skipped=len(weak) - len(going))
    return +counts


CAPS = Work(plan, apply, at_limit=True)

"""Caps: if L1 is over its limit, its least recent memories move to L2; if L2 is, its weakest memories are deleted.

The limits are per namespace; extracted facts have a limit of their own in any tier. L1 is ordered by (last use,
importance), L2 by confidence x recency; confidence is the number of that name in the metadata, else the importance.
Facts are ordered like L2, but corrections are deleted last. Pinned memories count, but are never moved or deleted.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from memoryd.daemon.core.core import Core
from memoryd.daemon.core.work import Step, Work
from memoryd.daemon.jobs import sweeping
from memoryd.daemon.jobs.sweeping import DAY_S
from memoryd.daemon.llm.llm import CORRECTION
from memoryd.daemon.memories.changing import remove
from memoryd.daemon.store import aging, rows
from memoryd.daemon.store.aging import Group
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.queries import EXTRACTION
from memoryd.daemon.store.tiers import L1, L2, TIERS
from memoryd.daemon.store.writer import Transaction

_L2 = Group("tier", L2)
MAX_FACTS = 500  # extracted ones, of a namespace
_FACTS = Group("source", EXTRACTION, last_type=CORRECTION)


def plan(core: Core, now: float) -> Iterator[Step]:
    """Plan the moves and deletions that bring every namespace below its limits."""
    settings = core.config.tiers
    with core.store.reading() as connection:
        limit = TIERS[L1].limit(settings)
        for namespace, count in aging.count_over(connection, Group("tier", L1), limit):
            reason = f"{L1} of {core.store.namespaces.name(namespace) or 'the root'} has {count}, its limit is {limit}"
            for leaf in aging.find_least_recent(connection, namespace, count - limit):
                yield Step("move", leaf.id, reason, leaf)
        yield from _delete_weakest(core, connection, _L2, TIERS[L2].limit(settings), now)
        yield from _delete_weakest(core, connection, _FACTS, MAX_FACTS, now)


def _delete_weakest(core: Core, connection: Connection, group: Group, limit: int, now: float) -> Iterator[Step]:
    decay = now, TIERS[L2].half_life_days(core.config.tiers) * DAY_S
    for namespace, count in aging.count_over(connection, group, limit) if limit else ():
        place = core.store.namespaces.name(namespace) or "the root"
        has = f"{L2} of {place} has {count}" if group is _L2 else f"{place} has {count} extracted facts"
        for row, id, worth in aging.find_weakest(connection, group, namespace, count - limit, decay):
            yield Step("delete", id, f"{has}, its limit is {limit}; confidence x recency {worth:.3f}", row)


def apply(core: Core, transaction: Transaction, planned: Sequence[Step], operation: str) -> Counter[str]:
    """Run one slice."""
    counts = sweeping.apply(core, transaction, [step for step in planned if step.action != "delete"], operation)
    weak = [step.data for step in planned if step.action == "delete"]
    present = rows.read_rows(transaction.connection, weak)
    going = [row for row in present.values() if (row.tier == L2 or row.source == EXTRACTION) and not row.pinned]
    remove(core, transaction, going, operation)
    counts.update(deleted=len(going), skipped=len(weak) - len(going))
    return +counts


CAPS = Work(plan, apply, at_limit=True)

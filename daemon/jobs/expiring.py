"""Expiry: what has expired is out of every search at once, stays readable by id for a while, and is deleted then."""

from collections import Counter
from collections.abc import Iterator, Sequence

from memoryd.daemon.core.core import Core
from memoryd.daemon.core.work import Step, Work
from memoryd.daemon.memories.removing import remove
from memoryd.daemon.store import aging, rows
from memoryd.daemon.store.writer import Transaction

_DAY_S = 86400.0


def plan(core: Core, now: float) -> Iterator[Step]:
    """Plan to delete what expired longer ago than the grace."""
    before = now - core.config.lifetime.grace_days * _DAY_S
    with core.store.reading() as connection:
        for row, id, expires_at in aging.find_expired(connection, before):
            yield Step("delete", id, f"expired {(now - expires_at) / _DAY_S:.1f} days ago", (row, before))


def apply(core: Core, transaction: Transaction, planned: Sequence[Step], operation: int) -> Counter[str]:
    """Delete one slice; what was pinned or lives longer since is skipped."""
    present = rows.read_rows(transaction.connection, [step.data[0] for step in planned])
    going = [
        row
        for row, before in ((present.get(number), before) for number, before in (step.data for step in planned))
        if row is not None and not row.pinned and row.expires_at is not None and row.expires_at <= before
    ]
    remove(core, transaction, going, operation)
    return +Counter(deleted=len(going), skipped=len(planned) - len(going))


EXPIRE = Work(plan, apply, at_limit=True)

"""Expiry: what has expired is out of every search at once, stays readable by id for a while, and is deleted then."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from memoryd.daemon.core.core import Core
from memoryd.daemon.core.work import Step, Work
from memoryd.daemon.memories.removing import remove
from memoryd.daemon.store import rows
from memoryd.daemon.store.tiers import DOCUMENTS
from memoryd.daemon.store.writer import Transaction

_DAY_S = 86400.0
# What a file holds stays as long as it does.
_EXPIRED = (
    "SELECT m.row, m.id, m.expires_at FROM memories m WHERE m.expires_at IS NOT NULL AND m.expires_at <= ?"
    f" AND NOT m.pinned AND m.tier <> {DOCUMENTS!r} ORDER BY m.expires_at, m.row"
)


def plan(core: Core, now: float) -> Iterator[Step]:
    """Plan to delete what expired longer ago than the grace."""
    before = now - core.config.lifetime.grace_days * _DAY_S
    with core.store.reading() as connection:
        found: Any = connection.execute(_EXPIRED, (before,))
        for row, id, expires_at in found:
            yield Step("delete", id, f"expired {(now - expires_at) / _DAY_S:.1f} days ago", (row, before))


def apply(core: Core, transaction: Transaction, planned: Sequence[Step], operation: int) -> Counter[str]:
    """Delete one slice; what was pinned or lives longer since is skipped."""
    present = rows.by_rows(transaction.connection, [step.data[0] for step in planned])
    going = [
        row
        for row, before in ((present.get(number), before) for number, before in (step.data for step in planned))
        if row is not None and not row.pinned and row.expires_at is not None and row.expires_at <= before
    ]
    remove(core, transaction, going, operation)
    return +Counter(deleted=len(going), skipped=len(planned) - len(going))


EXPIRE = Work(plan, apply, at_limit=True)

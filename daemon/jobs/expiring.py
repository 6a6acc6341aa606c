"""The job `expire`: an expired memory is excluded from searches at once, remains readable by its id, and is deleted
after `GRACE_DAYS`. Turns older than `[tiers] turn_days` are deleted too, if that is set.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from memoryd.daemon.core.core import Core
from memoryd.daemon.core.work import Step, Work
from memoryd.daemon.memories.changing import remove
from memoryd.daemon.store import aging, rows
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.writer import Transaction

GRACE_DAYS = 30.0  # during which an expired memory remains readable by its id
_DAY_S = 86400.0


def plan(core: Core, now: float) -> Iterator[Step]:
    """Plan to delete memories that expired, were stored and were last changed more than `GRACE_DAYS` ago."""
    before = now - GRACE_DAYS * _DAY_S
    with core.store.reading() as connection:
        for row, id, expires_at in aging.find_expired(connection, before):
            yield Step("delete", id, f"expired {(now - expires_at) / _DAY_S:.1f} days ago", (row, before, False))
        if days := core.config.tiers.turn_days:
            for row, id, said_at in aging.find_old_turns(connection, now - days * _DAY_S):
                yield Step(
                    "delete", id, f"said {(now - said_at) / _DAY_S:.1f} days ago", (row, now - days * _DAY_S, True)
                )


def apply(core: Core, transaction: Transaction, planned: Sequence[Step], operation: str) -> Counter[str]:
    """Delete one slice; skip memories that were pinned or got a later expiry since the plan was made."""
    present = rows.read_rows(transaction.connection, [step.data[0] for step in planned])
    going = [
        row
        for number, before, is_turn in (step.data for step in planned)
        if (row := present.get(number)) is not None and not row.pinned and _is_due(row, before, is_turn)
    ]
    remove(core, transaction, going, operation)
    return +Counter(deleted=len(going), skipped=len(planned) - len(going))


def _is_due(row: Row, before: float, is_turn: bool) -> bool:
    if is_turn:
        return row.turns > 0 and row.created_at <= before
    return row.expires_at is not None and max(row.expires_at, row.updated_at) <= before


EXPIRE = Work(plan, apply, at_limit=True)

"""Facts that a former memoryd made of turns by rules are deleted, once: most were orders, passing or false.

What somebody has touched since stays: pinned, changed, shared or voted for; so does what a language model made. The
turns that the facts were made of are still there. The daemon runs this before it serves anybody; `undo` brings the
facts back, and they stay then.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from memoryd.daemon.conversations.learning import SOURCE
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.work import Step, Work
from memoryd.daemon.memories.removing import remove
from memoryd.daemon.store import rows, settings
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.filters import Filter
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.writer import Transaction

DELETED = "facts_by_rules_deleted"  # the setting: when they were
_PORTION = 500


def are_left(core: Core) -> bool:
    """Return whether there is anything to delete."""
    return next(plan(core, 0.0), None) is not None


def plan(core: Core, now: float) -> Iterator[Step]:
    """Plan to delete the facts, if that was not done before."""
    if core.store.read_setting(DELETED) is not None:
        return
    numbers = core.store.facts.build_mask(Filter(words={"source": [SOURCE]}), core.clock()).list_rows()
    total = 0
    for start in range(0, len(numbers), _PORTION):
        with core.store.reading() as connection:
            going = _select(connection, numbers[start : start + _PORTION])
        total += len(going)
        yield from (Step("delete", row.id, "rules made it of what was said", row.row) for row in going)
    if total:
        yield Step("note", "facts", "rules make none any more")


def _select(connection: Connection, numbers: Sequence[int]) -> list[Row]:
    """Return those of some memories that rules made and nobody has touched."""
    return [
        row
        for row in rows.read_rows(connection, numbers).values()
        if row.source == SOURCE
        and msgspec.json.decode(row.metadata).get("by") == "rules"
        and not (row.pinned or row.feedback or row.key is not None or row.updated_at != row.created_at)
    ]


def apply(core: Core, transaction: Transaction, planned: Sequence[Step], operation: str) -> Counter[str]:
    """Delete one slice, and note at the end that it is done."""
    numbers = [step.data for step in planned if step.action == "delete"]
    going = _select(transaction.connection, numbers)
    remove(core, transaction, going, operation)
    if len(numbers) < len(planned):
        settings.put(transaction.connection, DELETED, str(core.clock()))
    return +Counter(deleted=len(going), skipped=len(numbers) - len(going))


RULE_FACTS = Work(plan, apply, at_limit=True)

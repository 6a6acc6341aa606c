"""Seeding: many turns or memories at once. No gate; turns are rated as they come, so that L0 lets the right ones on.

Each portion is durable by itself: what was told as progress stays after a crash.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from memoryd.client.errors import Invalid
from memoryd.client.protocol import AddMany, Progress, Seed, Seeded
from memoryd.daemon.cognition.provider import RULES
from memoryd.daemon.core import adding
from memoryd.daemon.core.checks import check_memory
from memoryd.daemon.core.core import Core
from memoryd.daemon.lifecycle import observing
from memoryd.daemon.lifecycle.observing import Taken
from memoryd.daemon.registry import handles
from memoryd.daemon.store import namespaces
from memoryd.daemon.store.caller import USER, Caller

PORTION = 32

T = TypeVar("T")

Report = Callable[[Progress], None]


@handles(Seed)
def seed(core: Core, call: Seed, report: Report, caller: Caller = USER) -> Seeded:
    """Take in turns and memories, portion by portion; all are checked before the first is written."""
    _check(call, caller)
    done, total = Seeded(turns=0, created=0, merged=0), len(call.turns) + len(call.memories)
    for portion in _portions(call.turns):
        # By the rules whatever the provider: somebody waits.
        rated = RULES.rate([(turn.role, turn.content) for turn in portion])
        taken = [Taken(turn, None, importance) for turn, importance in zip(portion, rated, strict=True)]
        observed = observing.take(core, call.namespace, call.session, taken).result()
        done.turns += observed.accepted
        done.skipped += observed.skipped
        report(Progress(stage="seed", done=done.turns + done.skipped, total=total))
    for memories in _portions(call.memories):
        embedded = core.embedding.text_vectors([memory.content for memory in memories])
        many = AddMany(memories=memories, namespace=call.namespace, reach=call.reach)
        added = adding.add_many(core, many, embedded, caller).result()
        done.created += added.created
        done.merged += added.merged
        report(Progress(stage="seed", done=len(call.turns) + done.created + done.merged, total=total))
    return done


def _portions(items: Sequence[T]) -> Iterator[list[T]]:
    return (list(items[start : start + PORTION]) for start in range(0, len(items), PORTION))


def _check(call: Seed, caller: Caller) -> None:
    if not call.turns and not call.memories:
        raise Invalid("Neither turns nor memories are given to seed.")
    namespaces.check(call.namespace)
    if call.turns:
        observing.check(call.namespace, call.session, call.turns, caller)
    for number, memory in enumerate(call.memories):
        try:
            check_memory(memory)
        except Invalid as error:
            raise Invalid(f"Memory {number}: {error}", {"index": number}) from None

"""Seeding: many turns or memories at once. No gate; turns are rated as they come, so that L0 lets the right ones on.

Each batch is durable by itself: what was reported as progress stays after a crash.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from memoryd.client.credentials.private import WHOLE
from memoryd.client.errors import Invalid
from memoryd.client.protocol import AddMany, NewMemory, NewTurn, Progress, Seed, Seeded
from memoryd.client.transport.batches import split_evenly
from memoryd.daemon.conversations import observing
from memoryd.daemon.conversations.observing import Taken
from memoryd.daemon.core.checks import check_nth
from memoryd.daemon.core.core import Core
from memoryd.daemon.llm.provider import RULES
from memoryd.daemon.memories import adding_many, parts
from memoryd.daemon.registry import Parts, ReportProgress, finish, handles
from memoryd.daemon.store import namespaces
from memoryd.daemon.store.caller import USER, Caller

PORTION = 32

Take = Callable[[], None]


@handles(Seed)
def seed(core: Core, call: Seed, report: ReportProgress, caller: Caller = USER) -> "Parts[Seeded]":
    """Take in turns and memories, batch by batch; all are checked before the first is written."""
    _check(call, caller)
    done, total = Seeded(turns=0, created=0, merged=0), len(call.turns) + len(call.memories)
    for take in (*_turns(core, call, done), *_take_memories(core, call, done, caller)):
        if taken := done.turns + done.skipped + done.created + done.merged:
            yield
        try:
            core.check_going_on()
            core.store.check_room()
            take()
        except Exception as error:
            raise parts.cut_short(error, taken, total, ()) from None
        report(Progress(stage="seed", done=done.turns + done.skipped + done.created + done.merged, total=total))
    return done


def _turns(core: Core, call: Seed, done: Seeded) -> Iterator[Take]:
    """Yield what takes in a batch of turns."""

    def take(batch: Sequence[NewTurn]) -> None:
        # By the rules whatever the provider: somebody waits.
        rated = RULES.rate([(turn.role, turn.content) for turn in batch])
        taken = [
            Taken(turn, observing.PRIVATE if turn.content == WHOLE else None, importance)
            for turn, importance in zip(batch, rated, strict=True)
        ]
        observed = observing.take(core, call.namespace, call.session, taken).result()
        done.turns += observed.accepted
        done.skipped += observed.skipped

    return (partial(take, batch) for batch in split_evenly(call.turns, PORTION))


def _take_memories(core: Core, call: Seed, done: Seeded, caller: Caller) -> Iterator[Take]:
    """Yield what takes in a batch of memories."""

    def take(batch: list[NewMemory]) -> None:
        many = AddMany(memories=batch, namespace=call.namespace, reach=call.reach)
        added = finish(adding_many.add_many(core, many, caller=caller))
        done.created += added.created
        done.merged += added.merged

    return (partial(take, batch) for batch in parts.split(call.memories, PORTION))


def _check(call: Seed, caller: Caller) -> None:
    if not call.turns and not call.memories:
        raise Invalid("Neither turns nor memories are given to seed.")
    namespaces.check(call.namespace)
    if call.turns:
        observing.check(call.namespace, call.session, call.turns, caller)
    for number, memory in enumerate(call.memories):
        check_nth(number, memory)

"""Move turns, tokens and pauses to another namespace when a project is renamed. Memories are moved by `share`."""

from concurrent.futures import Future

from memoryd.client.errors import Invalid
from memoryd.client.protocol import MovedNamespace, MoveNamespace
from memoryd.daemon.conversations import promoting
from memoryd.daemon.conversations.observing import choose_leaving
from memoryd.daemon.core.core import Core
from memoryd.daemon.registry import handles
from memoryd.daemon.store import extraction, known_projects, namespaces, turns
from memoryd.daemon.store.writer import Transaction


@handles(MoveNamespace)
def move(core: Core, call: MoveNamespace) -> "Future[MovedNamespace]":
    """Move turns and tokens to another namespace and copy its pauses, in one transaction."""
    if "" in (namespaces.check(call.namespace), namespaces.check(call.to)) or call.namespace == call.to:
        raise Invalid("Give two different namespaces; neither may be the root.")

    def write(transaction: Transaction) -> MovedNamespace:
        core.pauses.spread(transaction, call.namespace, call.to)
        tokens = core.tokens.move(transaction, call.namespace, call.to)
        known_projects.note_within(transaction, core.store)
        return MovedNamespace(turns=_move_turns(core, transaction, call), tokens=tokens)

    return core.store.write(write)


def _move_turns(core: Core, transaction: Transaction, call: MoveNamespace) -> int:
    """Move the turns of L0 with their queued tasks; the oldest leave L0 if it is too full."""
    connection, numbers = transaction.connection, core.store.namespaces
    old = numbers.find_number(call.namespace)
    if old is None:
        return 0
    new = numbers.ensure(transaction, call.to)
    moved = turns.move(connection, old, new)
    extraction.move(connection, old, new)
    ring = turns.read_ring(connection, new)
    leaving = choose_leaving(ring, len(ring) - core.config.tiers.ring, core.active.writers)
    promoting.leave(core, transaction, leaving)
    core.active.follow(transaction, [old, new])
    return moved

"""Settling what holds of a saved memory and of what was said or saved later: a verdict is kept and not asked again.

That the later one holds makes it the successor of the memory, a turn as a memory of its own: one operation, which an
undo takes back. That both hold is noted with the pair.
"""

from concurrent.futures import Future

from memoryd.client import protocol
from memoryd.client.errors import AmbiguousId, Forbidden, NotFound
from memoryd.client.protocol import Add, LaterStatement, MemoryOrigin, NewMemory, Settled
from memoryd.daemon.agreement.changes import find_words
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import adding
from memoryd.daemon.memories.changing import show, visible_condition
from memoryd.daemon.registry import handles
from memoryd.daemon.store import history, later, links, rows
from memoryd.daemon.store.caller import USER, Caller
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.writer import Transaction


@handles(protocol.ListChanges)
def list_changes(core: Core, call: protocol.ListChanges) -> protocol.ChangedMemories:
    """Return the saved memories within reach that something said or saved later seems to change."""
    condition = visible_condition(core, call)
    with core.store.reading() as connection:
        ids = later.list_changed(connection, condition, core.clock())
        there = later.read(connection, ids, condition, core.clock())
        ids = [id for id in ids if id in there]
        known = rows.read_ids(connection, ids[: call.limit])
        memories = show(core, connection, [known[id] for id in ids[: call.limit]], condition)
    return protocol.ChangedMemories(memories=memories, total=len(ids))


@handles(protocol.SettleChange)
def settle(core: Core, call: protocol.SettleChange, caller: Caller = USER) -> "Future[Settled]":
    """Settle what holds of a memory and the newest later statement.

    Raise `NotFound` where there is none, `Forbidden` where the memory is the person's and somebody else settles it.
    """
    condition = visible_condition(core, call)
    with core.store.reading() as connection:
        old = _find(connection, call.id, condition)
        statement = later.read(connection, [old.id], condition, core.clock()).get(old.id)
    is_person = call.origin == "person" and not caller.bound
    if old.is_persons and not is_person and call.verdict != "open":
        raise Forbidden(f"{old.id[:8]} is the person's: they settle it themselves, by `memctl changes` or on the page.")
    if call.verdict == "new":
        if statement is None:
            raise _missing(call.id)
        return _replace(core, old, statement, call.origin, caller)

    def write(transaction: Transaction) -> Settled:
        connection = transaction.connection
        history.check_change(connection, caller, old.id, core.store.namespaces.name(old.namespace))
        others = later.settle(connection, old.id, later.BOTH if call.verdict == "both" else "")
        if not others:
            raise _missing(call.id)
        for other in others:
            links.dismiss(connection, old.id, other, restore=call.verdict == "open")
        what = "Both hold; it is not asked again" if call.verdict == "both" else "It is open again what holds"
        return Settled(message=f"{what}: {old.id[:8]}.", id=old.id)

    return core.store.write(write)


def _find(connection: Connection, prefix: str, condition: str) -> Row:
    """Return the memory that a prefix names, itself or by what changes it."""
    ids = later.find_memories(connection, prefix.lower(), condition)
    if len(ids) > 1 and (exact := [id for id in ids if id.startswith(prefix.lower())]):
        ids = exact
    if not ids:
        raise _missing(prefix)
    if len(ids) > 1:
        raise AmbiguousId(f"{prefix} stands for several memories: {', '.join(id[:8] for id in ids)}.", {"ids": ids})
    return rows.read_ids(connection, ids)[ids[0]]


def _missing(prefix: str) -> NotFound:
    return NotFound(f"Nothing is open of {prefix[:8]}; `memctl changes` lists what is.", {"id": prefix})


def _replace(
    core: Core, old: Row, statement: LaterStatement, origin: MemoryOrigin, caller: Caller
) -> "Future[Settled]":
    """Make the later statement the successor of a memory."""
    namespace = core.store.namespaces.name(old.namespace)
    done: Future[Settled] = Future()

    def write(transaction: Transaction) -> Settled:
        connection = transaction.connection
        adding.check_replaceable(connection, old, namespace, caller)
        operation = history.begin(connection, "update", caller.log_place(namespace), core.clock())
        history.record(connection, operation, old.id, namespace, old)
        rows.change(connection, old.row, {"superseded_by": statement.id, "updated_at": core.clock()})
        for new in rows.read_ids(connection, [statement.id]).values():
            if origin == "person" and not caller.bound and not new.is_persons:  # they say that it holds
                history.record(connection, operation, new.id, core.store.namespaces.name(new.namespace), new)
                rows.change(connection, new.row, {"confirmed_at": core.clock()})
        return _say(old, statement.id, operation)

    with core.store.reading() as connection:
        is_memory = any(not row.turns for row in rows.read_ids(connection, [statement.id]).values())
    if is_memory:
        return core.store.write(write)
    memory = NewMemory(
        content=_complete(statement.text, old.content),
        type=old.type,
        importance=old.importance,
        origin=origin,
        supersedes=old.id,
    )
    added = adding.add(core, Add(namespace=namespace, memory=memory), caller)

    def finish(future: "Future[protocol.Added]") -> None:
        if error := future.exception():
            done.set_exception(error)
        else:
            outcome = future.result()
            done.set_result(_say(old, outcome.id, outcome.operation))

    added.add_done_callback(finish)
    return done


def _say(old: Row, by: str, operation: str) -> Settled:
    message = f"{by[:8]} replaces {old.id[:8]}; `memctl undo {operation[:8]}` takes that back."
    return Settled(message=message, id=old.id, by=by, operation=operation)


def _complete(text: str, old: str) -> str:
    """Return a statement as a memory that is understood by itself: with the former text where it shares no word."""
    return text if find_words(text) & find_words(old) else f"{text} (before: {old})"

"""Settle whether a saved memory or a later statement that seems to change it is valid; the verdict is stored.

If the later statement is, it supersedes the memory (a turn is saved as a memory first): one operation, which can be
undone. If both are, the verdict is stored with the pair.
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
    """Return the saved memories within reach that a later statement seems to change."""
    condition = visible_condition(core, call)
    with core.store.reading() as connection:
        ids = later.list_changed(connection, condition, core.clock())
        statements = later.read(connection, ids, condition, core.clock())
        ids = [id for id in ids if id in statements]
        known = rows.read_ids(connection, ids[: call.limit])
        memories = show(core, connection, [known[id] for id in ids[: call.limit]], condition)
    return protocol.ChangedMemories(memories=memories, total=len(ids))


@handles(protocol.SettleChange)
def settle(core: Core, call: protocol.SettleChange, caller: Caller = USER) -> "Future[Settled]":
    """Store the verdict on a memory and its newest later statement.

    Raise `NotFound` if there is no such statement, `Forbidden` if the memory is the person's and the caller is not.
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
            raise _build_not_found(call.id)
        return _replace(core, old, statement, call.origin, caller)

    def write(transaction: Transaction) -> Settled:
        connection = transaction.connection
        history.check_change(connection, caller, old.id, core.store.namespaces.name(old.namespace))
        others = later.settle(connection, old.id, later.BOTH if call.verdict == "both" else "")
        if not others:
            raise _build_not_found(call.id)
        for other in others:
            links.dismiss(connection, old.id, other, restore=call.verdict == "open")
        what = "Both hold; it is not asked again" if call.verdict == "both" else "It is open again what holds"
        return Settled(message=f"{what}: {old.id[:8]}.", id=old.id)

    return core.store.write(write)


def _find(connection: Connection, prefix: str, condition: str) -> Row:
    """Return the memory whose id, or whose later statement's id, begins with a prefix."""
    ids = later.find_memories(connection, prefix.lower(), condition)
    if len(ids) > 1 and (exact := [id for id in ids if id.startswith(prefix.lower())]):
        ids = exact
    if not ids:
        raise _build_not_found(prefix)
    if len(ids) > 1:
        raise AmbiguousId(f"{prefix} matches several memories: {', '.join(id[:8] for id in ids)}.", {"ids": ids})
    return rows.read_ids(connection, ids)[ids[0]]


def _build_not_found(prefix: str) -> NotFound:
    return NotFound(f"{prefix[:8]} has no open change; `memctl changes` lists those that have.", {"id": prefix})


def _replace(
    core: Core, old: Row, statement: LaterStatement, origin: MemoryOrigin, caller: Caller
) -> "Future[Settled]":
    """Supersede a memory by the later statement."""
    namespace = core.store.namespaces.name(old.namespace)
    done: Future[Settled] = Future()

    def write(transaction: Transaction) -> Settled:
        connection = transaction.connection
        adding.check_replaceable(connection, old, namespace, caller)
        operation = history.begin(connection, "update", caller.log_place(namespace), core.clock())
        history.record(connection, operation, old.id, namespace, old)
        rows.change(connection, old.row, {"superseded_by": statement.id, "updated_at": core.clock()})
        for new in rows.read_ids(connection, [statement.id]).values():
            if origin == "person" and not caller.bound and not new.is_persons:  # the person confirms it
                history.record(connection, operation, new.id, core.store.namespaces.name(new.namespace), new)
                rows.change(connection, new.row, {"confirmed_at": core.clock()})
        return _build_settled(old, statement.id, operation)

    with core.store.reading() as connection:
        is_memory = any(not row.turns for row in rows.read_ids(connection, [statement.id]).values())
    if is_memory:
        return core.store.write(write)
    # If it shares no word with the former text, that text is appended.
    is_clear = find_words(statement.text) & find_words(old.content)
    memory = NewMemory(
        content=statement.text if is_clear else f"{statement.text} (before: {old.content})",
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
            done.set_result(_build_settled(old, outcome.id, outcome.operation))

    added.add_done_callback(finish)
    return done


def _build_settled(old: Row, by: str, operation: str) -> Settled:
    message = f"{by[:8]} replaces {old.id[:8]}; `memctl undo {operation[:8]}` takes that back."
    return Settled(message=message, id=old.id, by=by, operation=operation)

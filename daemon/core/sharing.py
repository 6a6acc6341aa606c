"""Sharing: memories go outward, to a namespace that encloses theirs, as a copy or as themselves.

Decided in the writer's transaction as an add is: what the target already knows is merged. Whoever may read a memory may
copy it outward, as it could add the same there; only who may change it may move it.
"""

import secrets
from concurrent.futures import Future

import apsw
import msgspec

from memoryd.client.errors import Conflict, Invalid
from memoryd.client.protocol import NewMemory, Share, Shared, SharedMemory
from memoryd.daemon.core import adding, duplicates
from memoryd.daemon.core.changing import visible
from memoryd.daemon.core.checks import check_editable
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.duplicates import Embedded, New, Place, Verdict
from memoryd.daemon.registry import handles
from memoryd.daemon.store import feedback, history, namespaces, rows, successors, vectors
from memoryd.daemon.store.caller import USER, Caller
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.workspaces import TIER
from memoryd.daemon.store.writer import Transaction


@handles(Share)
def share(core: Core, call: Share, caller: Caller = USER) -> "Future[Shared]":
    """Copy or move memories outward: all or none, one operation."""
    if not call.ids:
        raise Invalid("No ids are given to share.")
    namespaces.check(call.to)
    condition = visible(core, call)

    def job(transaction: Transaction) -> Shared:
        connection = transaction.connection
        found = {row.id: _memory(row) for row in (rows.resolve(connection, prefix, condition) for prefix in call.ids)}
        if superseded := successors.in_force(connection, found.values(), core.clock.passed()):
            id = next(row.id for row in found.values() if row.row in superseded)
            raise Conflict(f"Memory {id[:8]} is superseded; share the one that replaced it.", {"id": id})
        for row in found.values():
            _check(row, core.store.namespaces.name(row.namespace), call, caller)
        operation = history.begin(connection, "share", caller.logged(call.namespace), core.clock())
        number = core.store.namespaces.ensure(transaction, call.to)
        place = Place(call.to, number, visible=condition, dedup=True, threshold=None, caller=caller)
        share_one = _move if call.move else _copy
        return Shared(
            memories=[share_one(core, transaction, place, row, operation) for row in found.values()],
            operation=operation,
        )

    return core.store.write(job)


def _memory(row: Row) -> Row:
    """Return what is shared of a part of a file: its text, without the headings above it that searches go by."""
    return msgspec.structs.replace(row, text_hash=vectors.text_hash(row.content)) if row.tier == TIER else row


def _check(row: Row, namespace: str, call: Share, caller: Caller) -> None:
    anywhere = not caller.bound and not call.namespace
    target = call.to or "the root"
    if namespace == call.to:
        raise Invalid(f"Memory {row.id[:8]} lies in {target} already.", {"id": row.id})
    if not anywhere and call.to not in namespaces.enclosing(namespace):
        raise Invalid(f"{target} does not enclose {namespace or 'the root'}; memories are shared outward.")
    if call.move:
        caller.check_change(row.id, namespace)
        check_editable(row.id, row.tier, row.path)


def _copy(core: Core, transaction: Transaction, place: Place, source: Row, operation: int) -> SharedMemory:
    connection = transaction.connection
    verdict, memory, embedded = _judge(core, connection, place, source)
    if verdict.same is not None:
        adding.merge(core, transaction, place, verdict, memory, embedded, operation)
        return SharedMemory(id=verdict.same.id, origin=source.id, outcome="merged")
    copy = msgspec.structs.replace(
        source,
        row=0,
        id=secrets.token_hex(16),
        namespace=place.number,
        tier="L1",
        turns=0,  # the turns it was made of are the original's
        superseded_by=None,
        feedback="",
        updated_at=core.clock(),
        last_accessed_at=None,
        access_count=0,
    )
    adding.insert(core, transaction, place, copy, verdict, embedded, operation)
    adding.link(connection, copy.id, source.id, "shared_from", core.clock())
    return SharedMemory(id=copy.id, origin=source.id, outcome="copied")


def _move(core: Core, transaction: Transaction, place: Place, source: Row, operation: int) -> SharedMemory:
    connection = transaction.connection
    verdict, memory, embedded = _judge(core, connection, place, source)
    history.record(connection, operation, source.id, core.store.namespaces.name(source.namespace), source)
    if verdict.same is not None:
        adding.merge(core, transaction, place, verdict, memory, embedded, operation)
        rows.change(connection, source.row, {"superseded_by": verdict.same.id, "updated_at": core.clock()})
        both = feedback.merged(verdict.same.feedback, source.feedback)
        rows.change(connection, verdict.same.row, {"feedback": both})
        return SharedMemory(id=verdict.same.id, origin=source.id, outcome="merged")
    for other in verdict.contradicted:
        adding.link(connection, source.id, other.id, "contradicts", core.clock())
    rows.change(connection, source.row, {"namespace": place.number, "updated_at": core.clock()})
    connection.execute("DELETE FROM members WHERE memory = ?", (source.row,))  # its node belongs to the old namespace
    transaction.after_commit(lambda: core.embedding.refresh([source.row]))
    return SharedMemory(id=source.id, origin=source.id, outcome="moved")


def _judge(core: Core, connection: apsw.Connection, place: Place, source: Row) -> tuple[Verdict, NewMemory, Embedded]:
    """Compare a memory with those of the place it goes to."""
    memory = NewMemory(
        content=source.content,
        type=source.type,
        summary=source.summary,
        metadata=msgspec.json.decode(source.metadata),
        importance=source.importance,
        source=source.source,
        created_at=source.created_at,
        expires_at=source.expires_at,
        pinned=bool(source.pinned),
    )
    embedded = _embedded(core, connection, source)
    return duplicates.judge(core, connection, place, New(memory, embedded), {}), memory, embedded


def _embedded(core: Core, connection: apsw.Connection, row: Row) -> Embedded:
    generation = core.embedding.active
    vector = vectors.cached(connection, generation.model, row.text_hash) if generation else None
    return (generation, vector) if generation and vector is not None else None

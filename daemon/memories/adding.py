"""Add memories: check, embed, search for duplicates, then decide in the writer's transaction.

Since writes are serial, two clients that add the same text at once get one memory. A memory is compared with those of
the same namespace and type: equal normalised texts are merged; similar texts are merged if they say the same; texts
that contradict each other are kept and linked (`duplicates`).
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import msgspec
import numpy as np

from memoryd.client.errors import Conflict, Forbidden
from memoryd.client.protocol import Add, Added, AddMany, NewMemory
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.limits import check_memory, content_hash, metadata_text
from memoryd.daemon.memories import duplicates, origins
from memoryd.daemon.memories.duplicates import AddTarget, Batch, Embedded, New, Verdict
from memoryd.daemon.registry import handles
from memoryd.daemon.search.remotes import Remotes
from memoryd.daemon.store import (
    applied,
    extraction,
    history,
    later,
    links,
    namespaces,
    queries,
    rows,
    turns,
    vectors,
)
from memoryd.daemon.store.caller import USER, Caller
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.contexts import SHORT_CHARS
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import DOCUMENTS, L1
from memoryd.daemon.store.writer import Transaction


@handles(Add)
def add(core: Core, call: Add, caller: Caller = USER) -> "Future[Added]":
    """Add one memory; the future is done when it is on disk, here or in the shared root that it belongs to."""
    remotes: Remotes = core.state(Remotes)
    remote = remotes.find_taking(call)
    if remote is None:
        check_id(call.memory, caller)
        return add_here(core, call, caller)
    namespaces.check(call.namespace)
    check_memory(call.memory)
    return remote.save(call, caller)


def add_here(
    core: Core, call: Add, caller: Caller, tier: str = L1, also: Callable[[Transaction, Added], None] | None = None
) -> "Future[Added]":
    """Add one memory to the local database; `also` runs in the same transaction."""
    namespaces.check(call.namespace)
    check_memory(call.memory)
    memory = origins.credit(core, call.namespace, call.memory, caller)
    embedded = core.embedding.embed_text(memory.content)
    batch = duplicates.search(core, call, [memory], [embedded])

    def write_one(transaction: Transaction) -> Added:
        if not call.idempotency_key:
            return write_new(transaction)
        if known := applied.find(transaction.connection, call.idempotency_key, caller):
            return known
        added = write_new(transaction)
        applied.note(transaction.connection, call.idempotency_key, caller, added, core.clock())
        return added

    def write_new(transaction: Transaction) -> Added:
        operation = history.begin(transaction.connection, "add", caller.log_place(call.namespace), core.clock())
        place = build_target(core, transaction, call, caller)._replace(tier=tier)
        repeated = _find_repeated(core, transaction, place, memory)
        if repeated is not None:
            _note_claim(core, transaction, repeated, add_lifetime(core, memory), operation)
            return Added(
                id=repeated.id,
                outcome="merged",
                embedded=embedded is not None,
                operation=operation,
                namespace=core.store.namespaces.name(repeated.namespace),
            )
        [added] = write(core, transaction, place, batch, operation)
        if added.outcome == "created":  # the worker finds the memories that it changes
            extraction.queue(transaction.connection, [added.id], extraction.COMPARE)
            transaction.after_commit(core.cognition.wake.set)
        if also:
            also(transaction, added)
        return added

    return core.store.write(write_one)


def _find_repeated(core: Core, transaction: Transaction, place: AddTarget, memory: NewMemory) -> Row | None:
    """Return the memory that an add only repeats because a search returned it before, and count that as evidence."""
    if not place.dedup or memory.id or memory.supersedes:
        return None
    connection = transaction.connection
    ids = core.recalls.find_repeated(place.name, "", memory.content)
    if not ids or duplicates.read_equal(core, connection, place, memory):
        return None  # an equal memory is merged
    alive = queries.find_alive(connection, list(ids), place.visible, core.clock())
    rows.count_accesses(connection, [(row.row, 1, core.clock()) for row in alive])
    turns.count(connection, place.number, "evidence", len(alive))
    return alive[0] if alive else None


def check_id(memory: NewMemory, caller: Caller) -> None:
    """Raise `Forbidden` if the caller may not choose ids: a conflict would reveal memories that it cannot see."""
    if memory.id is not None and caller.bound:
        raise Forbidden("Only the machine's user may choose the id of a memory; leave it out.")


def build_target(core: Core, transaction: Transaction, call: Add | AddMany, caller: Caller) -> AddTarget:
    """Return the target of a call, and create its namespace if it is new."""
    number = core.store.namespaces.ensure(transaction, call.namespace)
    reached = core.store.namespaces.reach(call.namespace, call.reach)
    return AddTarget(
        name=call.namespace,
        number=number,
        # A namespace that this transaction creates is not within reach before the commit.
        visible=namespaces.condition(reached if reached is None else reached | {number}),
        dedup=call.dedup,
        threshold=call.dedup_threshold,
        caller=caller,
    )


def write(core: Core, transaction: Transaction, place: AddTarget, batch: Batch, operation: str) -> list[Added]:
    """Add memories within one transaction; each is also compared with those before it."""
    results: list[Added] = []
    became: list[Row] = []
    fresh: list[tuple[Row, Embedded]] = []  # new and not in the index yet
    for new, verdict in duplicates.judge_each(core, transaction.connection, place, batch, became):
        new = new._replace(memory=add_lifetime(core, new.memory))
        if verdict.same is not None:  # the merge may change the text and vector of a row in `fresh`
            _index(core, transaction, fresh)
            fresh = []
        added, row = _add_one(core, transaction, place, new, verdict, operation)
        if verdict.same is None:
            fresh.append((row, new.embedded))
        results.append(added)
        became.append(row)
    _index(core, transaction, fresh)
    return results


def _add_one(
    core: Core, transaction: Transaction, place: AddTarget, new: New, verdict: Verdict, operation: str
) -> tuple[Added, Row]:
    """Add a memory or merge it; return the outcome and the row that it is in."""
    memory = new.memory
    if verdict.same is not None:
        return merge(core, transaction, place, new, verdict, operation), verdict.same
    row = new_row(core, place, memory, content_hash(memory.content))
    _insert_row(core, transaction, place, row, verdict, operation)
    _store_vector(transaction, row, new.embedded)
    for prefix in duplicates.list_superseded(memory):
        _supersede(core, transaction, place, prefix, row, operation)
    added = Added(
        id=row.id,
        outcome="created",
        embedded=new.embedded is not None,
        similarity=verdict.similarity,
        contradicts=[other.id for other in verdict.contradicted],
        contradicts_texts=[later.shorten(other.content) for other in verdict.contradicted],
        operation=operation,
        namespace=place.name,
        nearest=verdict.nearest.id if verdict.nearest else None,
        nearest_text=later.shorten(verdict.nearest.content) if verdict.nearest else "",
    )
    return added, row


def add_lifetime(core: Core, memory: NewMemory) -> NewMemory:
    """Set the expiry configured for the memory's source, unless it has its own or is pinned."""
    if memory.expires_at is not None or memory.pinned:
        return memory
    created_at = core.clock() if memory.created_at is None else memory.created_at
    expires_at = rows.compute_expiry(core.config.lifetime.days, memory.source, created_at)
    return msgspec.structs.replace(memory, expires_at=expires_at)


def insert(
    core: Core,
    transaction: Transaction,
    place: AddTarget,
    row: Row,
    verdict: Verdict,
    embedded: Embedded,
    operation: str,
) -> None:
    """Insert a new row with its links and its vector."""
    _insert_row(core, transaction, place, row, verdict, operation)
    keep_vector(core, transaction, row, embedded)


def _insert_row(
    core: Core, transaction: Transaction, place: AddTarget, row: Row, verdict: Verdict, operation: str
) -> None:
    connection = transaction.connection
    row.row = rows.insert(connection, row)
    history.record(connection, operation, row.id, place.name, None)
    for other in verdict.contradicted:
        links.add(connection, row.id, other.id, "contradicts", core.clock())


def new_row(core: Core, place: AddTarget, memory: NewMemory, key: bytes) -> Row:
    """Build the row of a memory without inserting it."""
    created_at = core.clock() if memory.created_at is None else memory.created_at
    # Long neighbours would outweigh the memory's words, and a long memory needs none.
    near = memory.neighbours if len(memory.content) <= SHORT_CHARS else ()
    return Row(
        row=0,
        id=memory.id or core.new_id(),
        namespace=place.number,
        type=memory.type,
        source=memory.source,
        origin=memory.origin,
        tier=place.tier,
        importance=memory.importance,
        created_at=created_at,
        updated_at=created_at,
        expires_at=memory.expires_at,
        pinned=int(memory.pinned),
        path=memory.path,
        start_line=memory.start_line,
        end_line=memory.end_line,
        content_hash=key,
        text_hash=vectors.text_hash(memory.content),
        summary=memory.summary,
        metadata=metadata_text(memory.metadata),
        neighbours="\n".join(text for text in near if len(text) <= SHORT_CHARS),
        content=memory.content,
    )


def merge(core: Core, transaction: Transaction, place: AddTarget, new: New, verdict: Verdict, operation: str) -> Added:
    """Merge a new memory into the old one that says the same: replace the text, merge metadata, keep id and accesses.

    The text is kept if the caller may not change the old memory, or if that is the person's and the new one is not.
    """
    old, memory, is_embedded = verdict.same, new.memory, new.embedded is not None
    assert old is not None
    said_by = old if old.is_persons else msgspec.structs.replace(old, origin=memory.origin)
    for prefix in duplicates.list_superseded(memory):
        _supersede(core, transaction, place, prefix, said_by, operation)
    if place.caller.may_change(place.name) and (memory.origin == "person" or not old.is_persons):
        _refresh(core, transaction, place, old, new, operation)
    else:
        _note_claim(core, transaction, old, memory, operation)
    return Added(
        id=old.id,
        outcome="merged",
        embedded=is_embedded,
        similarity=verdict.similarity,
        operation=operation,
        namespace=core.store.namespaces.name(old.namespace),
    )


def _note_claim(core: Core, transaction: Transaction, old: Row, memory: NewMemory, operation: str) -> None:
    """Record that a memory was added again, so that neither an undo of the first add nor its expiry removes it."""
    if old.tier == DOCUMENTS:  # the lifetime of chunks depends only on their files
        return
    history.record(transaction.connection, operation, old.id, core.store.namespaces.name(old.namespace), old)
    if (expires_at := _choose_expiry(old, memory)) != old.expires_at:
        rows.change(transaction.connection, old.row, {"expires_at": expires_at})


def _choose_expiry(old: Row, memory: NewMemory) -> float | None:
    """Return the later of two expiries, None if one of the memories does not expire."""
    if memory.pinned:
        return None
    return max(old.expires_at, memory.expires_at) if old.expires_at and memory.expires_at else None


def _refresh(core: Core, transaction: Transaction, place: AddTarget, old: Row, new: New, operation: str) -> None:
    connection, memory = transaction.connection, new.memory
    history.record(connection, operation, old.id, place.name, old)
    metadata = {**msgspec.json.decode(old.metadata), **memory.metadata}
    fields: dict[str, Any] = {
        "content": memory.content,
        "content_hash": content_hash(memory.content),
        "text_hash": vectors.text_hash(memory.content),
        "origin": memory.origin,
        "confirmed_at": None,
        "metadata": metadata_text(metadata),
        "summary": memory.summary or old.summary,
        "importance": max(old.importance, memory.importance),
        "pinned": int(memory.pinned or old.pinned),
        "expires_at": _choose_expiry(old, memory),
        "updated_at": max(old.updated_at, core.clock() if memory.created_at is None else memory.created_at),
    }
    if memory.path is not None:
        fields |= {"path": memory.path, "start_line": memory.start_line, "end_line": memory.end_line}
    rows.change(connection, old.row, fields)
    if new.embedded is not None or fields["text_hash"] != old.text_hash:
        keep_vector(core, transaction, msgspec.structs.replace(old, **fields), new.embedded)


def _supersede(
    core: Core, transaction: Transaction, place: AddTarget, prefix: str, successor: Row, operation: str
) -> None:
    """Supersede a memory; if it is the person's and the successor is not, only record a possible change.

    Otherwise a web page that makes an agent save something could replace what the person said. They settle it.
    """
    connection = transaction.connection
    old = rows.resolve(connection, prefix, place.visible)
    if old.id == successor.id:
        return  # it was merged into the memory that it should replace
    namespace = core.store.namespaces.name(old.namespace)
    check_replaceable(connection, old, namespace, place.caller)
    if old.is_persons and not successor.is_persons:
        later.add(connection, [later.Pair(old.id, successor.id, 0, len(successor.content), 1.0)])
        return
    history.record(connection, operation, old.id, namespace, old)
    rows.change(connection, old.row, {"superseded_by": successor.id, "updated_at": core.clock()})


def check_replaceable(connection: Connection, old: Row, namespace: str, caller: Caller) -> None:
    """Raise if the caller may not supersede a memory, or if it is part of a file."""
    history.check_change(connection, caller, old.id, namespace)
    if old.tier == DOCUMENTS:
        raise Conflict(f"{old.id[:8]} is a part of the file {old.path}; change the file instead.", {"id": old.id})


def keep_vector(core: Core, transaction: Transaction, row: Row, embedded: Embedded) -> None:
    """Write the vector and index it at once, so that the next add of the transaction is compared with it."""
    _store_vector(transaction, row, embedded)
    _index(core, transaction, [(row, embedded)])


def _store_vector(transaction: Transaction, row: Row, embedded: Embedded) -> None:
    if embedded is not None:
        generation, vector = embedded
        vectors.put(transaction.connection, generation.model, row.text_hash, np.asarray(vector, np.float32))


def _index(core: Core, transaction: Transaction, memories: Sequence[tuple[Row, Embedded]]) -> None:
    """Index vectors before the commit; a search that finds them meanwhile has no row for them and skips them."""
    if not memories:
        return
    keys, embedded = [(row.row, row.namespace, row.type) for row, _ in memories], [one for _, one in memories]
    core.embedding.index_early(keys, embedded)
    transaction.call_on_rollback(lambda: core.embedding.refresh([row for row, _, _ in keys]))
    transaction.after_commit(lambda: core.embedding.index_rows(keys, embedded))
    if within := [row.row for row, _ in memories if row.neighbours]:
        transaction.after_commit(lambda: core.embedding.refresh(within))

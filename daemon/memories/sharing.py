"""Share memories: copy or move them to an enclosing namespace.

As in an add, duplicates in the target are merged in the writer's transaction. A caller may copy any memory that it can
read, since it could add the same text; it may move only a memory that it may change.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Literal, NamedTuple

import msgspec

from memoryd.client.errors import Conflict, Invalid, MemorydError, NotFound
from memoryd.client.protocol import Add, AddMany, Delete, Get, NewMemory, Share, Shared, SharedMemory
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.limits import check_editable
from memoryd.daemon.memories import adding, duplicates
from memoryd.daemon.memories.changing import visible_condition
from memoryd.daemon.memories.duplicates import AddTarget, Comparisons, Embedded, New
from memoryd.daemon.registry import handles
from memoryd.daemon.search.remotes import CHANGE_S, Remote, Remotes
from memoryd.daemon.store import contexts, feedback, history, links, namespaces, rows, vectors
from memoryd.daemon.store.caller import USER, Caller
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.conversion import build_new, convert_to
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.successors import read_in_force
from memoryd.daemon.store.tiers import DOCUMENTS, L1
from memoryd.daemon.store.writer import Transaction


@handles(Share)
def share(core: Core, call: Share, caller: Caller = USER) -> "Future[Shared]":
    """Copy or move memories outward: all or none, as one operation. Into and out of shared roots they are moved."""
    if not call.ids:
        raise Invalid("Give the ids of the memories to share.")
    namespaces.check(call.to)
    remotes: Remotes = core.state(Remotes)
    if not call.here and (place := remotes.find_holding(call.to)):
        return place.share(call, caller)
    try:
        return _share_here(core, call, caller)
    except NotFound:
        places = [] if call.here or caller.bound else remotes.find_covering(call)
        if not places:
            raise
        return core.background.run("bring from a shared root", lambda: _move_here(core, call, caller, places))


def _move_here(core: Core, call: Share, caller: Caller, places: Sequence[Remote]) -> Shared:
    """Move memories out of shared roots: each is added here, then deleted there."""
    shared = Shared(memories=[], operation="")
    for prefix in call.ids:
        for place in places:
            with suppress(NotFound):
                memory = place.ask(Get(id=prefix, reach=call.reach, touch=False), caller, CHANGE_S).result()
                break
        else:
            short = prefix[:40]
            raise NotFound(f"There is no memory {short} within reach; those of a root and of here are shared apart.")
        new = convert_to(NewMemory, memory, id=None)
        added = adding.add_here(core, Add(memory=new, namespace=call.to), caller).result()
        shared.operation, shared.shared = added.operation, place.name
        outcome: Literal["moved", "merged"] = "moved" if added.outcome == "created" else "merged"
        shared.memories.append(SharedMemory(id=added.id, origin=memory.id, outcome=outcome))
        try:
            place.ask(Delete(ids=[memory.id], reach=call.reach), caller, CHANGE_S).result()
        except MemorydError as error:
            said = f"It is here as {added.id[:8]}, and still in {place.name}: {error.message}"
            raise type(error)(f"{said} `memctl delete {memory.id[:8]}` deletes it there.") from None
    return shared


def _share_here(core: Core, call: Share, caller: Caller) -> "Future[Shared]":
    condition = visible_condition(core, call)
    searched = _SearchResults(core, call, condition)

    def write(transaction: Transaction) -> Shared:
        connection = transaction.connection
        by_id = _resolve(connection, call, condition)
        if superseded := read_in_force(connection, by_id.values(), core.clock()):
            id = next(row.id for row in by_id.values() if row.row in superseded)
            raise Conflict(f"Memory {id[:8]} is superseded; share the one that replaced it.", {"id": id})
        for row in by_id.values():
            _check(connection, row, core.store.namespaces.name(row.namespace), call, caller)
        operation = history.begin(connection, "share", caller.log_place(call.namespace), core.clock())
        number = core.store.namespaces.ensure(transaction, call.to)
        place = AddTarget(call.to, number, visible=condition, dedup=True, threshold=None, caller=caller)
        searched.begin(place)
        share_one = _move if call.move else _copy
        outcomes: dict[str, SharedMemory] = {}
        for row in by_id.values():
            outcomes[row.id] = share_one(core, transaction, place, searched.take(connection, row, outcomes), operation)
        return Shared(memories=list(outcomes.values()), operation=operation)

    return core.store.write(write)


class _Candidate(NamedTuple):
    """A memory to share, in the form in which it is compared, and the cached comparisons of texts."""

    row: Row
    new: New
    known: Comparisons


class _SearchResults:
    """The memories in the target namespace near those of a call, found before the transaction."""

    def __init__(self, core: Core, call: Share, condition: str) -> None:
        self._core = core
        with core.store.reading() as connection:
            by_id = _resolve(connection, call, condition)
            embedded = [_embed(core, connection, row) for row in by_id.values()]
        memories = [build_new(row) for row in by_id.values()]
        self._rows = list(by_id.values())
        self._at = {id: at for at, id in enumerate(by_id)}
        self._batch = duplicates.search(core, AddMany(memories=memories, namespace=call.to), memories, embedded)
        self._newer: dict[int, list[int]] = {}

    def begin(self, place: AddTarget) -> None:
        """Search vectors that were indexed since, within the transaction."""
        self._newer = duplicates.find_newer(place, self._batch)

    def take(self, connection: Connection, row: Row, outcomes: Mapping[str, SharedMemory]) -> _Candidate:
        """Return a memory with its near rows, including those shared before it; search again if it has changed."""
        batch, at = self._batch, self._at.get(row.id)
        if at is None or _text(row) != _text(self._rows[at]) or (near := batch.near[at]) is None:
            return _Candidate(row, New(build_new(row), _embed(self._core, connection, row)), batch.known)
        twins = [outcomes[id].id for twin, _ in batch.twins[at] if (id := self._rows[twin].id) in outcomes]
        near = [*near, *self._newer[at], *(twin.row for twin in rows.read_ids(connection, twins).values())]
        return _Candidate(row, New(build_new(row), batch.embedded[at], near), batch.known)


def _text(row: Row) -> tuple[str, str, bytes]:
    return row.type, row.content, row.text_hash


def _resolve(connection: Connection, call: Share, condition: str) -> dict[str, Row]:
    """Return by id the rows to share; a chunk of a file without the vector that includes its headings."""
    by_id: dict[str, Row] = {}
    for row in (rows.resolve(connection, prefix, condition) for prefix in call.ids):
        is_chunk = row.tier == DOCUMENTS
        by_id[row.id] = msgspec.structs.replace(row, text_hash=vectors.text_hash(row.content)) if is_chunk else row
    return by_id


def _check(connection: Connection, row: Row, namespace: str, call: Share, caller: Caller) -> None:
    anywhere = not caller.bound and not call.namespace
    target = call.to or "the root"
    if namespace == call.to:
        raise Invalid(f"Memory {row.id[:8]} is in {target} already.", {"id": row.id})
    if not anywhere and call.to not in namespaces.list_enclosing(namespace):
        raise Invalid(f"{target} does not enclose {namespace or 'the root'}; memories are shared outward.")
    if call.move:
        history.check_change(connection, caller, row.id, namespace)
        check_editable(row.id, row.tier, row.path)


def _copy(
    core: Core, transaction: Transaction, place: AddTarget, candidate: _Candidate, operation: str
) -> SharedMemory:
    connection, source = transaction.connection, candidate.row
    verdict = duplicates.judge(core, connection, place, candidate.new, candidate.known)
    if verdict.same is not None:
        adding.merge(core, transaction, place, candidate.new, verdict, operation)
        return SharedMemory(id=verdict.same.id, origin=source.id, outcome="merged")
    copy = msgspec.structs.replace(
        source,
        key=None,
        row=0,
        id=core.new_id(),
        namespace=place.number,
        tier=L1,
        turns=0,  # its turns are counted with the original
        neighbours="",  # neighbouring turns are not shared
        superseded_by=None,
        feedback="",
        updated_at=core.clock(),
        last_accessed_at=None,
        access_count=0,
    )
    adding.insert(core, transaction, place, copy, verdict, candidate.new.embedded, operation)
    links.add(connection, copy.id, source.id, "shared_from", core.clock())
    return SharedMemory(id=copy.id, origin=source.id, outcome="copied")


def _move(
    core: Core, transaction: Transaction, place: AddTarget, candidate: _Candidate, operation: str
) -> SharedMemory:
    connection, source = transaction.connection, candidate.row
    verdict = duplicates.judge(core, connection, place, candidate.new, candidate.known)
    if source.key is not None and rows.read_key(connection, place.number, source.key) is not None:
        raise Conflict(f"Another memory there has the key {source.key[:80]!r}.", {"id": source.id})
    history.record(connection, operation, source.id, core.store.namespaces.name(source.namespace), source)
    votes = feedback.drop_notes(source.feedback)
    if verdict.same is not None:
        adding.merge(core, transaction, place, candidate.new, verdict, operation)
        rows.change(connection, source.row, {"superseded_by": verdict.same.id, "updated_at": core.clock()})
        rows.change(connection, verdict.same.row, {"feedback": feedback.merge(verdict.same.feedback, votes)})
        return SharedMemory(id=verdict.same.id, origin=source.id, outcome="merged")
    for other in verdict.contradicted:
        links.add(connection, source.id, other.id, "contradicts", core.clock())
    moved = {"namespace": place.number, "neighbours": "", "feedback": votes, "updated_at": core.clock()}
    rows.change(connection, source.row, moved)
    contexts.remove(connection, [source.row])
    transaction.after_commit(lambda: core.embedding.refresh([source.row]))
    return SharedMemory(id=source.id, origin=source.id, outcome="moved")


def _embed(core: Core, connection: Connection, row: Row) -> Embedded:
    generation = core.embedding.active
    vector = vectors.read_cached(connection, generation.model, row.text_hash) if generation else None
    return (generation, vector) if generation and vector is not None else None

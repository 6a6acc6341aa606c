"""The calls that read memories, history, namespaces and statistics. They change nothing but access counts."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from memoryd.client import protocol
from memoryd.client.errors import Invalid
from memoryd.client.protocol import Changes, MemoryDetail
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import keyed
from memoryd.daemon.memories.changing import show, visible_condition
from memoryd.daemon.memories.elsewhere import here_or_elsewhere, list_both, list_namespaces_both
from memoryd.daemon.registry import Answer, handles
from memoryd.daemon.rooms import list_rooms
from memoryd.daemon.search.effects import Mark
from memoryd.daemon.store import conversion, feedback, history, links, namespaces, queries, rows, vectors
from memoryd.daemon.store import operations as log
from memoryd.daemon.store.actor import Actor
from memoryd.daemon.store.caller import USER, Caller
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.filters import Filter, build_contained, compile_filter
from memoryd.daemon.store.rows import Row

# Not listed as changes: the first one changes with every change, the others with reads.
_HIDDEN = ("updated_at", "access_count", "last_accessed_at")
_PREVIEW = 160  # characters


@handles(protocol.Get)
def read(core: Core, call: protocol.Get, caller: Caller = USER) -> "Answer[MemoryDetail]":
    """Return one memory, or a turn that is still in L0; with `touch` that counts as an access."""

    def read_here() -> MemoryDetail:
        row, memory = _select(core, call, caller)
        if call.renew and row.ttl_s is not None:
            keyed.renew(core, [row.id])
        if row.row > 0 and call.touch:
            core.effects.note(Mark(call.namespace, "", core.clock(), rows=(), met=(), accessed=(row.row,)))
        return conversion.convert_to(MemoryDetail, memory, around=_find_around(core, call, row))

    return here_or_elsewhere(core, call, caller, read_here)


def _find_around(core: Core, call: protocol.Get, row: Row) -> list[protocol.Memory]:
    """Return the turns around a memory, found by the room `conversations`."""
    if call.around is None:
        return []
    condition = visible_condition(core, call)
    with core.store.reading() as connection:
        found = [
            one for room in list_rooms() for one in room.find_around(core, connection, row, call.around, condition)
        ]
        return conversion.build_memories(connection, core.store.namespaces, found, condition, core.clock())


def get(core: Core, call: protocol.Get) -> protocol.Memory:
    """Return one memory, or a turn in L0, without side effects."""
    return _select(core, call, USER)[1]


def _select(core: Core, call: protocol.Get, caller: Caller) -> tuple[Row, protocol.Memory]:
    if not (call.id or call.key):
        raise Invalid("Give an id or a key.")
    condition = visible_condition(core, call)
    with core.store.reading() as connection:
        if call.key:
            row = keyed.resolve_key(core, connection, call.namespace, call.key)
        else:
            reached = core.store.namespaces.reach(call.namespace, call.reach)
            row = history.find_row(connection, call.id, reached, tells_gone=not caller.bound)
        [memory] = show(core, connection, [row], condition)
        for room in list_rooms():
            room.show(connection, row, memory, condition)
        if call.include_vectors and core.embedding.active is not None:
            conversion.give_vectors(connection, core.embedding.active.model, [memory], [row])
    memory.usefulness = feedback.rate_usefulness(row.feedback, notes=True)
    return row, memory


@handles(protocol.List)
def list_(core: Core, call: protocol.List, caller: Caller = USER) -> protocol.Page:
    """Return one page of the memories that match a filter."""
    return list_both(core, call, caller, lambda call: _list_here(core, call))


def _list_here(core: Core, call: protocol.List) -> protocol.Page:
    selection, now = compile_filter(call, core.store.namespaces, call.ids), core.clock()
    order = queries.Order(call.sort, call.ascending, call.limit, call.offset)
    condition, values = selection.full_condition(now, call.all_states)
    contained, words = build_contained(call.words)
    with core.store.reading() as connection:
        page, total = queries.find_page(connection, (f"{condition} AND {contained}", (*values, *words)), order)
        page = rows.fit_reply(page)
        reached = namespaces.condition(selection.reached)
        memories = conversion.build_memories(connection, core.store.namespaces, page, reached, now)
        return protocol.Page(memories=memories, total=total)


@handles(protocol.Namespaces)
def list_namespaces(core: Core, call: protocol.Namespaces, caller: Caller = USER) -> protocol.NamespaceList:
    """Return one page of the namespaces within reach that have living memories; turns in L0 do not count."""
    return list_namespaces_both(core, call, caller, lambda call: _list_namespaces_here(core, call))


def _list_namespaces_here(core: Core, call: protocol.Namespaces) -> protocol.NamespaceList:
    names = core.store.namespaces
    reached = names.reach(namespaces.check(call.namespace), call.reach)
    prefix = namespaces.check(call.prefix).split("/") if call.prefix else []
    counts: dict[str, int] = {}
    with core.store.reading() as connection:
        pairs = queries.count_by_namespace(connection, Filter(reached), core.clock())
    for number, count in pairs:
        parts = names.name(number).split("/")
        is_below = all(one in ("*", part) for part, one in zip(parts, prefix, strict=False))
        if len(parts) >= len(prefix) and is_below:
            counts[names.name(number)] = count
    sorted_names = sorted(counts, key=lambda name: name.split("/"))
    page = sorted_names[call.offset : call.offset + call.limit]
    entries = [protocol.NamespaceCount(name=name, memories=counts[name]) for name in page]
    return protocol.NamespaceList(namespaces=entries, total=len(sorted_names))


@handles(protocol.History)
def read_history(core: Core, call: protocol.History, caller: Caller = USER) -> "Answer[Changes]":
    """Return the history of one memory, here or in the shared root that holds it."""
    return here_or_elsewhere(core, call, caller, lambda: read_changes(core, call, caller))


def read_changes(core: Core, call: protocol.History, caller: Caller = USER) -> protocol.Changes:
    """Return the changes of one memory, as differences between its states, or those made by one operation.

    States out of the caller's reach are hidden, so a move appears as a creation or a deletion. Memories that were
    deleted before the caller's token was created are hidden too.
    """
    if bool(call.id) == bool(call.operation):
        raise Invalid("Give the id of a memory, or that of an operation.")
    if call.operation:
        return _read_operation(core, call, caller)
    reached = core.store.namespaces.reach(namespaces.check(call.namespace), call.reach)

    with core.store.reading() as connection:
        memory = history.resolve_known(connection, call.id, namespaces.condition(reached))
        states = history.read_states(connection, memory, namespaces.condition(reached))
        now = history.read_present(connection, memory)
    rows_after = [state.row for state in states[1:]] + [now]
    if not states:  # a turn in L0, or an imported memory
        return protocol.Changes(id=memory, changes=[])
    differences = [
        _compute_difference(core, state._replace(row=_mask(state.row, reached)), _mask(after, reached))
        for state, after in zip(states, rows_after, strict=True)
    ]
    # A caller with a token learns of what exists, or did when the token was created.
    exists = _mask(now, reached) is not None
    known = [change for change in differences if change and (exists or change.at >= caller.since)]
    if not known and caller.bound:
        rows.choose_unique(call.id, [])  # raises the same error as for an unknown id
    return protocol.Changes(id=memory, changes=known)


def _mask(row: Row | None, reached: frozenset[int] | None) -> Row | None:
    return row if row and (reached is None or row.namespace in reached) else None


def _compute_difference(core: Core, state: history.FormerState, after: Row | None) -> protocol.Change | None:
    before, (token, session, process) = state.row, state.actor
    if before is after is None and state.kind != history.ERASE:
        return None
    old, new = _show(core, before), _show(core, after)
    changes = {
        name: (old.get(name), new.get(name))
        for name in {**old, **new}
        if old.get(name) != new.get(name) and name not in _HIDDEN
    }
    action: protocol.Action = "deleted" if after is None else "created" if before is None else "updated"
    return protocol.Change(
        operation=state.operation,
        kind=state.kind,
        action=action,
        at=state.at,
        changed=changes,
        token=token,
        session=session,
        process=process,
    )


def _show(core: Core, row: Row | None) -> dict[str, Any]:
    if row is None:
        return {}
    usefulness = feedback.rate_usefulness(row.feedback)
    votes = (
        f"{usefulness.useful} useful, {usefulness.useless} useless, {usefulness.cited} cited" if usefulness else None
    )
    return {**conversion.fields_of(row, core.store.namespaces, {}), "usefulness": votes}


@handles(protocol.Links)
def list_links(core: Core, call: protocol.Links) -> protocol.Disagreements:
    """Return the memories within reach that contradict each other."""
    condition = visible_condition(core, call)
    with core.store.reading() as connection:
        pairs = links.select_contradictions(connection, condition, call.limit, core.clock())
        by_id = rows.read_ids(connection, [id for newer, older, _ in pairs for id in (newer, older)])
        memories = {one.id: one for one in show(core, connection, by_id.values(), condition)}
    return protocol.Disagreements(
        links=[
            protocol.Disagreement(newer=memories[newer], older=memories[older], created_at=at)
            for newer, older, at in pairs
            if newer in memories and older in memories
        ]
    )


@handles(protocol.Operations)
def operations(core: Core, call: protocol.Operations) -> protocol.OperationLog:
    """Return the latest operations."""
    query = log.OperationQuery(call.limit, call.offset, call.after, call.before, tuple(call.kind))
    with core.store.reading() as connection:
        return protocol.OperationLog(operations=log.find(connection, visible_condition(core, call), query))


def _read_operation(core: Core, call: protocol.History, caller: Caller) -> protocol.Changes:
    """Return one operation with its changes of memories within reach."""
    condition = visible_condition(core, call)
    reached = core.store.namespaces.reach(call.namespace, call.reach)

    with core.store.reading() as connection:
        operation = log.find_one(connection, call.operation, condition)
        steps = log.list_steps(connection, operation.id, condition, (call.limit, call.offset))
        if operation.at < caller.since:
            steps = [step for step in steps if _mask(history.read_present(connection, step.memory), reached)]
    steps = [step._replace(before=_mask(step.before, reached), after=_mask(step.after, reached)) for step in steps]
    changes = [_describe_step(core, operation, step) for step in steps]
    return protocol.Changes(operation=operation, changes=[change for change in changes if change])


def _describe_step(core: Core, operation: protocol.Operation, step: log.OperationStep) -> protocol.Change | None:
    actor = Actor(operation.token, operation.session, operation.process)
    state = history.FormerState(operation.id, operation.kind, operation.at, step.before, actor)
    change = _compute_difference(core, state, step.after)
    if change is None:
        return None
    text = next((row.content for row in (step.after, step.before) if row), "")
    change.id, change.namespace = step.memory, step.namespace
    change.preview = " ".join(text[: 2 * _PREVIEW].split())[:_PREVIEW]
    return change


def stats(core: Core, call: protocol.GetStats, caller: Caller = USER) -> protocol.Stats:
    """Return statistics of the memories within reach."""
    condition = visible_condition(core, call)
    reached = core.store.namespaces.reach(call.namespace, call.reach)
    facts = core.arrays.columns  # in RAM, since SQLite takes 0.1 s to count 100,000 rows
    standing = facts.count_standing(reached)
    total = sum(part.memories for part in standing)
    with core.store.reading() as connection:
        cached = vectors.count(connection)
        logged = history.count(connection, condition if caller.bound else None)
        waiting = count_pending(core, connection, condition) if caller.bound else _count_waiting(core, reached)
    pending = total if waiting is None else waiting
    return protocol.Stats(
        memories=total,
        by_namespace=_sum((core.store.namespaces.name(part.namespace), part.memories) for part in standing),
        by_type=facts.tally("type", reached),
        by_source=facts.tally("source", reached),
        by_tier=_sum((part.tier, part.memories) for part in standing),
        embedded=max(0, total - pending),
        pending_embeddings=pending,
        embedding_cache=0 if caller.bound else cached,
        operations=logged,
        database_bytes=0 if caller.bound else core.store.size_bytes(),
        oldest_at=min((part.oldest_at for part in standing), default=None),
        newest_at=max((part.newest_at for part in standing), default=None),
        llm=None if caller.bound else core.cognition.report_usage(),
        turns=len(core.active.list_turns(reached)),
    )


def _count_waiting(core: Core, reached: frozenset[int] | None) -> int | None:
    """Return how many memories within reach wait for a vector, counted in RAM; None without a model."""
    generation = core.embedding.active
    if generation is None:
        return None
    rows = np.fromiter((*generation.pending, *generation.failing), np.int64)
    return int(core.arrays.build_mask(core.store, Filter(reached), core.clock()).select(rows).sum()) if len(rows) else 0


def count_pending(core: Core, connection: Connection, condition: str) -> int:
    """Return how many memories within a condition have no vector."""
    generation = core.embedding.active
    return queries.count_without_vector(connection, condition, generation.model if generation else 0)


def count(core: Core) -> int:
    """Return the number of memories."""
    with core.store.reading() as connection:
        return queries.count(connection)


def count_within(core: Core, caller: Caller) -> tuple[int, int]:
    """Return how many memories a caller with a token sees, and how many of them have no vector."""
    condition = namespaces.condition(core.store.namespaces.reach(caller.namespace, "visible"))
    with core.store.reading() as connection:
        return queries.count(connection, condition), count_pending(core, connection, condition)


def _sum(pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Sum up counts by name, the largest first."""
    sums: dict[str, int] = {}
    for name, count in pairs:
        sums[name] = sums.get(name, 0) + count
    return dict(sorted(sums.items(), key=lambda item: -item[1]))

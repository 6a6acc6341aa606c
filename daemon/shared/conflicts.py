"""Handlers for what people decide about shared memories: which of two versions stays, what is erased everywhere."""

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from memoryd.client import protocol
from memoryd.client.errors import Conflict, Invalid, NotFound
from memoryd.client.shared import calls
from memoryd.client.shared.calls import PurgedMemories, ResolvedConflict
from memoryd.daemon.core import checks
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import erasing, removing
from memoryd.daemon.registry import Parts, handles
from memoryd.daemon.shared.sharing import lines_of
from memoryd.daemon.shared.tables import shared
from memoryd.daemon.shared.tables.shared import SharedEntry
from memoryd.daemon.store import history, links, present, rows, vectors
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.writer import Transaction

_TAKEN = ("type", "summary", "metadata", "importance", "expires_at", "pinned", "content", "content_hash", "text_hash")


@handles(calls.ListConflicts)
def list_conflicts(core: Core, call: calls.ListConflicts) -> calls.SharedConflicts:
    """Return both versions of each memory that was changed on two machines."""
    with core.store.reading() as connection:
        found = shared.read_conflicts(connection, call.limit)
        shown = _show(core, connection, [row for one in found for row in one[:2]])
    return calls.SharedConflicts(
        conflicts=[
            calls.SharedConflict(memory=shown[memory.id], other=shown[other.id], machine=machine, author=author)
            for memory, other, machine, author in found
        ]
    )


def _show(core: Core, connection: Connection, found: Sequence[Row]) -> dict[str, protocol.Memory]:
    unique = {row.id: row for row in found}
    made = present.build_memories(connection, core.store.namespaces, unique.values(), "TRUE", core.clock())
    return {memory.id: memory for memory in made}


@handles(calls.ResolveConflict)
def resolve(core: Core, call: calls.ResolveConflict) -> "Future[ResolvedConflict]":
    """Keep one version, a new text, or all versions as memories of their own: one operation."""
    if call.content:
        checks.check_content(call.content)
    if call.content and call.both:
        raise Invalid("Keep both, or one new text: not both of these.")

    def write(transaction: Transaction) -> ResolvedConflict:
        connection = transaction.connection
        kept = rows.resolve(connection, call.id, "TRUE")
        versions = _find_versions(connection, kept.id)
        found = rows.read_ids(connection, list(versions))
        first = next(iter(versions), "")
        if first not in found or len(found) < 2:
            raise NotFound(f"Memory {kept.id[:8]} has no other version.", {"id": kept.id})
        operation = history.begin(connection, "resolve", "", core.clock())
        others = [row for row in found.values() if row.id != first]
        for row in others:
            links.dismiss(connection, row.id, first)
        for row in others:
            shared.end_conflict(connection, versions[row.id])
        if call.both:
            others = []
        else:
            _set_text(core, transaction, found[first], found[kept.id], call.content, operation)
            removing.remove(core, transaction, others, operation)
        [memory] = _show(core, connection, [rows.read_ids(connection, [first])[first]]).values()
        return ResolvedConflict(memory=memory, removed=[row.id for row in others], operation=operation)

    return core.store.write(write)


def _find_versions(connection: Connection, memory: str) -> dict[str, SharedEntry]:
    """Return the versions of a memory by their ids here, the one that keeps its id on the server first."""
    entry = shared.read_of_memory(connection, memory)
    if entry is not None and entry.conflict_of:
        entry = shared.read_entries(connection, entry.root, [entry.conflict_of]).get(entry.conflict_of)
    if entry is None:
        return {}
    every = [entry, *shared.read_siblings(connection, entry.root, entry.id)]
    return {one.memory: one for one in every if one.memory}


def _set_text(core: Core, transaction: Transaction, first: Row, kept: Row, content: str, operation: str) -> None:
    """Give the memory that stays the text of the version that is kept, or a new one."""
    fields: dict[str, Any] = {name: getattr(kept, name) for name in _TAKEN}
    if content:
        text = vectors.text_hash(rows.build_embedded_text(content, turns=first.turns))
        fields.update(content=content, content_hash=checks.content_hash(content), text_hash=text, summary="")
    history.record(transaction.connection, operation, first.id, core.store.namespaces.name(first.namespace), first)
    rows.change(transaction.connection, first.row, {**fields, "updated_at": core.clock()})
    transaction.after_commit(lambda: core.embedding.refresh([first.row]))


@handles(calls.PurgeShared)
def purge(core: Core, call: calls.PurgeShared) -> "Parts[PurgedMemories]":
    """Erase memories here; the push that follows erases them everywhere."""
    if not call.ids:
        raise Invalid("No ids are given to purge.")

    with core.store.reading() as connection:
        ids = [history.resolve_known(connection, prefix, "TRUE") for prefix in call.ids]
        missing = [id for id in ids if shared.read_of_memory(connection, id) is None]
    if missing:
        raise Conflict(f"Memory {missing[0][:8]} is not shared, so no other machine has it.", {"id": missing[0]})
    done = yield from erasing.erase(core, protocol.Erase(ids=ids, reach="all"))
    lines = lines_of(core)
    lines.wake()
    there = sorted({machine for root in lines.report() for machine in root.machines})
    held = [f"the copy {path} on this machine" for path in done.copies]
    held += [f"{path} on this machine: another memory may say the same" for path in done.left]
    held += [f"machine {machine}, until it has read this" for machine in there]
    held += ["backups and replicas of the server", "exports, and backups on the other machines"]
    waiting = any(root.waiting for root in lines.report())
    return PurgedMemories(ids=[*done.ids, *done.derived], waiting=waiting, copies=held)

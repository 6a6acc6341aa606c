"""Memories with keys: `put` inserts one or replaces what it says, in one transaction."""

from concurrent.futures import Future
from typing import Any

import msgspec

from memoryd.client.errors import Invalid
from memoryd.client.protocol import MAX_VALUE_BYTES, NewMemory, Put, WasPut
from memoryd.daemon.core import checks
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import adding
from memoryd.daemon.memories.duplicates import Embedded, Place, Verdict
from memoryd.daemon.memories.keys import check_key, is_expired
from memoryd.daemon.registry import handles
from memoryd.daemon.store import history, namespaces, rows
from memoryd.daemon.store.caller import USER, Caller
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.writer import Transaction

# What a put says of a memory; the rest (id, dates, tier, accesses, feedback) stays.
_SAID = (
    *("type", "source", "importance", "pinned", "path", "start_line", "end_line", "content_hash", "text_hash"),
    *("summary", "metadata", "neighbours", "content", "searchable", "ttl_s"),
)


@handles(Put)
def put(core: Core, call: Put, caller: Caller = USER) -> "Future[WasPut]":
    """Store a memory under its key; the future is done when it is on disk."""
    namespaces.check(call.namespace)
    check_key(call.key)
    memory = _check_memory(call.memory)
    embedded = core.embedding.embed_text(memory.content)

    def write(transaction: Transaction) -> WasPut:
        connection, now = transaction.connection, core.clock()
        number = core.store.namespaces.ensure(transaction, call.namespace)
        place = Place(call.namespace, number, namespaces.condition(frozenset([number])), False, None, caller)
        new = _build_row(core, place, call, memory)
        old = rows.read_key(connection, number, call.key)
        if old is not None:
            caller.check_change(old.id, call.namespace)
            is_alive = old.superseded_by is None and not is_expired(old, core.clock.read_elapsed())
            if is_alive and _describe(old) == _describe(new):
                rows.change(connection, old.row, {"expires_at": new.expires_at, "updated_at": now})
                return WasPut(id=old.id, outcome="unchanged")
        operation = history.begin(connection, "put", caller.log_place(call.namespace), now)
        if old is None:
            adding.insert(core, transaction, place, new, Verdict(None, None, []), embedded, operation)
            return WasPut(id=new.id, outcome="created", operation=operation)
        _replace(core, transaction, old, new, embedded, operation)
        return WasPut(id=old.id, outcome="updated", operation=operation)

    return core.store.write(write)


def _check_memory(memory: NewMemory) -> NewMemory:
    """Return a memory that may be put; its metadata may be far larger than that of others."""
    if memory.id is not None or memory.supersedes is not None:
        raise Invalid("A memory that is put has no id of one's choice and no supersedes: its key says which it is.")
    checks.check_memory(msgspec.structs.replace(memory, metadata={}))
    checks.check_metadata(memory.metadata, MAX_VALUE_BYTES)
    return memory


def _build_row(core: Core, place: Place, call: Put, memory: NewMemory) -> Row:
    plain = msgspec.structs.replace(adding.add_lifetime(core, memory), metadata={})
    row = adding.new_row(core, place, plain, checks.content_hash(memory.content))
    row.metadata = checks.metadata_text(memory.metadata, MAX_VALUE_BYTES)
    row.key, row.searchable, row.ttl_s = call.key, int(call.searchable), call.ttl_s
    if call.ttl_s is not None:
        row.expires_at = core.clock() + call.ttl_s
    return row


def _describe(row: Row) -> dict[str, Any]:
    return {name: getattr(row, name) for name in _SAID}


def _replace(core: Core, transaction: Transaction, old: Row, new: Row, embedded: Embedded, operation: int) -> None:
    connection, now = transaction.connection, core.clock()
    history.record(connection, operation, old.id, core.store.namespaces.name(old.namespace), old)
    fields = {**_describe(new), "expires_at": new.expires_at, "updated_at": now, "superseded_by": None}
    if is_expired(old, core.clock.read_elapsed()):
        fields["created_at"] = now
    rows.change(connection, old.row, fields)
    adding.keep_vector(core, transaction, msgspec.structs.replace(old, **fields), embedded)

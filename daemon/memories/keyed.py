"""Memories with keys: insert or replace one in a transaction, find one by its key, renew its time to live."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal

import msgspec

from memoryd.client.errors import Busy, Invalid, NotFound
from memoryd.client.protocol import MAX_KEY_BYTES, MAX_VALUE_BYTES, KeyedEntry, NewMemory
from memoryd.daemon.core import limits
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import adding, origins
from memoryd.daemon.memories.duplicates import AddTarget, Embedded, Verdict
from memoryd.daemon.store import history, namespaces, rows
from memoryd.daemon.store.caller import Caller
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.writer import Transaction

PutOutcome = Literal["created", "updated", "unchanged"]

# The columns that a put replaces; the others (id, dates, tier, accesses, feedback) are kept.
_SAID = (
    *("type", "source", "importance", "pinned", "path", "start_line", "end_line", "content_hash", "text_hash"),
    *("summary", "metadata", "neighbours", "content", "searchable", "ttl_s", "origin", "confirmed_at"),
)


def find_place(core: Core, transaction: Transaction, namespace: str, caller: Caller) -> AddTarget:
    """Return the target of a put, and create its namespace if it is new."""
    number = core.store.namespaces.ensure(transaction, namespace)
    return AddTarget(namespace, number, namespaces.condition(frozenset([number])), False, None, caller)


def store(
    core: Core,
    transaction: Transaction,
    place: AddTarget,
    entry: KeyedEntry,
    memory: NewMemory,
    embedded: Embedded,
    begin: Callable[[], str],
) -> tuple[str, PutOutcome]:
    """Insert a memory under its key or replace it; `begin` returns the operation and is called only for a change."""
    connection, now = transaction.connection, core.clock()
    plain = msgspec.structs.replace(adding.add_lifetime(core, memory), metadata={})
    new = adding.new_row(core, place, plain, limits.content_hash(memory.content))
    new.metadata = limits.metadata_text(memory.metadata, MAX_VALUE_BYTES)
    new.key, new.searchable, new.ttl_s = entry.key, int(entry.searchable), entry.ttl_s
    if entry.ttl_s is not None:
        new.expires_at = now + entry.ttl_s
    old = rows.read_key(connection, place.number, entry.key)
    if old is None:
        adding.insert(core, transaction, place, new, Verdict(None, None, []), embedded, begin())
        return new.id, "created"
    history.check_change(connection, place.caller, old.id, place.name)
    origins.keep(new, old)
    is_alive = old.superseded_by is None and not is_expired(old, now)
    if is_alive and _describe(old) == _describe(new):
        rows.change(connection, old.row, {"expires_at": new.expires_at, "updated_at": now})
        return old.id, "unchanged"
    history.record(connection, begin(), old.id, place.name, old)
    fields = {**_describe(new), "expires_at": new.expires_at, "updated_at": now, "superseded_by": None}
    if is_expired(old, now):
        fields["created_at"] = now
    rows.change(connection, old.row, fields)
    adding.keep_vector(core, transaction, msgspec.structs.replace(old, **fields), embedded)
    return old.id, "updated"


def check_memory(memory: NewMemory) -> None:
    """Check a memory that is put; its metadata may be far larger than that of others."""
    if memory.id is not None or memory.supersedes is not None:
        raise Invalid("A memory with a key cannot be given an id or `supersedes`; the key identifies it.")
    limits.check_memory(msgspec.structs.replace(memory, metadata={}))
    limits.check_metadata(memory.metadata, MAX_VALUE_BYTES)


def _describe(row: Row) -> dict[str, Any]:
    return {name: getattr(row, name) for name in _SAID}


def check_key(key: str) -> None:
    """Raise `Invalid` if a text cannot be a key."""
    if not 1 <= len(key.encode()) <= MAX_KEY_BYTES or "\0" in key:
        raise Invalid(f"The key {key[:40]!r} must be a text of 1 to {MAX_KEY_BYTES} bytes, without a NUL character.")


def is_expired(row: Row, now: float) -> bool:
    """Return whether a memory has expired."""
    return row.expires_at is not None and row.expires_at <= now and not row.pinned


def resolve_key(core: Core, connection: Connection, namespace: str, key: str) -> Row:
    """Return the memory with a key in a namespace; raise `NotFound` if there is none or it has expired."""
    check_key(key)
    number = core.store.namespaces.find_number(namespaces.check(namespace))
    row = None if number is None else rows.read_key(connection, number, key)
    if row is None or is_expired(row, core.clock()):
        raise NotFound(f"There is no memory with the key {key[:80]!r} in {namespace or 'the root'}.", {"key": key})
    return row


def renew(core: Core, ids: list[str]) -> None:
    """Restart the time to live of memories that have one, in the background."""
    with suppress(Busy):
        core.store.write(lambda transaction: rows.renew(transaction.connection, ids, core.clock()), over_limit=True)

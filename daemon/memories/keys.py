"""Keys of memories: which can be one, which memory has one, and reads that renew a time to live."""

from memoryd.client.errors import Busy, Invalid, NotFound
from memoryd.client.protocol import MAX_KEY_BYTES
from memoryd.daemon.core.core import Core
from memoryd.daemon.store import namespaces, rows
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.writer import Transaction


def check_key(key: str) -> None:
    """Raise `Invalid` for what cannot be a key."""
    if not 1 <= len(key.encode()) <= MAX_KEY_BYTES or "\0" in key:
        raise Invalid(f"The key {key[:40]!r} is not a text of 1 to {MAX_KEY_BYTES} bytes without NUL.")


def is_expired(row: Row, passed: float) -> bool:
    """Return whether the time of a memory is over."""
    return row.expires_at is not None and row.expires_at <= passed and not row.pinned


def resolve_key(core: Core, connection: Connection, namespace: str, key: str) -> Row:
    """Return the memory that has a key in a namespace; raise `NotFound` for none, or one that has expired."""
    check_key(key)
    number = core.store.namespaces.find_number(namespaces.check(namespace))
    row = None if number is None else rows.read_key(connection, number, key)
    if row is None or is_expired(row, core.clock.read_elapsed()):
        raise NotFound(f"There is no memory with the key {key[:80]!r} in {namespace or 'the root'}.", {"key": key})
    return row


def renew(core: Core, ids: list[str]) -> None:
    """Have those of some memories that have a time to live begin it again; nobody waits for that."""

    def write(transaction: Transaction) -> None:
        rows.renew(transaction.connection, ids, core.clock())

    try:
        core.store.write(write, over_limit=True)
    except Busy:
        return

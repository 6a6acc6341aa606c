"""The memories of a shared root that the person confirmed, recorded on this machine only.

They are a setting of the database: ids, hashes of the texts, and the times; no text of a root is stored. A confirmation
ends when somebody changes the memory in the root.
"""

import hashlib
from collections.abc import Sequence

import msgspec

from memoryd.client.protocol import Memory
from memoryd.daemon.core.core import Core
from memoryd.daemon.store import database_settings
from memoryd.daemon.store.writer import Transaction

_MOST = 1000  # of a root; the oldest go first

Known = dict[str, tuple[str, float]]


def read(core: Core, root: str) -> Known:
    """Return the confirmed memories of a root."""
    return _decode(core.store.read_setting(_setting(root)))


def note(core: Core, root: str, memories: Sequence[Memory]) -> None:
    """Record that the person confirmed memories as they are now."""
    new = {memory.id: (_digest(memory), core.clock()) for memory in memories}

    def write(transaction: Transaction) -> None:
        known = _decode(database_settings.read(transaction.connection, _setting(root))) | new
        text = msgspec.json.encode(dict([*known.items()][-_MOST:])).decode()
        database_settings.put(transaction.connection, _setting(root), text)

    core.store.write(write).result()


def find_time(known: Known, memory: Memory) -> float | None:
    """Return when a memory was confirmed, None if it was not or has changed since."""
    digest, at = known.get(memory.id, ("", 0.0))
    return at if digest and digest == _digest(memory) else None


def _setting(root: str) -> str:
    return f"confirmed_in_{root}"


def _decode(text: str | None) -> Known:
    return msgspec.json.decode(text or "{}", type=Known)


def _digest(memory: Memory) -> str:
    return hashlib.sha256(msgspec.json.encode([memory.content, memory.summary, memory.type])).hexdigest()

"""Memories with a key of the caller's choice: put and replaced as a whole, read and deleted by that key."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from memoryd.client.protocol.base import Redacted, Scoped, rpc
from memoryd.client.protocol.memories import NewMemory

MAX_KEY_BYTES = 512
MAX_VALUE_BYTES = 8 * 1024 * 1024


class WasPut(Struct, kw_only=True):
    """Outcome of `put`: durable. `unchanged`: the same was there, only its time to live began again."""

    id: str
    """id of the memory, the same for as long as the key is there"""
    outcome: Literal["created", "updated", "unchanged"]
    """what happened"""
    operation: int | None = None
    """its number, for `undo`; null where nothing changed"""
    redacted: Redacted = {}
    """credentials that were taken out before anything was stored, by kind"""


@rpc("within", grows=True, page=False)
class Put(Scoped[WasPut], kw_only=True, frozen=True):
    """Store a memory under a key, in place of the one that has this key in the namespace, in one transaction.

    All that the memory says is replaced; its id, date, accesses and history stay. It is never
    merged with another memory for its text, nor another with it. A memory that has expired counts as none. Metadata may
    have 8 MiB here, so that it can be the value that the key is for.
    """

    key: str
    """1 to 512 bytes of text"""
    memory: NewMemory
    """what to store, without an id and `supersedes`"""
    searchable: bool = True
    """false: found by its key and in lists only"""
    ttl_s: Annotated[float, Meta(gt=0.0, le=1e11)] | None = None
    """how long it lives; a read that asks to renew begins that time again"""
    allow_secrets: bool = False
    """store likely credentials as they are"""

"""Keys: put and replace memories as a whole under keys of your choice, by which they are also read and deleted."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from memoryd.client.protocol.base import Listed, Redacted, Scoped, rpc
from memoryd.client.protocol.memories import NewMemory

MAX_KEY_BYTES = 512
MAX_VALUE_BYTES = 8 * 1024 * 1024
MAX_ENTRIES = 1000  # of one transaction, for which other writes wait
TimeToLive = Annotated[float, Meta(gt=0.0, le=1e11)]


class KeyedEntry(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One entry of `put`: a memory to store under a key or, without a memory, the key to delete."""

    key: str
    """1 to 512 bytes of text"""
    memory: NewMemory | None = None
    """what to store, without an id and `supersedes`; null: what has the key is deleted, if anything has it"""
    below: str = ""
    """where in the call's namespace: `users/ada` is that place inside it; left out: the namespace itself. With a token
    and no namespace in the call it is a whole name, as anywhere else"""
    clears: str = ""
    """memories whose key there begins with this are deleted too, except those that the call puts; left out: none"""
    searchable: bool = True
    """false: found by its key and in lists only"""
    ttl_s: TimeToLive | None = None
    """how long it lives; a read that asks to renew begins that time again"""


class KeyedOutcome(Struct, kw_only=True):
    """What became of one entry."""

    id: str | None = None
    """id of the memory; null where there was none to delete"""
    outcome: Literal["created", "updated", "unchanged", "deleted", "absent"]
    """what happened; `unchanged`: the same was there, only its time to live began again; `absent`: there was none"""
    cleared: int = 0
    """how many others were deleted for its `clears`"""


class WerePut(Listed[KeyedOutcome], kw_only=True):
    """Outcome of `put`: all of it is durable."""

    results: list[KeyedOutcome]
    """one per entry, in order"""
    operation: str | None = None
    """its id, for `undo`; null where nothing changed"""
    redacted: Redacted = {}
    """credentials and private passages that were taken out before anything was stored, by kind"""


@rpc("within", page=False)
class Put(Scoped[WerePut], kw_only=True, frozen=True):
    """Store memories under keys, each in place of the one that has its key there, or delete them by their keys.

    All or nothing, in one transaction, as one operation; a key may occur once at a place. All that a memory says is
    replaced; its id, date, accesses and history stay. It is never merged with another memory, whatever their texts. A
    memory that has expired counts as none. Metadata may have 8 MiB here, so that it can be the value that the key is
    for. At the size limit of the database a call that only deletes is still taken. Sends progress while it embeds.
    """

    entries: Annotated[list[KeyedEntry], Meta(max_length=MAX_ENTRIES)]
    """what to store and to delete, in order"""
    allow_secrets: bool = False
    """store likely credentials as they are"""

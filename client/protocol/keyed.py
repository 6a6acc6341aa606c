"""Keys: put memories under keys of your choice, each replaced as a whole, and read and delete them by these keys."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from memoryd.client.protocol.base import Listed, Redacted, Scoped, rpc
from memoryd.client.protocol.memories import NewMemory

MAX_KEY_BYTES = 512
MAX_VALUE_BYTES = 8 * 1024 * 1024
MAX_ENTRIES = 1000  # per call, which is one transaction that other writes wait for
TimeToLive = Annotated[float, Meta(gt=0.0, le=1e11)]


class KeyedEntry(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One entry of `put`: a memory to store under a key or, without a memory, the key to delete."""

    key: str
    """1 to 512 bytes of text"""
    memory: NewMemory | None = None
    """the memory to store, without `id` and `supersedes`; null: the memory with this key is deleted, if there is one"""
    below: str = ""
    """a namespace relative to the call's, such as `users/ada`; left out: the call's own. If a caller with a token names
    no namespace in the call, this is the whole name"""
    clears: str = ""
    """memories whose keys there begin with this are deleted too, except those that the call puts; left out: none"""
    searchable: bool = True
    """false: found by its key and in lists only"""
    ttl_s: TimeToLive | None = None
    """how many seconds it lives; reading it with `renew` starts this time again"""


class KeyedOutcome(Struct, kw_only=True):
    """The outcome of one entry."""

    id: str | None = None
    """id of the memory; null: there was none to delete"""
    outcome: Literal["created", "updated", "unchanged", "deleted", "absent"]
    """what happened; `unchanged`: an equal memory was there, only its time to live starts again; `absent`: there was no
    memory to delete"""
    cleared: int = 0
    """how many other memories `clears` deleted"""


class WerePut(Listed[KeyedOutcome], kw_only=True):
    """Outcome of `put`, which is on disk."""

    results: list[KeyedOutcome]
    """one per entry, in order"""
    operation: str | None = None
    """id of the operation, for `undo`; null: nothing changed"""
    redacted: Redacted = {}
    """credentials and private passages that were taken out before anything was stored, by kind"""


@rpc("within", page=False)
class Put(Scoped[WerePut], kw_only=True, frozen=True):
    """Store memories under keys, each replacing the memory that has its key in the namespace, or delete them by key.

    All or nothing is done, in one transaction, as one operation; a key may occur once per namespace. The new memory
    replaces all fields of the former one but its id, date, accesses and history. It is never merged with another
    memory, even if their texts are equal. An expired memory counts as absent. Metadata may have 8 MiB here, so that it
    can hold the key's value. At the size limit of the database a call that only deletes is still permitted. Sends
    progress while it embeds.
    """

    entries: Annotated[list[KeyedEntry], Meta(max_length=MAX_ENTRIES)]
    """the memories to store and to delete, in order"""
    allow_secrets: bool = False
    """store likely credentials as they are"""

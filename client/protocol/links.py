"""Disagreements: memories that contradict each other or seem to be changed by later statements, and settling them."""

from typing import Literal

from msgspec import Struct

from memoryd.client.protocol.base import Done, Limit, MemoryOrigin, Scoped, rpc
from memoryd.client.protocol.memories import Memory


class Disagreement(Struct, kw_only=True):
    """Two memories that contradict each other."""

    newer: Memory
    """the memory that was saved later"""
    older: Memory
    """the memory that it contradicts"""
    created_at: float
    """when they were linked"""


class Disagreements(Struct, kw_only=True):
    """Pairs of memories that contradict each other, the latest link first."""

    links: list[Disagreement]
    """the pairs"""


@rpc("within", reads=True, page=True)
class Links(Scoped[Disagreements], kw_only=True, frozen=True):
    """List the memories within reach that contradict each other, the latest link first."""

    limit: Limit = 20
    """how many at most"""


@rpc("within", page=True)
class DismissLink(Scoped[Done], kw_only=True, frozen=True):
    """Declare that two memories do not contradict each other: their link is removed and not made again."""

    id: str
    """id or unique prefix of one memory"""
    other: str
    """id or unique prefix of the other"""
    restore: bool = False
    """take the dismissal back: the memories are linked as before"""


class ChangedMemories(Struct, kw_only=True):
    """Saved memories that a later statement seems to change, as long as that is not settled, the newest first."""

    memories: list[Memory]
    """the memories; `later` of each is the newest statement that seems to change it"""
    total: int
    """how many there are in all"""


@rpc("within", reads=True, page=True)
class ListChanges(Scoped[ChangedMemories], kw_only=True, frozen=True):
    """List the saved memories within reach that a later turn or memory seems to change."""

    limit: Limit = 20
    """how many at most"""


class Settled(Struct, kw_only=True):
    """Outcome of `settle_change`."""

    message: str
    """a sentence: what holds now"""
    id: str
    """id of the memory that was settled"""
    by: str = ""
    """id of the memory that replaces it; empty: none"""
    operation: str = ""
    """id of the operation, for `undo`; empty: `settle_change` with `open` takes it back"""


@rpc("within", grows=True, page=True)
class SettleChange(Scoped[Settled], kw_only=True, frozen=True):
    """Settle whether a saved memory, the newest later statement that seems to change it, or both hold.

    The same statement is not asked about again. A memory that the person saved or confirmed is settled by the person
    alone.
    """

    id: str
    """id or unique prefix of the memory, or of the later statement"""
    verdict: Literal["new", "both", "open"]
    """`new`: the later statement replaces the memory (a turn is saved as one); `both` hold; `open` takes `both` back"""
    origin: MemoryOrigin = "agent"
    """whose decision it is: `person` only if a person decided; a caller with a token is an agent"""

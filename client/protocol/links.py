"""Disagreements: which memories disagree, or seem to be changed by what was said later; settle that for good."""

from typing import Literal

from msgspec import Struct

from memoryd.client.protocol.base import Done, Limit, MemoryOrigin, Scoped, rpc
from memoryd.client.protocol.memories import Memory


class Disagreement(Struct, kw_only=True):
    """Two memories that contradict each other."""

    newer: Memory
    """the one that was linked when it came"""
    older: Memory
    """what it contradicts"""
    created_at: float
    """when they were linked"""


class Disagreements(Struct, kw_only=True):
    """Links of contradiction, the latest first."""

    links: list[Disagreement]
    """both memories of each"""


@rpc("within", reads=True, page=True)
class Links(Scoped[Disagreements], kw_only=True, frozen=True):
    """List the memories within reach that contradict each other, the latest link first."""

    limit: Limit = 20
    """how many at most"""


@rpc("within", page=True)
class DismissLink(Scoped[Done], kw_only=True, frozen=True):
    """Say that two memories do not contradict each other: they are not linked again, unless that is taken back."""

    id: str
    """id or unique prefix of one"""
    other: str
    """id or unique prefix of the other"""
    restore: bool = False
    """take a dismissal back: they are linked as before"""


class ChangedMemories(Struct, kw_only=True):
    """Saved memories that seem to be changed and are not settled, the newest first."""

    memories: list[Memory]
    """the field `later` of each has the newest statement that changes it"""
    total: int
    """how many there are in all"""


@rpc("within", reads=True, page=True)
class ListChanges(Scoped[ChangedMemories], kw_only=True, frozen=True):
    """List the saved memories within reach that something said or saved later seems to change."""

    limit: Limit = 20
    """how many at most"""


class Settled(Struct, kw_only=True):
    """Outcome of `settle_change`."""

    message: str
    """what holds now"""
    id: str
    """the memory that was settled"""
    by: str = ""
    """the memory that replaces it; empty: none does"""
    operation: str = ""
    """its id, for `undo`; empty: `settle_change` with `open` takes it back"""


@rpc("within", grows=True, page=True)
class SettleChange(Scoped[Settled], kw_only=True, frozen=True):
    """Settle what holds of a saved memory and the newest later statement: that one is not asked again.

    What the person saved or confirmed is settled by the person alone.
    """

    id: str
    """id or unique prefix of the memory, or of the later statement"""
    verdict: Literal["new", "both", "open"]
    """`new`: the later one replaces it (a turn is saved as a memory); `both` hold; `open` takes `both` back"""
    origin: MemoryOrigin = "agent"
    """whose decision it is: `person` only where a person chose; a caller bound to a token is an agent"""

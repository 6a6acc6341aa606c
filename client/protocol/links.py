"""Links of contradiction: which memories disagree, and dismissing such a link for good."""

from msgspec import Struct

from memoryd.client.protocol.base import Done, Limit, Scoped, rpc
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

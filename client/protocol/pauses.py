"""Pauses: places in which nothing that is said is kept."""

from msgspec import Struct

from memoryd.client.protocol.base import Call, rpc
from memoryd.client.protocol.service import Pause, PauseKind


class Observing(Struct, kw_only=True):
    """All pauses, those of the settings last."""

    pauses: list[Pause]
    """none: everything is observed, as far as `only` says"""
    only: list[str] = []
    """folders and namespaces outside of which nothing is observed (`[observe] only`); none: there is no such limit"""


@rpc("owner", reads=True, page=True)
class GetObserving(Call[Observing], kw_only=True, frozen=True):
    """Return where observing is paused."""


@rpc("owner", page=True)
class PauseObserving(Call[Observing], kw_only=True, frozen=True):
    """Stop observing in a place until it is resumed; what was observed before stays. Pauses of the settings stay."""

    kind: PauseKind
    """whether the name is of a session, a namespace or a folder"""
    name: str
    """of a session, a namespace (the empty text: all) or an absolute folder"""
    resume: bool = False
    """observe there again"""

"""Pauses: sessions, namespaces and folders in which nothing is recorded."""

from msgspec import Struct

from memoryd.client.protocol.base import Call, rpc
from memoryd.client.protocol.service import Pause, PauseKind


class Observing(Struct, kw_only=True):
    """All pauses, those of the settings last."""

    pauses: list[Pause]
    """the pauses; empty: nothing is paused"""
    only: list[str] = []
    """folders and namespaces outside of which nothing is observed (`[observe] only`); empty: no such limit"""


@rpc("owner", reads=True, page=True)
class GetObserving(Call[Observing], kw_only=True, frozen=True):
    """Return where observing is paused."""


@rpc("owner", page=True)
class PauseObserving(Call[Observing], kw_only=True, frozen=True):
    """Stop observing in a session, namespace or folder, or with `resume` start again. What was observed before stays.

    Pauses that the settings declare can be ended there alone.
    """

    kind: PauseKind
    """whether the name is of a session, a namespace or a folder"""
    name: str
    """name of a session, a namespace (the empty text: all) or an absolute folder"""
    resume: bool = False
    """end the pause"""

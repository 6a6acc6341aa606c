"""Pausing: places in which nothing that is said is kept."""

from typing import Literal

from msgspec import Struct

from memoryd.client.protocol.base import Call, rpc

PauseKind = Literal["session", "namespace", "folder"]


class Pause(Struct, kw_only=True):
    """A place in which nothing is observed: a session, a namespace with those inside it, a folder with all below it."""

    kind: PauseKind
    """whether the name is of a session, a namespace or a folder"""
    name: str
    """of the session, namespace (the empty text: all) or folder"""
    since: float | None = None
    """when it was paused; null: by the settings, `[observe] never`"""


class Observing(Struct, kw_only=True):
    """All pauses, those of the settings last."""

    pauses: list[Pause]
    """none: everything is observed"""


@rpc("owner", reads=True, page=True)
class GetObserving(Call[Observing], kw_only=True, frozen=True):
    """Return where observing is paused."""


@rpc("owner", page=True)
class PauseObserving(Call[Observing], kw_only=True, frozen=True):
    """Stop observing in a place until it is resumed; what was observed before stays."""

    kind: PauseKind
    """whether the name is of a session, a namespace or a folder"""
    name: str
    """of a session, a namespace (the empty text: all) or an absolute folder"""


@rpc("owner", page=True)
class ResumeObserving(Call[Observing], kw_only=True, frozen=True):
    """Observe in a place again; pauses of the settings stay."""

    kind: PauseKind
    """whether the name is of a session, a namespace or a folder"""
    name: str
    """of a session, a namespace or a folder, as it was paused"""

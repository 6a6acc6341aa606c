"""Pausing: places in which nothing that is said is kept."""

from msgspec import Struct

from memoryd.client.protocol.base import Call, rpc
from memoryd.client.protocol.service import Pause, PauseKind


class Observing(Struct, kw_only=True):
    """All pauses, those of the settings last."""

    pauses: list[Pause]
    """none: everything is observed, as far as `only` says"""
    only: list[str] = []
    """folders and namespaces outside of which nothing is observed (`[observe] only`); none: there is no such limit"""


class MovedNamespace(Struct, kw_only=True):
    """What went to another namespace beside memories."""

    turns: int
    """turns of L0"""
    tokens: list[str]
    """the names of tokens that are bound to the other namespace from now on"""


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


@rpc("owner", page=False)
class MoveNamespace(Call[MovedNamespace], kw_only=True, frozen=True):
    """Let what a namespace has beside its memories go to another one: turns of L0 and tokens; see `share`.

    Its pauses stay and hold under the other name as well; what was said in one, also one that is over, stays out there.
    """

    namespace: str
    """where it is; not the root"""
    to: str
    """where it goes; not the root"""

"""Sessions and tasks: what came of them."""

from typing import Literal

from msgspec import Struct

from memoryd.client.protocol.base import Done, Scoped, rpc
from memoryd.client.protocol.memories import Added


class SessionEnded(Struct, kw_only=True):
    """What is thought about an ended session now: `extract` (facts), `summary`; empty when nothing new was observed."""

    waiting: list[str]
    """what is done about it now, in the background: `extract` (facts), `summary`"""


@rpc("outward")
class EndSession(Scoped[SessionEnded], kw_only=True, frozen=True):
    """Say that a conversation is over: facts are drawn out of it and it is summed up at once, in the background.

    Without this it happens when the conversation rests. A later summary of the same session replaces this one.
    """

    session: str
    """the conversation's name, as it was observed under"""


@rpc("within")
class ResetSession(Scoped[Done], kw_only=True, frozen=True):
    """Say that a session has lost what contexts gave it, as by a compaction: the next ones may give it again."""

    session: str
    """the conversation's name, as contexts were asked for with"""


@rpc("outward", grows=True)
class CompleteTask(Scoped[Added], kw_only=True, frozen=True):
    """Keep what came of a task for the next sessions: a note, or a lesson where it failed.

    A long output is condensed in the background. `[lifetime]` may set how long outcomes live.
    """

    outcome: Literal["completed", "failed", "partial", "cancelled"]
    """how it went; what failed is kept as a lesson"""
    output: str
    """what came of it, or what failed and why"""
    task: str = ""
    """what was to be done"""
    session: str = ""
    """the conversation that it belongs to"""
    allow_secrets: bool = False
    """store likely credentials as they are"""

"""Sessions: say that one ended or that a task is done, and read what was done."""

from typing import Literal

from msgspec import Struct

from memoryd.client.protocol.base import Done, Limit, Listed, Scoped, Seconds, rpc
from memoryd.client.protocol.memories import Added


class SessionEnded(Struct, kw_only=True):
    """What is being made of an ended session: a `summary`, and with a language model facts (`extract`).

    Empty when nothing new was observed, and with `wait` when all is done.
    """

    waiting: list[str]
    """what is being made in the background: `summary`, `extract` (facts); with `wait` what could not be made yet"""


@rpc("outward", page=False)
class EndSession(Scoped[SessionEnded], kw_only=True, frozen=True):
    """Say that a conversation is over: it is summed up now, in the background; a language model draws facts from it.

    Without this it happens when the conversation rests. A later summary of the same session replaces this one. With
    `wait` the reply comes when these are there; sends progress.
    """

    session: str
    """the conversation's name, as it was observed under"""
    wait: bool = False
    """return when its summary and its facts can be found"""


@rpc("within", page=False)
class ResetSession(Scoped[Done], kw_only=True, frozen=True):
    """Say that a session has lost what contexts gave it, as by a compaction: the next ones may give it again."""

    session: str
    """the conversation's name, as contexts were asked for with"""


@rpc("outward", grows=True, page=False)
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


class LoggedOutcome(Struct, kw_only=True):
    """How a task of a session went."""

    id: str
    """id of the memory"""
    outcome: str
    """completed, failed, partial or cancelled"""
    content: str
    """the task and what came of it, at most 1,000 characters"""


class LoggedSession(Struct, kw_only=True):
    """What is known of one session within the time that was asked for."""

    namespace: str
    """where it was observed"""
    session: str
    """the conversation's name"""
    began_at: float
    """when its first turn was said"""
    ended_at: float
    """when the last of it was said or noted"""
    turns: int
    """how many turns are kept"""
    asked: str = ""
    """the user's first turn, at most 1,000 characters"""
    summary: str = ""
    """its latest summary, at most 1,000 characters"""
    files: list[str] = []
    """the files that its turns name, in order"""
    outcomes: list[LoggedOutcome] = []
    """how its tasks went, in order"""


class SessionLog(Listed[LoggedSession], kw_only=True):
    """Sessions, the latest first."""

    sessions: list[LoggedSession]
    """the latest first"""


@rpc("within", reads=True, page=True)
class GetLog(Scoped[SessionLog], kw_only=True, frozen=True):
    """Return what was done, session by session: what was asked, what it came to, which files were written.

    It is made of the latest 20,000 turns, summaries and outcomes of the time. Turns without a session are left out.
    """

    since: Seconds | None = None
    """only what came about then or later"""
    until: Seconds | None = None
    """only what came about before"""
    path: str = ""
    """only sessions whose turns name this file, by its whole path or the end of it"""
    session: str | None = None
    """only this conversation, or without one of this name those that begin so (with 4 characters or more)"""
    limit: Limit = 20
    """how many sessions at most"""

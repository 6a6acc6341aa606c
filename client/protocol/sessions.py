"""Sessions: report that a session ended or a task is done, and read what was done."""

from typing import Literal

from msgspec import Struct

from memoryd.client.protocol.base import Done, Limit, Listed, Scoped, Seconds, rpc
from memoryd.client.protocol.memories import Added


class SessionEnded(Struct, kw_only=True):
    """What is still to be made of an ended session in the background."""

    waiting: list[str]
    """`summary`, and with a language model `extract` (facts); empty: nothing new was observed. With `wait` only what
    could not be made yet"""


@rpc("outward", page=False)
class EndSession(Scoped[SessionEnded], kw_only=True, frozen=True):
    """Report that a conversation is over: it is summarised in the background, and a language model extracts its facts.

    Without this call that happens when the conversation pauses. A later summary of the same session replaces this one.
    With `wait` the reply comes when summary and facts are stored; sends progress.
    """

    session: str
    """the conversation's name, as in `observe`"""
    wait: bool = False
    """return when its summary and its facts can be found"""


@rpc("within", page=False)
class ResetSession(Scoped[Done], kw_only=True, frozen=True):
    """Report that a session has lost the contexts it was given, as by a compaction: it may be given the same again."""

    session: str
    """the conversation's name, as in `get_context`"""


@rpc("outward", grows=True, page=False)
class CompleteTask(Scoped[Added], kw_only=True, frozen=True):
    """Record the result of a task for later sessions: as a note, or as a lesson if it failed.

    A long result is condensed in the background. `[lifetime]` may set how long results live.
    """

    outcome: Literal["completed", "failed", "partial", "cancelled"]
    """how the task ended"""
    output: str
    """the result, or what failed and why"""
    task: str = ""
    """the task"""
    session: str = ""
    """the conversation that it belongs to"""
    allow_secrets: bool = False
    """store likely credentials as they are"""


class LoggedOutcome(Struct, kw_only=True):
    """The result of a task of a session."""

    id: str
    """id of the memory"""
    outcome: str
    """completed, failed, partial or cancelled"""
    content: str
    """the task and its result, at most 1,000 characters"""


class LoggedSession(Struct, kw_only=True):
    """One session, as far as it lies within the given time."""

    namespace: str
    """the namespace in which it was observed"""
    session: str
    """the conversation's name"""
    began_at: float
    """time of its first turn"""
    ended_at: float
    """time of its last turn, summary or result"""
    turns: int
    """how many of its turns are stored"""
    asked: str = ""
    """the user's first turn, at most 1,000 characters"""
    summary: str = ""
    """its latest summary, at most 1,000 characters"""
    files: list[str] = []
    """the files that its turns name, in order"""
    outcomes: list[LoggedOutcome] = []
    """the results of its tasks, in order"""


class SessionLog(Listed[LoggedSession], kw_only=True):
    """Sessions, the latest first."""

    sessions: list[LoggedSession]
    """the latest first"""


@rpc("within", reads=True, page=True)
class GetLog(Scoped[SessionLog], kw_only=True, frozen=True):
    """Return what was done, session by session: the request, the summary, the results, the files that were written.

    The log is made of the latest 20,000 turns, summaries and results of the time. Turns without a session are left out.
    """

    since: Seconds | None = None
    """only from this time on"""
    until: Seconds | None = None
    """only before this time"""
    path: str = ""
    """only sessions whose turns name this file, by its whole path or the end of it"""
    session: str | None = None
    """only the conversation of this name; if there is none, those whose names begin with these 4 or more characters"""
    limit: Limit = 20
    """how many sessions at most"""

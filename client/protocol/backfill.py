"""Coding agents: take in their sessions, past ones and those that go on, from the files that their hosts keep."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from memoryd.client.protocol.base import Call, Redacted, rpc
from memoryd.client.protocol.tiers import MAX_TURNS, NewTurn, Observed, TurnList

AROUND = 8  # turns before and after those that are kept, which say what answers what


class PastTurn(NewTurn, kw_only=True, frozen=True, omit_defaults=True):
    """A turn of a past session; it needs its time and its id."""

    folder: str = ""
    """the folder in which it was said"""
    to_program: bool = False
    """it answers what a program said, such as a notice: it counts little, and answers nothing of the user's"""


class Backfilled(Struct, kw_only=True):
    """What became of the turns of a past session, or with `dry_run` would become of them."""

    taken: int = 0
    """are memories now"""
    known: int = 0
    """were there already, from an earlier backfill or as they were said"""
    left_out: dict[str, int] = {}
    """how many were not kept, by reason"""
    operation: str | None = None
    """what `undo` takes back; null in a dry run"""
    dry_run: bool = False
    """nothing was changed"""
    keys: list[str] = []
    """in a dry run, for each turn that would be taken, by what an equal one is known, which is left out; or empty"""
    redacted: Redacted = {}
    """credentials and private passages that were taken out before anything was stored, by kind"""


@rpc("owner", grows=True, lane="bulk", page=False)
class Backfill(Call[Backfilled], kw_only=True, frozen=True):
    """Keep turns of a past session as memories at once, with the times at which they were said.

    They pass the same gate as what is observed, and enter L2. A turn that is known by its id, or by its text and its
    session, is left as it is. Where observing is paused, none is kept; nor is one that was deleted, or of a session of
    which something was erased. Without turns an operation is begun, for calls
    that name it. Each part is on disk by itself; an error says how much is kept.
    """

    namespace: str = ""
    """where they are kept"""
    session: str = ""
    """the conversation's name"""
    turns: Annotated[list[PastTurn], Meta(max_length=MAX_TURNS)] = []
    """in the order in which they were said, at most 500, with time and id"""
    before: int = 0
    """how many turns at the beginning are not kept, only looked at: the others may answer them"""
    after: int = 0
    """how many turns at the end are not kept, only looked at"""
    operation: str | None = None
    """the whole id of a backfill to go on with; left out: a new one"""
    dry_run: bool = False
    """only report what would be done"""
    allow_secrets: bool = False
    """store likely credentials as they are"""


@rpc("owner", grows=True, page=False)
class Listen(Call[Observed], kw_only=True, frozen=True):
    """Say that something happened in a session of a coding agent, of which its host keeps a file: it is read soon.

    `turns` are taken in at once, as by `observe`, which says what becomes of them. The file gives what was said besides
    and nothing twice; what the person took back there is deleted again. What was said before the session was first
    named here is left to a backfill. Only a file of yours is read, and only where that agent keeps its sessions.
    """

    agent: str
    """which one, by the name that `hooks install` has for it"""
    file: str
    """the absolute path of the session's file or of the agent's database, which may be yet to come"""
    session: str
    """the conversation's name"""
    namespace: str = ""
    """where turns are kept that were said in `folder`"""
    folder: str = ""
    """the folder that the agent works in"""
    size: int = 0
    """how many bytes the file had at the event"""
    at: float = 0.0
    """when the event was, UTC seconds; 0: now"""
    moment: Literal["start", "turn", "stop", "end"] = "turn"
    """`start`: files of former sessions of the namespace are read to their ends as well; `end`: this one is; `stop`:
    what the agent said last in the file is its answer, in place of `turns` where the file can be read"""
    turns: TurnList = []
    """what the event itself tells"""
    allow_secrets: bool = False
    """store likely credentials as they are"""

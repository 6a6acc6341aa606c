"""Coding agents: read their past and current sessions from the files in which their hosts keep them."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from memoryd.client.protocol.base import Call, Redacted, rpc
from memoryd.client.protocol.tiers import MAX_TURNS, NewTurn, Observed, TurnList

AROUND = 8  # turns sent before and after those to be kept, so that questions and answers are paired across calls


class PastTurn(NewTurn, kw_only=True, frozen=True, omit_defaults=True):
    """A turn of a past session; its time and its id are required."""

    folder: str = ""
    """the folder in which it was said"""
    to_program: bool = False
    """it answers a program's message, such as a notice: it is rated low and is no answer to the user"""


class Backfilled(Struct, kw_only=True):
    """What became of the turns of a past session, or with `dry_run` would become of them."""

    taken: int = 0
    """turns that are memories now"""
    known: int = 0
    """turns that were stored before, by an earlier backfill or when they were said"""
    left_out: dict[str, int] = {}
    """how many were not kept, by reason"""
    operation: str | None = None
    """what `undo` takes back; null in a dry run"""
    dry_run: bool = False
    """nothing was changed"""
    keys: list[str] = []
    """of a dry run: a key for each turn that would be taken. Of turns with equal keys only the first is kept; an empty
    key equals no other"""
    redacted: Redacted = {}
    """credentials and private passages that were taken out before anything was stored, by kind"""


@rpc("owner", grows=True, lane="bulk", page=False)
class Backfill(Call[Backfilled], kw_only=True, frozen=True):
    """Store turns of a past session as memories, with the times at which they were said.

    They pass the same gate as observed turns, and enter L2. A turn that is stored already (the same id, or the same
    text in the same session) is left as it is. Not kept are turns from places where observing is paused, turns that
    were deleted, and all turns of a session of which something was erased. A call without turns begins an operation,
    which further calls name. Each part is committed by itself; an error says how many turns are kept.
    """

    namespace: str = ""
    """where they are kept"""
    session: str = ""
    """the conversation's name"""
    turns: Annotated[list[PastTurn], Meta(max_length=MAX_TURNS)] = []
    """in the order in which they were said, at most 500, with time and id"""
    before: int = 0
    """how many turns at the beginning are only context for the others and not kept"""
    after: int = 0
    """how many turns at the end are only context and not kept"""
    operation: str | None = None
    """the whole id of a backfill to continue; left out: a new one"""
    dry_run: bool = False
    """only report what would be done"""
    allow_secrets: bool = False
    """store likely credentials as they are"""


@rpc("owner", grows=True, page=False)
class Listen(Call[Observed], kw_only=True, frozen=True):
    """Report an event in a session of a coding agent whose host keeps a file of the session: that file is read soon.

    `turns` are recorded at once, as by `observe`. The other turns come from the file, none of them twice; a turn that
    the person took back there is deleted again. Turns from before the first such call for the session are left to a
    backfill. A file is read only if it belongs to the user and is where that agent keeps its sessions.
    """

    agent: str
    """the agent's name, as in `hooks install`"""
    file: str
    """the absolute path of the session's file or of the agent's database, which need not exist yet"""
    session: str
    """the conversation's name"""
    namespace: str = ""
    """where turns said in `folder` are kept"""
    folder: str = ""
    """the folder that the agent works in"""
    size: int = 0
    """how many bytes the file had at the event"""
    at: float = 0.0
    """when the event was, UTC seconds; 0: now"""
    moment: Literal["start", "turn", "stop", "end"] = "turn"
    """`start`: files of earlier sessions of the namespace are also read to their ends; `end`: this session's file is;
    `stop`: the agent's last message in the file is its answer and replaces `turns`, if the file can be read"""
    turns: TurnList = []
    """the turns that the event itself contains"""
    allow_secrets: bool = False
    """store likely credentials as they are"""

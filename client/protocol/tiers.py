"""Tiers: observe conversations, list the turns in L0 and those that were skipped, and count what each tier has."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from memoryd.client.protocol.base import Limit, Listed, Redacted, Scoped, Seconds, TierName, rpc

MAX_TURNS = 500


class NewTurn(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One message of a conversation. `id` and `created_at` are for imports and repeated sending.

    The memory that the turn becomes has `speaker` and `files` in its metadata.
    """

    role: str
    """who said it: user, assistant …"""
    content: str
    """the text, at most 1 MiB of UTF-8"""
    created_at: Seconds | None = None
    """when it was said; left out: now"""
    id: str | None = None
    """32 lower-case hex digits, for imports and repeated sending; left out: a random one"""
    speaker: str = ""
    """the speaker's name, at most 128 bytes; empty: unknown"""
    files: list[str] = []
    """paths of the files that it is about or that were written for it, at most 100 and 16 KiB together"""


TurnList = Annotated[list[NewTurn], Meta(max_length=MAX_TURNS)]


class ObservedTurn(Struct, kw_only=True):
    """The outcome for one turn."""

    outcome: Literal["accepted", "skipped"]
    """`accepted` into L0, or `skipped`"""
    id: str | None = None
    """its id in L0, and later the memory's; null: it was skipped and the call gave it no id"""
    reason: str = ""
    """why it was skipped; empty: it was not"""
    same_as: str | None = None
    """id of the memory or turn that it repeats"""


class Observed(Listed[ObservedTurn], kw_only=True):
    """Outcome of `observe`. Accepted turns are on disk."""

    turns: list[ObservedTurn]
    """the outcome for each turn, in the order of the call"""
    accepted: int
    """how many are in L0"""
    skipped: int
    """how many were skipped"""
    redacted: Redacted = {}
    """credentials and private passages that were taken out before anything was stored, by kind"""

    @property
    def ids(self) -> list[str]:
        """The ids of the accepted turns, which they keep when they become memories."""
        return [turn.id for turn in self.turns if turn.outcome == "accepted" and turn.id]


class Turn(Struct, kw_only=True):
    """One turn in L0."""

    id: str
    """32 hex digits; a promoted turn keeps it"""
    namespace: str
    """where it was observed"""
    session: str
    """the conversation's name; empty: none was given"""
    role: str
    """who said it"""
    content: str
    """the text"""
    importance: float
    """0 to 1; when the turn leaves L0 it moves to L1 from 0.5 on (`[tiers] promote_from`), else to L2"""
    judged: bool
    """false: the importance is a first guess"""
    source: str
    """`conversation`"""
    created_at: float
    """when it was said"""
    speaker: str = ""
    """the speaker's name; empty: unknown"""
    files: list[str] = []
    """paths of the files that it is about"""


class SkippedTurn(Struct, kw_only=True):
    """A turn that was skipped."""

    namespace: str
    """where it was observed"""
    session: str
    """the conversation's name"""
    role: str
    """who said it"""
    content: str
    """the beginning of the text"""
    reason: str
    """why it was skipped"""
    at: float
    """when it was said"""


class ActiveTurns(Listed[Turn], kw_only=True):
    """Turns of L0, newest first."""

    turns: list[Turn]
    """newest first"""
    total: int
    """how many there are"""
    ring: int
    """how many turns of each namespace L0 holds at most"""
    skipped: list[SkippedTurn] = []
    """with `skipped`: the turns that were skipped, newest first"""


class TierState(Struct, kw_only=True):
    """One tier and its size."""

    name: TierName
    """the tier"""
    title: str = ""
    """its name for people"""
    unit: str = "memory"
    """the unit that `count` counts"""
    count: int
    """how many turns or memories it has within reach"""
    ram_bytes: int
    """roughly how many bytes of RAM they use"""
    limit: int = 0
    """how many turns or memories of each namespace it holds at most; 0: no limit"""
    oldest_at: float | None = None
    """creation time of the oldest"""
    newest_at: float | None = None
    """creation time of the newest"""


class NamespaceTiers(Struct, kw_only=True):
    """The tiers of a namespace, and its account of turns: how many were observed and where they went."""

    namespace: str
    """the namespace"""
    tiers: dict[str, int]
    """turns or memories per tier"""
    flows: dict[str, int] = {}
    """turns by where they went, as in `TierReport`"""


class TierReport(Struct, kw_only=True):
    """All tiers within reach, and the extraction queue."""

    tiers: list[TierState]
    """from the most recent to the registry"""
    namespaces: list[NamespaceTiers]
    """the fullest first"""
    flows: dict[str, int]
    """turns by where they went, over all namespaces: `observed`, `skipped: …`, `dropped: …`, `gone: …`"""
    waiting: dict[str, int] = {}
    """turns and memories whose task is due, by task: `rate`, `embed`, `compare`, `condense`"""
    resting: dict[str, int] = {}
    """turns whose task waits until their conversation pauses or ends, by task: `summary`, `extract` (facts)"""
    nodes: int = 0
    """nodes of the graph of L2"""


class Consolidated(Struct, kw_only=True):
    """Outcome of `consolidate`: what it did, or with `dry_run` would do. `undo` of `operation` takes the moves back."""

    dry_run: bool
    """nothing was changed"""
    judged: int
    """turns whose importance was judged"""
    promoted: int
    """turns that became memories"""
    dropped: int
    """turns that were dropped as unimportant, with `[tiers] drop_unimportant`"""
    moved: int
    """always 0: the job `sweep` moves memories from L1 to L2"""
    paired: int
    """always 0: a question and its answer stay two memories, which a search shows as one hit"""
    operation: str | None = None
    """id of the operation; null: nothing moved"""
    took_ms: float = 0.0
    """time in the daemon"""


@rpc("outward", grows=True, page=False)
class Observe(Scoped[Observed], kw_only=True, frozen=True):
    """Record turns of a conversation. The call waits for no model; accepted turns are on disk when it returns.

    Turns without content (too short, stop words, printed errors and progress, repetitions) are skipped with a reason.
    The others enter L0, a ring per namespace, and become memories when they leave it: the important ones in L1, the
    rest in L2. Searches find them in all three.
    """

    turns: TurnList
    """the turns, in the order in which they were said, at most 500"""
    session: str = ""
    """the conversation's name"""
    folder: str = ""
    """the conversation's folder; if observing is paused there, all turns are skipped"""
    allow_secrets: bool = False
    """store likely credentials as they are"""


@rpc("within", reads=True, page=True)
class Turns(Scoped[ActiveTurns], kw_only=True, frozen=True):
    """List the turns in L0, newest first."""

    session: str | None = None
    """only turns of this conversation"""
    limit: Limit = 100
    """how many at most"""
    skipped: bool = False
    """also list turns that were skipped, each with the reason, at most `limit`"""


@rpc("within", reads=True, page=True)
class Tiers(Scoped[TierReport], kw_only=True, frozen=True):
    """Return the size of each tier, and the account of turns: how many were observed and where they went."""


@rpc("owner", grows=True, lane="bulk", page=False)
class Consolidate(Scoped[Consolidated], kw_only=True, frozen=True):
    """Move all turns within reach from L0 to L1 or L2 now, by their importance, and cluster the memories of L2.

    Memories in L1 stay there; the job `sweep` moves those to L2 that have not been used for long. Sends progress. With
    `dry_run` nothing is changed.
    """

    dry_run: bool = False
    """only count what would be done"""

"""Tiers: observe conversations, see what is in L0, what was not kept, where everything is and how it flowed."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from memoryd.client.protocol.base import Limit, Listed, Redacted, Scoped, Seconds, TierName, rpc

MAX_TURNS = 500


class NewTurn(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One message of a conversation. `id` and `created_at` serve imports and repeated sending.

    `speaker` and `files` are found as metadata of the memory that it becomes.
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
    """the name of who said it, at most 128 bytes; empty: not known"""
    files: list[str] = []
    """paths of the files that it is about or that were written for it, at most 100 and 16 KiB together"""


TurnList = Annotated[list[NewTurn], Meta(max_length=MAX_TURNS)]


class ObservedTurn(Struct, kw_only=True):
    """What became of one turn: `accepted` into L0 as `id`, or `skipped` for a reason; `same_as` is what it repeats."""

    outcome: Literal["accepted", "skipped"]
    """what became of it"""
    id: str | None = None
    """its id in L0, and later the memory's; null: it was skipped and had none of its own"""
    reason: str = ""
    """why it was skipped; empty: it was not"""
    same_as: str | None = None
    """id of the memory or turn that it repeats"""


class Observed(Listed[ObservedTurn], kw_only=True):
    """Outcome of an observe, turn by turn in order. What was accepted is on disk."""

    turns: list[ObservedTurn]
    """in the order of the call"""
    accepted: int
    """how many are in L0"""
    skipped: int
    """how many were not kept"""
    redacted: Redacted = {}
    """credentials and private passages that were taken out before anything was stored, by kind"""

    @property
    def ids(self) -> list[str]:
        """The ids of the accepted turns, which they keep when they become memories."""
        return [turn.id for turn in self.turns if turn.outcome == "accepted" and turn.id]


class Turn(Struct, kw_only=True):
    """One turn in L0. `judged` is false while its importance is still the first guess."""

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
    """0 to 1; from a limit on (0.5) it moves to L1 when it leaves L0, else to L2"""
    judged: bool
    """false: the importance is the first guess"""
    source: str
    """`conversation`"""
    created_at: float
    """when it was said"""
    speaker: str = ""
    """the name of who said it; empty: not known"""
    files: list[str] = []
    """paths of the files that it is about"""


class SkippedTurn(Struct, kw_only=True):
    """A turn that was not kept: the beginning of its text, and why."""

    namespace: str
    """where it was observed"""
    session: str
    """the conversation's name"""
    role: str
    """who said it"""
    content: str
    """the beginning of the text"""
    reason: str
    """why it was not kept"""
    at: float
    """when it was said"""


class ActiveTurns(Listed[Turn], kw_only=True):
    """Turns of L0, newest first; `ring` is how many a namespace holds at most."""

    turns: list[Turn]
    """newest first"""
    total: int
    """how many there are"""
    ring: int
    """how many L0 holds of each namespace"""
    skipped: list[SkippedTurn] = []
    """where `skipped` asked for them: turns that were not kept, newest first"""


class TierState(Struct, kw_only=True):
    """One tier: what it holds on disk, what of it is in RAM, its limit per namespace (0: none)."""

    name: TierName
    """the tier"""
    title: str = ""
    """its name for people"""
    unit: str = "memory"
    """what it counts"""
    count: int
    """how many turns or memories it has within reach"""
    ram_bytes: int
    """about how much of them is in RAM"""
    limit: int = 0
    """how many of each namespace it holds at most; 0: no limit"""
    oldest_at: float | None = None
    """creation time of the oldest"""
    newest_at: float | None = None
    """creation time of the newest"""


class NamespaceTiers(Struct, kw_only=True):
    """How many a namespace has in each tier, and its account of turns: what came in and where it went."""

    namespace: str
    """the namespace"""
    tiers: dict[str, int]
    """how many it has in each tier"""
    flows: dict[str, int] = {}
    """its account of turns"""


class TierReport(Struct, kw_only=True):
    """All tiers within reach. `waiting` and `resting` are the extraction queue.

    Turns are rated, embedded or condensed at once; for the summary of their conversation and, with a language model,
    for its facts they wait until it rests or ends.
    """

    tiers: list[TierState]
    """from the most recent to the registry"""
    namespaces: list[NamespaceTiers]
    """the fullest first"""
    flows: dict[str, int]
    """turns that went each way, over all namespaces: `observed`, `skipped: …`, `dropped: …`, `gone: …`"""
    waiting: dict[str, int] = {}
    """turns and memories that wait, by task: `rate`, `embed`, `compare`, `condense`"""
    resting: dict[str, int] = {}
    """turns that wait for their conversation to rest, by task: `summary`, `extract` (facts)"""
    nodes: int = 0
    """nodes of the graph of L2"""


class Consolidated(Struct, kw_only=True):
    """What a consolidation did, or with `dry_run` would do. `undo` of `operation` takes the moves back."""

    dry_run: bool
    """nothing was changed"""
    judged: int
    """judgements made"""
    promoted: int
    """turns that became memories"""
    dropped: int
    """turns that mattered too little, with `[tiers] drop_unimportant`"""
    moved: int
    """always 0: the job `sweep` moves memories from L1 to L2"""
    paired: int
    """always 0: a question and its answer stay two memories, which a search shows as one hit"""
    operation: str | None = None
    """the operation; null: nothing moved"""
    took_ms: float = 0.0
    """milliseconds in the daemon"""


@rpc("outward", grows=True, page=False)
class Observe(Scoped[Observed], kw_only=True, frozen=True):
    """Record turns of a conversation. Waits for no model; what is accepted is on disk when it returns.

    Turns that say nothing (too short, stop words, printed errors and progress, repetitions) are skipped with the
    reason. The others enter L0, a ring per namespace, and become memories when they leave it: the important ones in L1,
    the rest in L2. Searches find them in each of these.
    """

    turns: TurnList
    """in the order in which they were said, at most 500"""
    session: str = ""
    """the conversation's name"""
    folder: str = ""
    """the folder that it is about: if observing is paused there, all turns are skipped"""
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
    """also those that were not kept, each with the reason, as many at most"""


@rpc("within", reads=True, page=True)
class Tiers(Scoped[TierReport], kw_only=True, frozen=True):
    """Return what each tier holds, and how many turns went which way."""


@rpc("owner", grows=True, lane="bulk", page=False)
class Consolidate(Scoped[Consolidated], kw_only=True, frozen=True):
    """Move all turns within reach from L0 to L1 or L2 now, by their importance, and group what is in L2.

    What is in L1 stays there; the job `sweep` moves it to L2 when it was not used for long. Sends progress. With
    `dry_run` nothing is changed.
    """

    dry_run: bool = False
    """only count what would be done"""

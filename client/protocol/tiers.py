"""The tiers: observing conversations, what is in L0, what was not kept, where everything is and how it flowed."""

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta, Struct

from memoryd.client.protocol.base import MAX_INTEGER, Limit, Redacted, Scoped, Seconds
from memoryd.client.protocol.memories import NewMemory

MAX_TURNS = 500


class NewTurn(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One message of a conversation. `id` and `created_at` serve imports and repeated sending."""

    role: str
    content: str
    created_at: Seconds | None = None
    id: str | None = None


TurnList = Annotated[list[NewTurn], Meta(max_length=MAX_TURNS)]


class ObservedTurn(Struct, kw_only=True):
    """What became of one turn: `accepted` into L0 as `id`, or `skipped` for a reason; `same_as` is what it repeats."""

    outcome: Literal["accepted", "skipped"]
    id: str | None = None
    reason: str = ""
    same_as: str | None = None


class Observed(Struct, kw_only=True):
    """Outcome of an observe, turn by turn in order. What was accepted is on disk."""

    turns: list[ObservedTurn]
    accepted: int
    skipped: int
    redacted: Redacted = {}

    def __iter__(self) -> Iterator[ObservedTurn]:
        return iter(self.turns)

    def __len__(self) -> int:
        return len(self.turns)

    @property
    def ids(self) -> list[str]:
        """The ids of the accepted turns, which they keep when they become memories."""
        return [turn.id for turn in self.turns if turn.outcome == "accepted" and turn.id]


class Turn(Struct, kw_only=True):
    """One turn in L0. `judged` is false while its importance is still the first guess."""

    id: str
    namespace: str
    session: str
    role: str
    content: str
    importance: float
    judged: bool
    source: str
    created_at: float


class ActiveTurns(Struct, kw_only=True):
    """Turns of L0, newest first; `ring` is how many a namespace holds at most."""

    turns: list[Turn]
    total: int
    ring: int

    def __iter__(self) -> Iterator[Turn]:
        return iter(self.turns)

    def __len__(self) -> int:
        return len(self.turns)


class SkippedTurn(Struct, kw_only=True):
    """A turn that was not kept: the beginning of its text, and why."""

    namespace: str
    session: str
    role: str
    content: str
    reason: str
    at: float


class SkippedTurns(Struct, kw_only=True):
    """Turns that were not kept, newest first."""

    turns: list[SkippedTurn]

    def __iter__(self) -> Iterator[SkippedTurn]:
        return iter(self.turns)

    def __len__(self) -> int:
        return len(self.turns)


class TierState(Struct, kw_only=True):
    """One tier: what it holds on disk, what of it is in RAM, its limit per namespace (0: none)."""

    name: Literal["L0", "hot", "L1", "L2", "documents"]
    count: int
    ram_bytes: int
    limit: int = 0
    oldest_at: float | None = None
    newest_at: float | None = None


class NamespaceTiers(Struct, kw_only=True):
    """How many a namespace has in each tier, and its account of turns: what came in and where it went."""

    namespace: str
    tiers: dict[str, int]
    flows: dict[str, int] = {}


class TierReport(Struct, kw_only=True):
    """All tiers within reach. `waiting` counts turns that are still to be rated, compared or condensed.

    `heard` counts those that wait for their conversation to rest or end, for its facts and its summary.
    """

    tiers: list[TierState]
    namespaces: list[NamespaceTiers]
    flows: dict[str, int]
    waiting: dict[str, int] = {}
    heard: dict[str, int] = {}
    nodes: int = 0


class Consolidated(Struct, kw_only=True):
    """What a consolidation did, or with `dry_run` would do. `undo` of `operation` takes the moves back."""

    dry_run: bool
    judged: int
    promoted: int
    dropped: int
    moved: int
    paired: int
    clustered: dict[str, int] = {}
    operation: int | None = None
    took_ms: float = 0.0


class Seeded(Struct, kw_only=True):
    """Outcome of a seed: turns taken into L0 and on, memories created or merged."""

    turns: int
    created: int
    merged: int
    skipped: int = 0
    redacted: Redacted = {}


class Observe(Scoped[Observed], kw_only=True, frozen=True):
    """Take note of turns of a conversation. Waits for no model; what is accepted is on disk when it returns.

    Turns that tell nothing (too short, stop words, printed errors and progress, repetitions) are skipped with the
    reason. The others enter L0, a ring per namespace; when they leave it the important ones become memories.
    """

    turns: TurnList
    session: str = ""
    allow_secrets: bool = False


class Turns(Scoped[ActiveTurns], kw_only=True, frozen=True):
    """List the turns in L0, newest first."""

    session: str | None = None
    limit: Limit = 100


class Skipped(Scoped[SkippedTurns], kw_only=True, frozen=True):
    """List turns that were not kept, newest first, each with the reason."""

    limit: Limit = 100
    offset: Annotated[int, Meta(ge=0, le=MAX_INTEGER)] = 0


class Tiers(Scoped[TierReport], kw_only=True, frozen=True):
    """Tell what each tier holds, and how many turns went which way."""


class Consolidate(Scoped[Consolidated], kw_only=True, frozen=True):
    """Judge, promote, move to the registry and cluster everything within reach now, whatever its age.

    Sends progress. With `dry_run` nothing is changed.
    """

    dry_run: bool = False


class Seed(Scoped[Seeded], kw_only=True, frozen=True):
    """Take in many turns or memories at once, without the gate. Sends progress; each portion is durable by itself."""

    turns: TurnList = []
    memories: Annotated[list[NewMemory], Meta(max_length=10_000)] = []
    session: str = ""
    allow_secrets: bool = False

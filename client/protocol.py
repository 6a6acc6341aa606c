"""The contract between clients and daemon: every call, its result, the envelope, the version.

A call is a value: one Struct per method. Its fields are the parameters, its tag the name on the wire, its docstring
the documentation for users, its type argument the result. Decoder, dispatch check, memctl and PROTOCOL.md come from
`METHODS`. Requests forbid unknown fields (a newer client's filter must not be ignored silently); results ignore them.
Times are UTC seconds since the epoch. Namespaces are written `acme/api/alpha`; the root is the empty string.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Generic, Literal, TypeVar, get_args

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

PROTOCOL_VERSION = 1
MAX_FRAME_BYTES = 16 * 1024 * 1024
MAX_CONTENT_BYTES = 1024 * 1024

Reach = Literal["visible", "subtree", "exact", "all"]
Tier = Literal["L0", "L1", "L2", "documents"]
Sort = Literal["created", "updated", "accessed", "count", "importance"]
Action = Literal["created", "updated", "deleted"]
Limit = Annotated[int, Meta(ge=1, le=1000)]
Fraction = Annotated[float, Meta(ge=0.0, le=1.0)]
Seconds = Annotated[float, Meta(ge=0.0, le=253402300799.0)]  # up to the year 9999
Metadata = dict[str, Any]
MAX_INTEGER = 2**63 - 1  # what SQLite can hold
Choice = Annotated[list[str], Meta(max_length=1000)]  # each value is a variable of a statement

R = TypeVar("R")


# Envelope ------------------------------------------------------------------------------------------------------------


class Request(Struct, array_like=True, frozen=True):
    """`[version, id, call]`: a request; the call is decoded once the version is known to fit."""

    version: int
    id: int
    call: msgspec.Raw


class Reply(Struct, array_like=True, frozen=True):
    """`[kind, id, …]`: 0 = result, 1 = error (code, message, data), 2 = progress event."""

    kind: int
    id: int
    body: msgspec.Raw  # result, error code or progress event
    message: str = ""
    data: dict[str, Any] = {}


RESULT, ERROR, PROGRESS = 0, 1, 2


class Progress(Struct, frozen=True):
    """How far a long call is: `done` of `total` units of `stage`."""

    stage: str
    done: int
    total: int


# Results -------------------------------------------------------------------------------------------------------------


class Memory(Struct, kw_only=True):
    """One remembered item."""

    id: str
    namespace: str
    type: str
    content: str
    summary: str = ""
    metadata: Metadata = {}
    importance: float = 0.5
    source: str = "manual"
    tier: Tier = "L1"
    created_at: float
    updated_at: float
    last_accessed_at: float | None = None
    access_count: int = 0
    expires_at: float | None = None
    pinned: bool = False
    superseded_by: str | None = None
    path: str | None = None
    start_line: int | None = None
    end_line: int | None = None
    contradicts: list[str] = []


class Hit(Memory, kw_only=True):
    """A memory found by a search: `score` 0..1 as ranked; `similarity` (cosine) and `bm25` where that arm found it."""

    score: float
    similarity: float | None = None
    bm25: float | None = None


class Hits(Struct, kw_only=True):
    """Results of a search, best first. `degraded` names what was left out (`vector`, `fulltext`)."""

    hits: list[Hit]
    degraded: list[str] = []
    trace: str = ""
    took_ms: float = 0.0

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, index: int) -> Hit:
        return self.hits[index]


class Page(Struct, kw_only=True):
    """Memories in the order asked for, and how many match in all."""

    memories: list[Memory]
    total: int

    def __iter__(self) -> Iterator[Memory]:
        return iter(self.memories)

    def __len__(self) -> int:
        return len(self.memories)

    def __getitem__(self, index: int) -> Memory:
        return self.memories[index]


class Added(Struct, kw_only=True):
    """Outcome of an add: durable and searchable. `embedded` is false while its vector waits in the queue."""

    id: str
    outcome: Literal["created", "merged"]
    embedded: bool
    similarity: float | None = None
    contradicts: list[str] = []
    operation: int


class AddedMany(Struct, kw_only=True):
    """Outcome of `add_many`: one `Added` per memory, in order. One call is one operation."""

    results: list[Added]
    created: int
    merged: int
    operations: list[int]

    def __iter__(self) -> Iterator[Added]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)


class Changed(Struct, kw_only=True):
    """A memory after its change, and the operation that `undo` takes back."""

    memory: Memory
    operation: int


class Deleted(Struct, kw_only=True):
    """Ids of the deleted memories, and the operation that `undo` takes back."""

    ids: list[str]
    operation: int


class Change(Struct, kw_only=True):
    """One entry of a memory's history: `changed` maps a field to its `[old, new]` values."""

    operation: int
    kind: str
    action: Action
    at: float
    changed: dict[str, tuple[Any, Any]] = {}


class Changes(Struct, kw_only=True):
    """The history of one memory, oldest first."""

    id: str
    changes: list[Change]

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)


class Operation(Struct, kw_only=True):
    """One entry of the operation log."""

    id: int
    kind: str
    at: float
    namespace: str
    memories: int
    undone_by: int | None = None


class OperationLog(Struct, kw_only=True):
    """Operations, newest first."""

    operations: list[Operation]

    def __iter__(self) -> Iterator[Operation]:
        return iter(self.operations)


class Undone(Struct, kw_only=True):
    """What an undo did; it is an operation itself, so undoing `operation` does the change again."""

    undone: int
    operation: int
    ids: list[str]


class StageTrace(Struct, kw_only=True):
    """One stage of a retrieval: its time, how many candidates entered and left, what it decided."""

    name: str
    took_ms: float
    entered: int
    left: int
    notes: dict[str, Any] = {}


class CandidateTrace(Struct, kw_only=True):
    """One candidate's way through the stages. `lost` is empty for a hit, else `stage: reason`."""

    id: str
    preview: str
    similarity: float | None = None
    bm25: float | None = None
    score: float | None = None
    lost: str = ""


class Trace(Struct, kw_only=True):
    """A kept retrieval: the query, its parameters, each stage and each candidate."""

    id: str
    query: str
    at: float
    namespace: str
    reach: Reach
    model: str | None
    stages: list[StageTrace]
    candidates: list[CandidateTrace]
    degraded: list[str] = []
    took_ms: float = 0.0


class Explanation(Struct, kw_only=True):
    """The hits of a search together with its whole trace."""

    hits: list[Hit]
    trace: Trace


class Why(Struct, kw_only=True):
    """Why a memory is or is not among the hits of a query: the stage that lost it and the reason."""

    id: str
    found: bool
    rank: int | None = None
    stage: str = ""
    reason: str = ""
    similarity: float | None = None
    similarity_rank: int | None = None
    bm25: float | None = None
    bm25_rank: int | None = None
    score: float | None = None
    last_hit_score: float | None = None


class ModelState(Struct, kw_only=True):
    """The embedder: `state` is missing, fetching, loading, ready or failed; `reembedding` while models are swapped."""

    name: str
    state: Literal["missing", "fetching", "loading", "ready", "failed"]
    dimensions: int | None = None
    error: str = ""
    attempts: int = 0
    reembedding: Progress | None = None


class Status(Struct, kw_only=True):
    """Health of the daemon."""

    version: str
    protocol: int
    pid: int
    uptime_s: float
    socket: str
    data_dir: str
    memories: int
    pending_embeddings: int
    model: ModelState
    degraded: list[str] = []
    connections: int = 0
    queued: dict[str, int] = {}
    rss_bytes: int = 0
    index_bytes: int = 0


class MethodStats(Struct, kw_only=True):
    """Calls of one method since start: count, errors, latency in the daemon (recent calls)."""

    calls: int
    errors: int
    p50_ms: float
    p95_ms: float
    p99_ms: float


class Stats(Struct, kw_only=True):
    """What is stored and how the daemon was used since it started."""

    memories: int
    by_namespace: dict[str, int]
    by_type: dict[str, int]
    by_source: dict[str, int]
    by_tier: dict[str, int]
    embedded: int
    pending_embeddings: int
    embedding_cache: int
    operations: int
    database_bytes: int
    oldest_at: float | None
    newest_at: float | None
    methods: dict[str, MethodStats] = {}


class Verification(Struct, kw_only=True):
    """Result of a check of the store: `problems` is empty when all is well."""

    memories: int
    pending_embeddings: int
    problems: list[str] = []
    repaired: list[str] = []


class Done(Struct, kw_only=True):
    """An order was accepted."""

    message: str = ""


# Calls ---------------------------------------------------------------------------------------------------------------


def _wire_name(class_name: str) -> str:
    return "".join("_" + c.lower() if c.isupper() else c for c in class_name).lstrip("_")


class Call(
    Struct,
    Generic[R],
    kw_only=True,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="method",
    tag=_wire_name,
):
    """A request for one method; `R` is its result."""


class Scoped(Call[R], kw_only=True, frozen=True):
    """A call on memories: `namespace` is the caller's place.

    `reach` says what it sees from there: `visible` (own and enclosing), `subtree` (own and inner), `exact`, `all`.
    Left out, it is `visible` for a named namespace and `all` for the root.
    """

    namespace: str = ""
    reach: Reach | None = None


class Filtered(Scoped[R], kw_only=True, frozen=True):
    """A scoped call with the filters that every search and list takes; all given filters must hold.

    A list filter holds when the value is one of the list. `metadata` compares top-level keys for equality (for a list
    value: contains). `after` and `before` are exclusive and compare `created_at`.
    """

    type: Choice = []
    source: Choice = []
    tier: Annotated[list[Tier], Meta(max_length=1000)] = []
    metadata: Metadata = {}
    after: Seconds | None = None
    before: Seconds | None = None
    path_prefix: str | None = None
    ids: list[str] = []


class NewMemory(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A memory to add. `supersedes` names one that it replaces in results; `id` and `created_at` serve imports.

    `neighbours` are the turns before and after it in a conversation: where they and the content are short, their words
    count lightly when the memory is searched.
    """

    content: str
    type: str = "fact"
    summary: str = ""
    metadata: Metadata = {}
    importance: Fraction = 0.5
    source: str = "manual"
    created_at: Seconds | None = None
    expires_at: Seconds | None = None
    pinned: bool = False
    supersedes: str | None = None
    id: str | None = None
    neighbours: list[str] = []


class Add(Scoped[Added], kw_only=True, frozen=True):
    """Remember one thing. Durable and searchable when it returns.

    Equal text, or a near-duplicate that does not disagree, is merged into the memory that is there (same namespace and
    type). `dedup_threshold` is the cosine above which texts are compared; left out, the model's own.
    """

    memory: NewMemory
    dedup: bool = True
    dedup_threshold: Fraction | None = None


class AddMany(Scoped[AddedMany], kw_only=True, frozen=True):
    """Remember many things in one transaction: all or nothing. Sends progress while it embeds."""

    memories: list[NewMemory]
    dedup: bool = True
    dedup_threshold: Fraction | None = None


class Get(Scoped[Memory], kw_only=True, frozen=True):
    """Read one memory by id or unique prefix of 4 or more digits."""

    id: str


class List(Filtered[Page], kw_only=True, frozen=True):
    """List memories by filter, newest first unless `sort` says otherwise. Superseded and expired ones on request."""

    sort: Sort = "created"
    ascending: bool = False
    limit: Limit = 20
    offset: Annotated[int, Meta(ge=0, le=MAX_INTEGER)] = 0
    all_states: bool = False


class Update(Scoped[Changed], kw_only=True, frozen=True):
    """Change the given fields of one memory. `metadata` is merged key by key (null removes a key) unless replaced."""

    id: str
    content: str | UnsetType = UNSET
    type: str | UnsetType = UNSET
    summary: str | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET
    replace_metadata: bool = False
    importance: Fraction | UnsetType = UNSET
    expires_at: Seconds | UnsetType | None = UNSET
    pinned: bool | UnsetType = UNSET


class Tag(Scoped[Changed], kw_only=True, frozen=True):
    """Add words to a memory's `tags` list and set metadata values."""

    id: str
    tags: list[str] = []
    values: Metadata = {}


class Delete(Scoped[Deleted], kw_only=True, frozen=True):
    """Delete memories by id or unique prefix: all or none. `undo` brings them back."""

    ids: list[str]


class History(Scoped[Changes], kw_only=True, frozen=True):
    """Every change of one memory, also of a deleted one."""

    id: str


class Operations(Scoped[OperationLog], kw_only=True, frozen=True):
    """The latest operations, newest first: what `undo` can take back."""

    limit: Limit = 20


class Undo(Scoped[Undone], kw_only=True, frozen=True):
    """Take back one operation as a whole; without a number the latest that was not undone yet."""

    operation: Annotated[int, Meta(ge=1, le=MAX_INTEGER)] | None = None


class Query(Filtered[R], kw_only=True, frozen=True):
    """The parameters that every kind of search takes.

    `fusion` is `weighted` (`vector_weight` x cosine + the rest x BM25 / best BM25) or `rrf` (k = 60). `min_score` cuts
    on the fused score, `min_similarity` on the cosine. The search stops at `deadline_ms` with the best finished answer.
    """

    query: str
    limit: Limit = 10
    deadline_ms: Annotated[int, Meta(ge=1)] | None = None
    fusion: Literal["weighted", "rrf"] | None = None
    vector_weight: Fraction | None = None
    min_score: Fraction = 0.0
    min_similarity: Annotated[float, Meta(ge=-1.0, le=1.0)] | None = None
    candidate_multiplier: Annotated[int, Meta(ge=1, le=100)] | None = None


class Search(Query[Hits], kw_only=True, frozen=True):
    """Find memories by meaning and by words, best first."""


class Explain(Query[Explanation], kw_only=True, frozen=True):
    """Run a search and return its whole trace with the hits."""


class WhyNot(Query[Why], kw_only=True, frozen=True):
    """Say why the memory `id` is or is not among the hits of a search, naming the stage that lost it."""

    id: str


class GetTrace(Scoped[Trace], kw_only=True, frozen=True):
    """Return the kept trace of an earlier search; without an id the latest one."""

    id: str | None = None


class GetStatus(Call[Status], kw_only=True, frozen=True, tag="status"):
    """Health of the daemon: model, queue of embeddings, connections, memory use."""


class GetStats(Scoped[Stats], kw_only=True, frozen=True, tag="stats"):
    """Counts of what is stored within reach, and how the daemon was used."""


class UseModel(Call[Done], kw_only=True, frozen=True):
    """Switch to another installed embedding model. Memories are re-embedded in the background, search goes on."""

    name: str


class Verify(Call[Verification], kw_only=True, frozen=True):
    """Check the database, the full-text index and the vectors; with `repair` rebuild what is derived."""

    repair: bool = False


class Shutdown(Call[Done], kw_only=True, frozen=True):
    """Finish the calls under way, write everything down and end the daemon."""


METHODS: tuple[type[Call[Any]], ...] = (
    Add,
    AddMany,
    Get,
    List,
    Update,
    Tag,
    Delete,
    History,
    Operations,
    Undo,
    Search,
    Explain,
    GetTrace,
    WhyNot,
    GetStatus,
    GetStats,
    UseModel,
    Verify,
    Shutdown,
)

# Calls that change nothing: a client may send them again after a broken connection.
READS: frozenset[type[Call[Any]]] = frozenset(
    {Get, List, History, Operations, Search, Explain, GetTrace, WhyNot, GetStatus, GetStats}
)

# Answered whatever version the request names, so that a newer memctl can tell an older daemon to end.
UNVERSIONED: frozenset[str] = frozenset({"status", "shutdown"})


def method_name(call: type[Call[Any]]) -> str:
    """Return the wire name of a call class."""
    return str(call.__struct_config__.tag)


def result_type(call: type[Call[R]]) -> type[R]:
    """Return the result class of a call class: the type argument of its base."""
    base = next(base for base in call.__orig_bases__ if get_args(base))  # type: ignore[attr-defined]
    result: type[R] = get_args(base)[0]
    return result

"""Memories: adding, reading, changing, deleting, their history and undo."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from memoryd.client.protocol.base import (
    MAX_INTEGER,
    Action,
    Filtered,
    Fraction,
    Limit,
    Line,
    Metadata,
    Redacted,
    Scoped,
    Seconds,
    Sort,
    Tier,
)


class Vote(Struct, kw_only=True):
    """What one caller (a token or a namespace) said of a memory; `cited` are its sessions that referred to it, as
    digests. `useful` is null for one that only cited it."""

    by: str
    useful: bool | None = None
    note: str = ""
    at: float
    cited: list[str] = []


class Usefulness(Struct, kw_only=True):
    """What feedback comes to: the `factor` of its score, how many callers said what, how often it was cited.

    `notes` are the latest reasons given; `get` alone shows them.
    """

    factor: float
    useful: int = 0
    useless: int = 0
    cited: int = 0
    notes: list[str] = []


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
    links: list[str] = []
    linked_from: list[str] = []
    usefulness: Usefulness | None = None


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
    redacted: Redacted = {}


class AddedMany(Struct, kw_only=True):
    """Outcome of `add_many`: one `Added` per memory, in order. One call is one operation."""

    results: list[Added]
    created: int
    merged: int
    operations: list[int]
    redacted: Redacted = {}

    def __iter__(self) -> Iterator[Added]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)


class Changed(Struct, kw_only=True):
    """A memory after its change, and the operation that `undo` takes back."""

    memory: Memory
    operation: int
    redacted: Redacted = {}


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


class NewMemory(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A memory to add. `supersedes` names one that it replaces in results; `id` and `created_at` serve imports.

    `neighbours` are the turns before and after it in a conversation: where they and the content are short, their words
    count lightly when the memory is searched. `path` and lines tell the file that it came from; where age counts, a
    file named YYYY-MM-DD.md is as old as its name says and any other does not age.
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
    path: str | None = None
    start_line: Line | None = None
    end_line: Line | None = None


class Add(Scoped[Added], kw_only=True, frozen=True):
    """Remember one thing. Durable and searchable when it returns.

    Equal text, or a near-duplicate that does not disagree, is merged into the memory that is there (same namespace and
    type). `dedup_threshold` is the cosine above which texts are compared; left out, the model's own. Likely credentials
    are taken out first, unless `allow_secrets`; `redacted` tells which.
    """

    memory: NewMemory
    dedup: bool = True
    dedup_threshold: Fraction | None = None
    allow_secrets: bool = False


class AddMany(Scoped[AddedMany], kw_only=True, frozen=True):
    """Remember many things in one transaction: all or nothing. Sends progress while it embeds."""

    memories: list[NewMemory]
    dedup: bool = True
    dedup_threshold: Fraction | None = None
    allow_secrets: bool = False


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
    allow_secrets: bool = False


class Tag(Scoped[Changed], kw_only=True, frozen=True):
    """Add words to a memory's `tags` list and set metadata values."""

    id: str
    tags: list[str] = []
    values: Metadata = {}
    allow_secrets: bool = False


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

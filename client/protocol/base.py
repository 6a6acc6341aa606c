"""What all calls share: version and limits, the envelope, the bases of calls, plain types."""

from collections.abc import Callable, Iterator
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar, get_args

import msgspec
from msgspec import Meta, Struct

PROTOCOL_VERSION = 1
MAX_FRAME_BYTES = 16 * 1024 * 1024
MAX_CONTENT_BYTES = 1024 * 1024
MAX_METADATA_BYTES = 64 * 1024
MAX_METADATA_DEPTH = 16
MAX_CONDITIONS = 64  # in one filter
MAX_QUEUED = 256  # calls that may wait for a thread; further ones are refused with `busy`

Reach = Literal["visible", "subtree", "exact", "all"]
Tier = Literal["L0", "L1", "L2", "documents", "waiting", "L3"]
TierName = Literal["L0", "hot", "L1", "L2", "documents", "waiting", "L3"]
MEMORY_TIERS: tuple[Tier, ...] = tuple(name for name in get_args(Tier) if name not in ("L0", "documents", "L3"))
MemoryOrigin = Literal["person", "agent", "heard", "file", "import"]
SAVED_FROM = "saved_from"  # metadata key: the agent's own project, if it saved the memory in another one
Sort = Literal["created", "updated", "accessed", "count", "importance"]
Action = Literal["created", "updated", "deleted"]
Limit = Annotated[int, Meta(ge=1, le=1000)]
Fraction = Annotated[float, Meta(ge=0.0, le=1.0)]
MAX_SECONDS = 253402300799.0  # up to the year 9999
Seconds = Annotated[float, Meta(ge=0.0, le=MAX_SECONDS)]
Metadata = dict[str, Any]
MAX_INTEGER = 2**63 - 1  # what SQLite can hold
LineNumber = Annotated[int, Meta(ge=1, le=MAX_INTEGER)]
Choice = Annotated[list[str], Meta(max_length=1000)]  # each value is a parameter of the SQL statement

Access = Literal["anyone", "within", "outward", "owner"]
LaneName = Literal["inline", "interactive", "bulk", "control"]

R = TypeVar("R")
T = TypeVar("T")


class Request(Struct, array_like=True, frozen=True):
    """`[version, id, call]`: a request; the call is decoded after the version was checked."""

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
    """How far a long call has got: `done` of `total` units of `stage`."""

    stage: str
    """what is being done"""
    done: int
    """units that are done"""
    total: int
    """units in all"""


class Iterated(Struct, Generic[T], kw_only=True):
    """A result; iterating over it goes through the first list among its fields."""

    def __iter__(self) -> Iterator[T]:
        return iter(self._find_items())

    def _find_items(self) -> list[T]:
        return next(value for value in msgspec.structs.astuple(self) if isinstance(value, list))


class Listed(Iterated[T], Generic[T], kw_only=True):
    """An iterated result with the length of its list, so that it is false when the list is empty."""

    def __len__(self) -> int:
        return len(self._find_items())


class Done(Struct, kw_only=True):
    """The call was accepted."""

    message: str = ""
    """what will happen"""


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


class Rpc(NamedTuple):
    """What a call declares beside its fields.

    `access`: who may call it. `anyone`: also a connection without a token where one is required. `within`: a caller
    with a token, in its own namespace or, if the call only reads, in an enclosing one. `outward`: the same, and an
    enclosing namespace is permitted too although the call adds memories. `owner`: the machine's user alone.
    `reads`: it changes nothing, so a client may send it again after a broken connection.
    `grows`: it adds to the database, even if only to the history, so it is refused at the size limit.
    `lane`: which thread runs its handler (see `daemon/server/lanes.py`).
    `page`: the page of `memctl web` may send it.
    `any_version`: it is answered whatever protocol version the request names.
    """

    access: Access
    reads: bool
    grows: bool
    lane: LaneName
    page: bool
    any_version: bool


DECLARED: "dict[type[Call[Any]], Rpc]" = {}
C = TypeVar("C", bound=Call[Any])


def rpc(
    access: Access,
    *,
    reads: bool = False,
    grows: bool = False,
    lane: LaneName = "interactive",
    page: bool,
    any_version: bool = False,
) -> Callable[[type[C]], type[C]]:
    """Declare a class as a method. Its tag is the name on the wire; the docstrings of class and fields document it."""

    def declare(call: type[C]) -> type[C]:
        DECLARED[call] = Rpc(access, reads, grows, lane, page, any_version)
        return call

    return declare


Redacted = dict[str, int]  # how many credentials and private passages of each kind were removed from a call's texts


class Scoped(Call[R], kw_only=True, frozen=True):
    """A call on memories: `namespace` is the caller's place.

    `reach` says which memories the call sees from there: `visible` (those of the namespace and of enclosing ones),
    `subtree` (those of the namespace and inside it), `exact`, `all`. Left out, it is `visible` for a named namespace
    and `all` for the root.
    """

    namespace: str = ""
    """the caller's place, written `acme/api/alpha`; the root is the empty text"""
    reach: Reach | None = None
    """which memories it sees from there; left out: `visible`, at the root `all`"""


class Filtered(Scoped[R], kw_only=True, frozen=True):
    """A scoped call with the filters that every search and list takes; all given filters must hold.

    A list filter holds when the value is in the list. `after` and `before` are exclusive and compare `created_at`.

    `where` has conditions on metadata and other fields, such as
    `{"score": {"$gte": 4}, "$or": [{"author.team": "api"}, {"memory.pinned": true}]}`. Each key is a path into the
    metadata, its parts joined by dots, or `memory.` and a field of the memory; a key that could be either begins with
    `metadata.` or `memory.`. What it is compared with is a value (which the field must equal, or contain if it is a
    list) or an object of operators that must all hold: `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`, `$in`, `$exists`.
    `$and` and `$or` take a list of such conditions, `$not` takes one. Numbers are compared with numbers, texts with
    texts; `$ne` also holds where there is no such key. An operator or field that does not exist is refused.
    """

    type: Choice = []
    """only memories of one of these types"""
    source: Choice = []
    """only memories from one of these sources"""
    tier: Annotated[list[Tier], Meta(max_length=1000)] = []
    """only memories in one of these tiers"""
    where: Metadata = {}
    """only memories that meet these conditions, at most 64 of them"""
    after: Seconds | None = None
    """only memories created after this time"""
    before: Seconds | None = None
    """only memories created before this time"""
    path_prefix: str | None = None
    """only memories from a file whose path begins with this"""

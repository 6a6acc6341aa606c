"""History: read how memories changed and what was done, take operations back."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from memoryd.client.protocol.base import MAX_INTEGER, Action, Choice, Iterated, Limit, Scoped, Seconds, rpc


class Change(Struct, kw_only=True):
    """What one operation did to one memory, or to a turn of L0: `changed` maps a field to its `[old, new]` values."""

    id: str = ""
    """id of the memory or turn"""
    namespace: str = ""
    """of an operation: where it is, or was"""
    preview: str = ""
    """of an operation: the beginning of its text"""
    operation: str
    """id of the operation"""
    kind: str
    """what was called: `add`, `update`, `delete`, `undo` …"""
    action: Action
    """what that did to this memory"""
    at: float
    """when"""
    changed: dict[str, tuple[Any, Any]] = {}
    """field → [old value, new value]"""
    token: str = ""
    """name of the token of whoever did it; empty: there was none"""
    session: str = ""
    """the session that its call named"""
    process: str = ""
    """the process that called, as `name (pid)`; empty: the daemon itself"""


class Operation(Struct, kw_only=True):
    """One entry of the operation log."""

    id: str
    """32 hex digits"""
    kind: str
    """what was called"""
    at: float
    """when"""
    namespace: str
    """where the memories are that it touched; if they are in several places, the caller's"""
    memories: int
    """how many it touched"""
    undone_by: str | None = None
    """id of the undo, null while it is in effect"""
    token: str = ""
    """name of the token of whoever did it; empty: there was none"""
    session: str = ""
    """the session that its call named"""
    process: str = ""
    """the process that called, as `name (pid)`; empty: the daemon itself"""


class OperationLog(Iterated[Operation], kw_only=True):
    """Operations, newest first."""

    operations: list[Operation]
    """newest first"""


class Changes(Iterated[Change], kw_only=True):
    """The history of one memory, or one operation with what it did, in order."""

    id: str = ""
    """id of the memory; empty: it is about an operation"""
    operation: Operation | None = None
    """the entry of the log, where an operation was asked for"""
    changes: list[Change]
    """oldest first; of an operation from `offset` on, at most `limit`: `operation.memories` counts all of them"""


class Undone(Struct, kw_only=True):
    """What an undo did; it is an operation itself, so undoing `operation` does the change again."""

    undone: str
    """id of the operation that was taken back"""
    operation: str
    """id of the undo itself"""
    ids: list[str]
    """the memories and turns it touched"""
    turns: int = 0
    """how many of them are turns of L0"""


@rpc("within", reads=True, page=True)
class History(Scoped[Changes], kw_only=True, frozen=True):
    """Return every change of one memory, also of a deleted one, or what one operation did to memories within reach."""

    id: str = ""
    """id or unique prefix, also of a deleted memory"""
    operation: str = ""
    """instead of a memory: an operation, by its id or a unique prefix of 4 or more digits"""
    limit: Limit = 100
    """of an operation: changes in the reply at most"""
    offset: Annotated[int, Meta(ge=0, le=MAX_INTEGER)] = 0
    """of an operation: how many of them to skip"""


@rpc("within", reads=True, page=True)
class Operations(Scoped[OperationLog], kw_only=True, frozen=True):
    """The latest operations, newest first: what `undo` can take back."""

    limit: Limit = 20
    """how many at most"""
    offset: Annotated[int, Meta(ge=0, le=MAX_INTEGER)] = 0
    """how many to skip"""
    after: Seconds | None = None
    """only those after this time"""
    before: Seconds | None = None
    """only those before this time"""
    kind: Choice = []
    """only those of one of these kinds"""


@rpc("within", page=True)
class Undo(Scoped[Undone], kw_only=True, frozen=True):
    """Take back one operation as a whole; without an id the latest that was done at the caller's place, whoever did it.

    With a token it is what was done with this token, and nothing else.

    That is one that was called in its namespace or inside it, or that changed only what is there, and was not undone
    yet; undos, erasures and runs of jobs are passed over. What changed namespaces inside it is passed over too, unless
    `reach` is `subtree`: with `reach` it is the latest that changed only what is within reach. Where several programs
    work in one namespace, give the id of the operation.
    """

    operation: str | None = None
    """its id or a unique prefix of 4 or more digits; left out: the latest that was done here"""

"""History: read how memories changed and which operations there were, and undo operations."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from memoryd.client.protocol.base import MAX_INTEGER, Action, Choice, Iterated, Limit, Scoped, Seconds, rpc


class Change(Struct, kw_only=True):
    """What one operation did to one memory, or to a turn of L0: `changed` maps a field to its `[old, new]` values."""

    id: str = ""
    """id of the memory or turn"""
    namespace: str = ""
    """where the memory is, or was; given for an operation's changes"""
    preview: str = ""
    """the beginning of its text; given for an operation's changes"""
    operation: str
    """id of the operation"""
    kind: str
    """the kind of the operation: `add`, `update`, `delete`, `undo` …"""
    action: Action
    """what it did to this memory"""
    at: float
    """when"""
    changed: dict[str, tuple[Any, Any]] = {}
    """field → [old value, new value]"""
    token: str = ""
    """name of the caller's token; empty: none"""
    session: str = ""
    """the session that the call named"""
    process: str = ""
    """the process that called, as `name (pid)`; empty: the daemon itself"""


class Operation(Struct, kw_only=True):
    """One entry of the operation log."""

    id: str
    """32 hex digits"""
    kind: str
    """its kind: `add`, `update`, `delete`, `undo` …"""
    at: float
    """when"""
    namespace: str
    """the innermost namespace that holds all memories that it changed"""
    memories: int
    """how many memories it changed"""
    undone_by: str | None = None
    """id of the undo; null while the operation is in effect"""
    token: str = ""
    """name of the caller's token; empty: none"""
    session: str = ""
    """the session that the call named"""
    process: str = ""
    """the process that called, as `name (pid)`; empty: the daemon itself"""


class OperationLog(Iterated[Operation], kw_only=True):
    """Operations, newest first."""

    operations: list[Operation]
    """newest first"""


class Changes(Iterated[Change], kw_only=True):
    """The history of one memory, or one operation with its changes, in order."""

    id: str = ""
    """id of the memory; empty: the changes are those of an operation"""
    operation: Operation | None = None
    """the operation, if one was asked for"""
    changes: list[Change]
    """oldest first; of an operation at most `limit` from `offset` on, of `operation.memories` in all"""


class Undone(Struct, kw_only=True):
    """The outcome of an undo, which is an operation itself: undoing `operation` makes the change again."""

    undone: str
    """id of the operation that was undone"""
    operation: str
    """id of the undo itself"""
    ids: list[str]
    """ids of the memories and turns that it changed"""
    turns: int = 0
    """how many of these are turns of L0"""


@rpc("within", reads=True, page=True)
class History(Scoped[Changes], kw_only=True, frozen=True):
    """Return every change of one memory, even a deleted one, or an operation's changes to memories within reach."""

    id: str = ""
    """id or unique prefix, also of a deleted memory"""
    operation: str = ""
    """instead of a memory: an operation, by its id or a unique prefix of 4 or more digits"""
    limit: Limit = 100
    """of an operation: the most changes in the reply"""
    offset: Annotated[int, Meta(ge=0, le=MAX_INTEGER)] = 0
    """of an operation: how many changes to skip"""


@rpc("within", reads=True, page=True)
class Operations(Scoped[OperationLog], kw_only=True, frozen=True):
    """List the latest operations, which `undo` can take back, newest first."""

    limit: Limit = 20
    """how many at most"""
    offset: Annotated[int, Meta(ge=0, le=MAX_INTEGER)] = 0
    """how many to skip"""
    after: Seconds | None = None
    """only operations after this time"""
    before: Seconds | None = None
    """only operations before this time"""
    kind: Choice = []
    """only operations of one of these kinds"""


@rpc("within", page=True)
class Undo(Scoped[Undone], kw_only=True, frozen=True):
    """Undo one operation as a whole; without an id the latest of the caller's namespace, whoever did it.

    The latest is one that was called in the namespace or inside it, or that changed only memories of the namespace, and
    that is not undone yet. With a token only operations of this token count, with `reach` only those that changed
    nothing out of reach. Undos, erasures and runs of jobs are passed over, and so are changes of inner namespaces,
    unless `reach` is `subtree`. Give the id of the operation if several programs work in one namespace.
    """

    operation: str | None = None
    """its id or a unique prefix of 4 or more digits; left out: the latest of the namespace"""

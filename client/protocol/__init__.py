"""The contract between clients and daemon: every call, its result, the envelope, the version.

A call is a value: one Struct per method. Its fields are the parameters, its tag the name on the wire, its docstring
the documentation for users, its type argument the result. Decoder, dispatch check, memctl and PROTOCOL.md come from
`METHODS`. Requests forbid unknown fields (a newer client's filter must not be ignored silently); results ignore them.
Times are UTC seconds since the epoch. Namespaces are written `acme/api/alpha`; the root is the empty string.
"""

from typing import Any, get_args

from memoryd.client.protocol.base import (
    ERROR,
    MAX_CONTENT_BYTES,
    MAX_FRAME_BYTES,
    MAX_INTEGER,
    PROGRESS,
    PROTOCOL_VERSION,
    RESULT,
    Action,
    Call,
    Choice,
    Done,
    Filtered,
    Fraction,
    Limit,
    Metadata,
    Progress,
    R,
    Reach,
    Reply,
    Request,
    Scoped,
    Seconds,
    Sort,
    Tier,
)
from memoryd.client.protocol.memories import (
    Add,
    Added,
    AddedMany,
    AddMany,
    Change,
    Changed,
    Changes,
    Delete,
    Deleted,
    Get,
    History,
    List,
    Memory,
    NewMemory,
    Operation,
    OperationLog,
    Operations,
    Page,
    Tag,
    Undo,
    Undone,
    Update,
)
from memoryd.client.protocol.search import (
    CandidateTrace,
    Explain,
    Explanation,
    GetTrace,
    Hit,
    Hits,
    Query,
    Search,
    StageTrace,
    Trace,
    Why,
    WhyNot,
)
from memoryd.client.protocol.service import (
    GetStats,
    GetStatus,
    MethodStats,
    ModelState,
    Shutdown,
    Stats,
    Status,
    UseModel,
    Verification,
    Verify,
)

__all__ = [
    "ERROR",
    "MAX_CONTENT_BYTES",
    "MAX_FRAME_BYTES",
    "MAX_INTEGER",
    "METHODS",
    "PROGRESS",
    "PROTOCOL_VERSION",
    "READS",
    "RESULT",
    "UNVERSIONED",
    "Action",
    "Add",
    "AddMany",
    "Added",
    "AddedMany",
    "Call",
    "CandidateTrace",
    "Change",
    "Changed",
    "Changes",
    "Choice",
    "Delete",
    "Deleted",
    "Done",
    "Explain",
    "Explanation",
    "Filtered",
    "Fraction",
    "Get",
    "GetStats",
    "GetStatus",
    "GetTrace",
    "History",
    "Hit",
    "Hits",
    "Limit",
    "List",
    "Memory",
    "Metadata",
    "MethodStats",
    "ModelState",
    "NewMemory",
    "Operation",
    "OperationLog",
    "Operations",
    "Page",
    "Progress",
    "Query",
    "R",
    "Reach",
    "Reply",
    "Request",
    "Scoped",
    "Search",
    "Seconds",
    "Shutdown",
    "Sort",
    "StageTrace",
    "Stats",
    "Status",
    "Tag",
    "Tier",
    "Trace",
    "Undo",
    "Undone",
    "Update",
    "UseModel",
    "Verification",
    "Verify",
    "Why",
    "WhyNot",
    "method_name",
    "result_type",
]

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

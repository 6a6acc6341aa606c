"""Events: follow what happens."""

from typing import Annotated, Literal, get_args

from msgspec import Meta, Struct

from memoryd.client.protocol.base import MAX_INTEGER, Scoped, rpc

EventKind = Literal[
    "created",
    "updated",
    "deleted",
    "moved",
    "promoted",
    "observed",
    "dropped",
    "indexed",
    "job",
    "warning",
    "notice",
    "started",
    "missed",
]
EVENT_KINDS: tuple[EventKind, ...] = get_args(EventKind)


class Event(Struct, kw_only=True):
    """Something that happened, reported once it is on disk.

    A memory was `created`, `updated`, `deleted` or `moved` (to another tier or namespace). A turn was `observed` (it
    entered L0), `promoted` (it became a memory) or `dropped` (it left L0 and was not kept). `indexed`: parts of a
    workspace's file were written to the index. `job`: a run of a background job ended. `warning` and `notice`: a
    message about the daemon itself. `started`: from here on no event is missing. `missed`: the subscriber read too
    slowly, `count` events are missing here.

    A transaction with very many changes is reported by counts alone: then `count` is above 1 and `id` is empty.
    """

    kind: EventKind
    """what happened"""
    at: float
    """when it happened; of a change, when it was on disk"""
    namespace: str = ""
    """namespace of the memory or turn"""
    id: str = ""
    """id of the memory or turn; empty for several"""
    type: str = ""
    """the memory's type, the turn's role, the outcome of a job's run or the level of a warning"""
    tier: str = ""
    """the tier of the memory or turn; of a deleted one, its last tier"""
    came_from: str = ""
    """the tier or namespace that it moved from"""
    by: str = ""
    """the cause: the kind of the operation as in the operation log, the job, or the part of the daemon"""
    operation: str | None = None
    """id of the operation, for `undo`"""
    text: str = ""
    """the beginning of the content, the path of an indexed file, or the message"""
    count: int = 1
    """how many memories, turns or parts of a file the event stands for, or how many events are missing"""


class Subscribed(Struct, kw_only=True):
    """The end of a subscription."""

    events: int
    """events that were sent"""
    missed: int
    """events that were left out because the subscriber read too slowly"""


@rpc("within", reads=True, lane="control", page=False)
class Subscribe(Scoped[Subscribed], kw_only=True, frozen=True):
    """Follow events of the memories within reach, from now on.

    Each reply of kind 2 has an `Event` instead of a `Progress`; the first is `started`. The subscription lasts until
    `limit` events were sent or the connection ends; use one connection per subscription. Events come in the order of
    their commits. For a slow reader a bounded number of events waits; the rest is left out and counted. A memory that
    moves out of reach is reported as `deleted`, one that comes within reach as `created`. Events of jobs, warnings and
    notices are sent to the owner alone, at reach `all` or if `kinds` names them.
    """

    kinds: Annotated[list[EventKind], Meta(max_length=len(EVENT_KINDS))] = []
    """only events of these kinds; empty: all"""
    limit: Annotated[int, Meta(ge=1, le=MAX_INTEGER)] | None = None
    """end after this many events; left out: never"""

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

    To a memory: `created`, `updated`, `deleted`, `moved` (to another tier or namespace). To a turn: `observed` (it
    entered L0), `promoted` (it became a memory), `dropped` (it left L0 and was not kept). `indexed`: parts of a file of
    a workspace were written to the index. `job`: a run of a background job ended. `warning` and `notice`: what the
    daemon has to say of itself. `started`: from here on nothing is left out. `missed`: the subscriber read too slowly,
    `count` events are left out here.

    Of one transaction with very many changes only counts are reported: then `count` is above 1 and `id` is empty.
    """

    kind: EventKind
    """what happened"""
    at: float
    """when it happened; of a change, when it was on disk"""
    namespace: str = ""
    """of the memory or turn"""
    id: str = ""
    """of the memory or turn; empty for several"""
    type: str = ""
    """of the memory; the role of a turn; how a run of a job ended; the level of a warning"""
    tier: str = ""
    """where the memory or turn is, or was before it was deleted"""
    came_from: str = ""
    """the tier, or else the namespace, that it was in before"""
    by: str = ""
    """the kind of the operation, as in the operation log; the job; the part of the daemon"""
    operation: str | None = None
    """its id, for `undo`"""
    text: str = ""
    """the beginning of the content; the path of an indexed file; what there is to say"""
    count: int = 1
    """how many memories, turns or parts of a file it represents, or events that were left out"""


class Subscribed(Struct, kw_only=True):
    """How a subscription ended: how many events were sent and how many left out."""

    events: int
    """how many were sent"""
    missed: int
    """how many were left out"""


@rpc("within", reads=True, lane="control", page=False)
class Subscribe(Scoped[Subscribed], kw_only=True, frozen=True):
    """Follow what happens to the memories within reach, from now on.

    Each reply of kind 2 carries an `Event` instead of a `Progress`; the first is `started`. It continues until `limit`
    events were sent or the connection ends; open one for each subscription. Events are in the order in which they got
    to disk. For a subscriber that reads slowly, a bounded number of events waits; the rest is left out and counted. A
    memory that moves out of reach is reported as `deleted`, one that comes within reach as `created`. Jobs, warnings
    and notices are the owner's, at reach `all` or where `kinds` names them.
    """

    kinds: Annotated[list[EventKind], Meta(max_length=len(EVENT_KINDS))] = []
    """only events of these kinds; empty: all"""
    limit: Annotated[int, Meta(ge=1, le=MAX_INTEGER)] | None = None
    """end after so many events; left out: never"""

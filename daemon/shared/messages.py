"""What a machine and a server say to one another: rows as the server has them, offers, and answers to them.

Ids and tags are uuids of 32 hexadecimal digits. A tag names one version of one memory; a number (`seq`) is its place in
the feed of a root; a life is a run of numbers of one timeline of the server.
"""

from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct


class RemoteMemory(Struct, kw_only=True):
    """A memory as the server has it."""

    id: str
    seq: int
    tag: str
    ns: str
    body: msgspec.Raw = msgspec.Raw(b"{}")
    deleted: bool = False
    purged: bool = False
    conflict_of: str | None = None
    device: str = ""
    author: str = ""


class Offer(Struct, kw_only=True):
    """A version that a machine offers in place of `base`; `offered` are those it offered since without an answer.

    `life` is given for what a server lost: the life in which the base had the number `seq`; up to `point` that timeline
    and the present one are one.
    """

    id: str
    base: str | None
    tag: str
    offered: list[str] = []
    ns: str
    key: str | None = None
    body: dict[str, Any] = {}
    deleted: bool = False
    purged: bool = False
    conflict_of: str | None = None
    life: str | None = None
    seq: int = 0
    point: int = 0


class Sibling(Struct, kw_only=True):
    """The memory that an offered version became beside the one that has its place."""

    id: str
    seq: int
    tag: str
    conflict_of: str | None = None


class OfferReply(Struct, kw_only=True):
    """The answer to an offer; `row` is what the server has instead, or the memory that has the key."""

    id: str
    said: Literal["taken", "kept", "conflict", "purged", "refused"]
    seq: int = 0
    base: str | None = None
    row: RemoteMemory | None = None
    sibling: Sibling | None = None
    reason: str = ""


class Head(NamedTuple):
    """How a root is on the server; `lives`, each with its first number, are for who did not know the present one."""

    seq: int
    life: str
    channel: str
    can_write: bool
    min_client: int
    lives: list[tuple[str, int]] | None


class Pulled(NamedTuple):
    """One part of the feed, and the head of the same moment."""

    head: Head
    rows: list[RemoteMemory]


class Offered(Struct, kw_only=True):
    """The head after an offer, and the answers in order: fewer than the offers where they would be too large.

    `parted`: the server does not have the state that the machine knows; then it looked at no offer.
    """

    seq: int
    life: str
    parted: bool = False
    answers: list[OfferReply] = []

"""The kernel's interface to shared roots on other machines.

The room `shared` implements it and registers its roots in `Remotes`. `memories` asks them for memories that are not
here, and the stage `remote` for candidates.
"""

import base64
import zlib
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec
import numpy as np

from memoryd.client.protocol import Add, Added, Candidates, CountedText, Memory, Scoped, Share, Shared
from memoryd.daemon.store.caller import Caller
from memoryd.daemon.store.conversion import convert_to
from memoryd.daemon.store.hashes import content_hash
from memoryd.daemon.store.namespaces import NamespaceTable
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import L3
from memoryd.daemon.store.vectors import Vector

R = TypeVar("R")

WAIT_S = 1.0  # for a search or a read without a deadline
CHANGE_S = 5.0  # for a change, which is answered once it is on the other machine's disk


class Remote(Protocol):
    """A place that holds the shared namespaces of one root."""

    name: str
    """of the root, which is the outermost of its namespaces"""

    def covers(self, call: Scoped[Any]) -> bool:
        """Return whether a call may reach something in the root."""

    def holds(self, namespace: str) -> bool:
        """Return whether a namespace is in the root."""

    def takes(self, call: Add) -> bool:
        """Return whether an add belongs to this root."""

    def ask(self, call: Scoped[R], caller: Caller, within_s: float) -> "Future[R]":
        """Send a call, narrowed to the root and, for a change, to what the caller may change.

        The future fails with `Unavailable` or `TimedOut` if there is no answer in time, else with the root's error.
        """

    def save(self, call: Add, caller: Caller) -> "Future[Added]":
        """Add a memory there, or queue it here while the machine cannot be reached; done when it is on a disk."""

    def share(self, call: Share, caller: Caller) -> "Future[Shared]":
        """Move local memories there: add them there, then erase them here; they may be queued like an add."""

    def list_told(self, call: Scoped[Any]) -> "Sequence[Told]":
        """Return the memories that a session may be shown, within reach of a call; from RAM, without waiting."""


class MeasuredText(NamedTuple):
    """The words of a text, all stems of it, and its vector by a model; None if there is no model."""

    words: CountedText
    model: str
    vector: Vector | None


class Told(NamedTuple):
    """A memory that a session may be shown; only the newest are measured, which may be shown beside a prompt."""

    memory: Memory
    text: MeasuredText | None


def pack_vector(vector: Vector) -> str:
    """Return a vector as other machines send it."""
    return base64.b64encode(vector.astype("<f2").tobytes()).decode()


def read_vector(packed: str) -> Vector:
    """Return the vector that another machine sent; raise `ValueError` if it is none."""
    vector = np.frombuffer(base64.b64decode(packed, validate=True), "<f2").astype(np.float32)
    if not np.isfinite(vector).all():
        raise ValueError("its vector is none")
    return vector


def build_row(memory: Memory, number: int, names: NamespaceTable) -> Row:
    """Return a memory of a root as a row, which is in no table."""
    place = names.find_number(memory.namespace)
    return convert_to(
        Row,
        memory,
        row=number,
        namespace=-1 - zlib.crc32(memory.namespace.encode()) if place is None else place,
        tier=L3,
        content_hash=content_hash(memory.content),
        text_hash=b"",
        metadata=msgspec.json.encode(memory.metadata).decode(),
        feedback="",
    )


class Remotes:
    """All shared roots of this daemon, kept as `core.state(Remotes)`."""

    def __init__(self) -> None:
        self.all: list[Remote] = []

    def find_covering(self, call: Scoped[Any]) -> list[Remote]:
        """Return the roots that a call may reach."""
        return [remote for remote in self.all if remote.covers(call)]

    def find_holding(self, namespace: str) -> Remote | None:
        """Return the root that contains a namespace, None if there is none."""
        return next((remote for remote in self.all if remote.holds(namespace)), None)

    def find_taking(self, call: Add) -> Remote | None:
        """Return the root that an add belongs to, None if it belongs here."""
        return next((remote for remote in self.all if remote.takes(call)), None)


class Asked(NamedTuple):
    """A root that was asked for candidates, and its pending answer."""

    remote: Remote
    answer: "Future[Candidates]"

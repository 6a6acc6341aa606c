"""The kernel's interface to shared roots on other machines.

The room `shared` implements it and registers its roots in `Remotes`. `memories` asks them for memories that are not
here, and the stage `remote` for hits.
"""

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol, TypeVar

from memoryd.client.protocol import Add, Added, Hits, Memory, Scoped, Share, Shared
from memoryd.daemon.store.caller import Caller

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

    def list_told(self, call: Scoped[Any]) -> Sequence[Memory]:
        """Return the memories that a session's start may show, within reach of a call; from RAM, without waiting."""


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
    """A root that was asked for hits, and its pending answer."""

    remote: Remote
    answer: "Future[Hits]"

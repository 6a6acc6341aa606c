"""Places on other machines that hold what is shared: the kernel's one interface to them.

A room makes them and puts them into `Remotes`. Memories asks them for what is not here, and the stage `remote` of a
search for hits.
"""

from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol, TypeVar

from memoryd.client.protocol import Add, Added, Hits, Scoped
from memoryd.daemon.store.caller import Caller

R = TypeVar("R")

WAIT_S = 1.0  # for a search or a read, where the call has no deadline
CHANGE_S = 5.0  # for a change: it is on the other disk then


class Remote(Protocol):
    """A place that holds the shared namespaces of one root."""

    name: str
    """of the root, which is the outermost of its namespaces"""

    def covers(self, call: Scoped[Any]) -> bool:
        """Return whether a call may reach something in the root."""

    def takes(self, call: Add) -> bool:
        """Return whether a save goes there by itself."""

    def ask(self, call: Scoped[R], caller: Caller, within_s: float) -> "Future[R]":
        """Send a call, narrowed to what it reaches in the root and, where it changes something, what its caller may.

        The future fails with `Unavailable` or `TimedOut` where there is no answer in time, else with the place's error.
        """

    def save(self, call: Add, caller: Caller) -> "Future[Added]":
        """Save there; while the place is away the save waits here. Done when it is on disk, there or here."""


class Remotes:
    """All places that this daemon knows; `core.state(Remotes)` has it."""

    def __init__(self) -> None:
        self.all: list[Remote] = []

    def find_covering(self, call: Scoped[Any]) -> list[Remote]:
        """Return the places that a call may reach."""
        return [remote for remote in self.all if remote.covers(call)]

    def find_taking(self, call: Add) -> Remote | None:
        """Return the place that a save goes to by itself, None for none."""
        return next((remote for remote in self.all if remote.takes(call)), None)


class Asked(NamedTuple):
    """A place that was asked for hits, and its answer to come."""

    remote: Remote
    answer: "Future[Hits]"

"""Who can be asked for memories that are not here: servers that hold more of a shared root than this machine does.

A search asks beside its own work and takes what is there by its deadline; what comes later is kept here for the next
one. Empty on a machine that holds all that it may see. Threads: any.
"""

import threading
from collections.abc import Collection
from concurrent.futures import Future
from typing import NamedTuple, Protocol

from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.vectors import Vector


class ServerQuestion(NamedTuple):
    """What a server is asked: what is nearest to a vector of a model, what has rare words, in which namespaces."""

    fingerprint: str
    vector: Vector
    namespaces: frozenset[int]
    wanted: int
    place: str  # the caller's namespace
    keep: bool  # what is of use is kept here
    words: tuple[str, ...] = ()


class ServerHit(NamedTuple):
    """A memory as a server has it, its cosine with the question, and which machine and role changed it last."""

    row: Row
    similarity: float | None
    origin: str


class PendingQuestion:
    """A question under way. The one who asked takes the answer or gives it up, whichever is first."""

    def __init__(self, question: ServerQuestion) -> None:
        self.question = question
        self.answer: Future[list[ServerHit]] = Future()
        self._lock = threading.Lock()
        self.is_late = False

    def give_up(self) -> bool:
        """Return whether the answer comes too late for the one who asked; else it is there."""
        with self._lock:
            self.is_late = not self.answer.done()
            return self.is_late

    def finish(self, found: list[ServerHit] | Exception) -> bool:
        """Give the answer; return whether that is too late."""
        with self._lock:
            if isinstance(found, Exception):
                self.answer.set_exception(found)
            else:
                self.answer.set_result(found)
            return self.is_late


class Asker(Protocol):
    """The way to one server."""

    def list_namespaces(self) -> frozenset[int]:
        """Return the namespaces of which the server has memories that are not here."""

    def ask(self, question: ServerQuestion) -> PendingQuestion:
        """Begin to ask."""

    def keep(self, place: str, ids: Collection[str]) -> None:
        """Keep memories here that an answer brought and a search returned."""


class Askers:
    """The servers that can be asked, by root."""

    def __init__(self) -> None:
        self.by_root: dict[str, Asker] = {}

    def list_all(self) -> list[Asker]:
        """Return all of them."""
        return list(self.by_root.values())

"""The author of an operation: set for the thread that runs a call, and by the writer for each of its jobs."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple


class Actor(NamedTuple):
    """The name of a caller's token, its session and its process; all are empty for the daemon's own work."""

    token: str = ""
    session: str = ""
    process: str = ""


PRESENT: ContextVar[Actor] = ContextVar("actor", default=Actor())  # noqa: B039 - it is immutable


@contextmanager
def act_as(actor: Actor) -> Iterator[None]:
    """Queue writes in the name of an actor."""
    before = PRESENT.set(actor)
    try:
        yield
    finally:
        PRESENT.reset(before)

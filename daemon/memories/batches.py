"""Split calls that store many memories into parts of one transaction each, so that other writes do not wait long."""

import logging
from collections.abc import Iterator, Sequence
from typing import TypeVar

from memoryd.client.errors import Internal, MemorydError
from memoryd.client.protocol import NewMemory, Record
from memoryd.client.transport.batches import split_batches

PART, PART_BYTES = 25, 128 * 1024  # memories of one part, and of their text
UNCOMPARED = 50  # memories in a part, if they are not compared with others

log = logging.getLogger(__name__)

M = TypeVar("M", NewMemory, Record)


def split(memories: Sequence[M], most: int = PART) -> Iterator[list[M]]:
    """Yield lists of at most `most` memories, which are written together."""
    return split_batches(memories, most, lambda one: len(one.content.encode()) + len(one.summary.encode()), PART_BYTES)


def cut_short(error: Exception, number: int, total: int, operation: str | None, what: str = "stored") -> Exception:
    """Return the error of a call that was partly done: it says how much, and that the call must not be repeated."""
    if not number or (isinstance(error, MemorydError) and what in error.data):  # its data say how much
        return error
    if not isinstance(error, MemorydError):
        log.error("a part of a call failed", exc_info=error)
        error = Internal(f"The daemon failed: {type(error).__name__}. Its log has the details.")
    data = {name: value for name, value in error.data.items() if name != "retry_after_ms"}
    rest = "traces of them may remain on disk" if number == total else "the rest is not"
    message = f"The first {number:,} of {total:,} are {what}, {rest}: {error.message}"
    return type(error)(message, {**data, what: number, "operations": [operation] if operation else []})

"""The parts of a call that stores many things: each is one transaction, so that no other write waits long for it."""

import logging
from collections.abc import Iterator, Sequence
from typing import TypeVar

from memoryd.client.errors import Internal, MemorydError
from memoryd.client.protocol import NewMemory, Record
from memoryd.client.transport.batches import split_batches

PART, PART_BYTES = 25, 128 * 1024  # memories of one part, and of their text
UNCOMPARED = 50  # memories of one part that are compared with no other

log = logging.getLogger(__name__)

M = TypeVar("M", NewMemory, Record)


def split(memories: Sequence[M], most: int = PART) -> Iterator[list[M]]:
    """Yield memories in lists of at most `most` that are written together."""
    return split_batches(memories, most, lambda one: len(one.content.encode()) + len(one.summary.encode()), PART_BYTES)


def cut_short(error: Exception, number: int, total: int, operations: Sequence[str], what: str = "stored") -> Exception:
    """Return the error of a call of which a part is done already: it says how much, and is not to be tried again."""
    if not number or (isinstance(error, MemorydError) and what in error.data):  # which says that nothing is left
        return error
    if not isinstance(error, MemorydError):
        log.error("a part of a call failed", exc_info=error)
        error = Internal(f"The daemon failed: {type(error).__name__}. Its log has the details.")
    data = {name: value for name, value in error.data.items() if name != "retry_after_ms"}
    rest = "traces of them may remain on disk" if number == total else "the rest is not"
    message = f"The first {number:,} of {total:,} are {what}, {rest}: {error.message}"
    return type(error)(message, {**data, what: number, "operations": list(operations)})

"""Splitting what is sent in many calls: each takes as much as one frame holds."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

BATCH_BYTES = 8 * 1024 * 1024  # of one call: well below the limit of a frame


def batches(
    items: Iterable[T], most: int | None = None, sent: Callable[[T], Any] = lambda item: item
) -> Iterator[list[T]]:
    """Yield items in lists of at most `most` that fit into a frame; `sent` gives what of an item is sent."""
    batch: list[T] = []
    size = 0
    for item in items:
        weight = len(msgspec.msgpack.encode(sent(item)))
        if batch and (len(batch) == most or size + weight > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += weight
    if batch:
        yield batch

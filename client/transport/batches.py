"""Split items that are too many for one call, or one transaction, and join the results of several calls."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from memoryd.client.errors import MemorydError
from memoryd.client.protocol import AddedMany, Redacted

T = TypeVar("T")

BATCH_BYTES = 8 * 1024 * 1024  # the most bytes per call; well below the limit of a frame


def count_bytes(item: Any) -> int:
    """Return the size of an item in a frame."""
    return len(msgspec.msgpack.encode(item))


def split_batches(
    items: Iterable[T], most: int | None = None, size_of: Callable[[T], int] = count_bytes, max_bytes: int | None = None
) -> Iterator[list[T]]:
    """Yield items in lists, limited by number and by bytes in a frame; a single item may be larger."""
    batch: list[T] = []
    size = 0
    for item in items:
        weight = size_of(item)
        if batch and (len(batch) == most or size + weight > (max_bytes or BATCH_BYTES)):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += weight
    if batch:
        yield batch


def split_evenly(items: Sequence[T], most: int) -> Iterator[list[T]]:
    """Yield items in lists of `most`; the last one may be shorter."""
    return (list(items[start : start + most]) for start in range(0, len(items), most))


def join_added(parts: Sequence[AddedMany]) -> AddedMany:
    """Join the results of several `add_many` calls."""
    return AddedMany(
        results=[result for part in parts for result in part.results],
        created=sum(part.created for part in parts),
        merged=sum(part.merged for part in parts),
        operations=[operation for part in parts for operation in part.operations],
        redacted=sum_kinds(part.redacted for part in parts),
    )


def extend_error(error: MemorydError, parts: Sequence[AddedMany]) -> MemorydError:
    """Add to the error of one of several calls what this call and those before it have stored."""
    if not parts:
        return error
    before = join_added(parts)
    operations = [*before.operations, *error.data.get("operations", ())]
    stored = len(before) + int(error.data.get("stored", 0))
    message = f"The first {len(before):,} memories are stored by calls before this one. {error.message}"
    data = {name: value for name, value in error.data.items() if name != "retry_after_ms"}
    return type(error)(message, {**data, "stored": stored, "operations": operations})


def sum_kinds(parts: Iterable[Redacted]) -> Redacted:
    """Return the total number of removed credentials by kind."""
    total: Redacted = {}
    for part in parts:
        for kind, number in part.items():
            total[kind] = total.get(kind, 0) + number
    return total

"""Replies within the limit of a frame: the longest texts of one that is too large come shortened, with a mark.

The other texts stay whole: the limit for one text is the highest with which all of them fit. No I/O here.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from memoryd.client.errors import Invalid

FIT_BYTES = 4 * 1024 * 1024  # what a reply that was too large is shortened to
_SHORTEST = 256  # bytes that each text keeps in any case
_MARK = " … [shortened, {:,} bytes in all; `get` returns the whole]"


def shorten(result: Any, count_bytes: int) -> Any:
    """Return a result as plain values with its longest texts cut, `content_bytes` beside a `content` that was.

    Raise `Invalid` where that is not enough: it holds too many parts.
    """
    plain = msgspec.to_builtins(result, builtin_types=(bytes,))
    sizes = sorted(len(text.encode("utf-8", "surrogatepass")) for text in _find_texts(plain))
    limit = _limit(sizes, FIT_BYTES - (count_bytes - sum(sizes)))
    if limit < _SHORTEST:
        raise Invalid(f"The reply would have {count_bytes:,} bytes in too many parts; ask for fewer with `limit`.")
    return _cut(plain, limit)


def _find_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _find_texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _find_texts(inner)


def _limit(sizes: list[int], room: int) -> int:
    """Return the bytes that each text may have so that all of them, given by rising size, fit into the room."""
    for place, size in enumerate(sizes):
        share = room // (len(sizes) - place)
        if size > share:
            return share
        room -= size
    return max(sizes, default=0)


def _cut(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        return _shorten(value, limit)
    if isinstance(value, list | tuple):
        return [_cut(inner, limit) for inner in value]
    if not isinstance(value, dict):
        return value
    cut = {key: _cut(inner, limit) for key, inner in value.items()}
    if "content_bytes" in value and cut["content"] != value["content"]:
        cut["content_bytes"] = len(value["content"].encode("utf-8", "surrogatepass"))
    return cut


def _shorten(text: str, limit: int) -> str:
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= limit:
        return text
    mark = _MARK.format(len(data))
    return data[: max(0, limit - len(mark.encode()))].decode("utf-8", "ignore") + mark

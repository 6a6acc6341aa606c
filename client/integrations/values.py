"""Escape values of frameworks for the daemon, which refuses NUL and lone surrogates, and restore them exactly.

In a text each such character is replaced by a mark and four hex digits, as is the mark itself, a Unicode noncharacter.
Searched texts have a space or a replacement character instead, and at most 1 MiB.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from memoryd.client.protocol import MAX_CONTENT_BYTES, MAX_INTEGER

_MARK = "\ufdd0"
_FOREIGN = re.compile(r"[\x00\ud800-\udfff\ufdd0]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff\ufdd0]")
_ESCAPED = re.compile(r"\ufdd0([0-9a-f]{4})")


def escape(text: str, foreign: re.Pattern[str] = _FOREIGN) -> str:
    """Escape characters that the daemon refuses; `restore` returns the original text."""
    return foreign.sub(lambda match: f"{_MARK}{ord(match[0]):04x}", text)


def escape_name(text: str) -> str:
    """Escape a text as a name, which has no control characters either; `restore` returns the original text."""
    return escape(text, _CONTROL)


def restore(text: str) -> str:
    """Reverse `escape` or `escape_name`."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text) if _MARK in text else text


def encode(value: Any) -> Any:
    """Escape each text and key of a JSON value; raise `ValueError` for a value that could not be restored exactly."""
    try:
        return _replace(value, escape)
    except RecursionError:
        raise ValueError("The value is nested too deep.") from None


def decode(value: Any) -> Any:
    """Reverse `encode`."""
    return _replace(value, restore)


def _replace(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(_check_key(key)): _replace(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replace(item, change) for item in value]
    if value is not None and not isinstance(value, bool | int | float):
        raise ValueError(f"JSON has no {type(value).__name__}.")
    if isinstance(value, int) and not -(2**63) <= value <= MAX_INTEGER:
        raise ValueError(f"An integer of {value.bit_length()} bits has more than 64.")
    return value


def _check_key(key: Any) -> str:
    if not isinstance(key, str):
        raise ValueError(f"The key {key!r} is not text.")
    return key


def build_content(text: str) -> str:
    """Return the beginning of a text, cleaned, as the content of a memory."""
    clean = text.replace("\0", " ").encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
    return clean[:MAX_CONTENT_BYTES].decode(errors="ignore")

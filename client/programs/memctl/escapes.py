"""Lone surrogates in JSON: hosts in JavaScript write one if they cut a text in the middle of an emoji.

A strict reader rejects such an escape (`\\ud83d`). Here it is replaced with the replacement character, so that the rest
can be read.
"""

from typing import TypeVar

import msgspec

from memoryd.client.patterns import compile_late

T = TypeVar("T")

_ESCAPE = compile_late(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)


def decode_json(data: bytes | msgspec.Raw, kind: type[T]) -> T:
    """Decode JSON with replacement characters for lone surrogates; raise the errors of msgspec."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError:
        whole = replace_lone_surrogates(bytes(data).decode("latin-1")).encode("latin-1")
        return msgspec.json.decode(whole, type=kind)


def replace_lone_surrogates(text: str) -> str:
    """Return JSON with replacement characters instead of escaped lone surrogates."""
    return _ESCAPE.sub(lambda match: r"\ufffd" if match[1] else match[0], text) if r"\u" in text else text

"""Half an emoji in JSON: hosts in JavaScript that cut a text within a pair write a surrogate without its other half.

No strict reader takes such an escape (`\\ud83d`). It becomes the replacement character, so that the rest arrives.
"""

from typing import TypeVar

import msgspec

from memoryd.client.patterns import compile_late

T = TypeVar("T")

_ESCAPE = compile_late(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)


def decode_json(data: bytes | msgspec.Raw, kind: type[T]) -> T:
    """Return what JSON holds, with replacement characters for surrogates that are no pair; raise what msgspec does."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError:
        whole = replace_lone_surrogates(bytes(data).decode("latin-1")).encode("latin-1")
        return msgspec.json.decode(whole, type=kind)


def replace_lone_surrogates(text: str) -> str:
    """Return JSON without escapes of surrogates that are no pair."""
    return _ESCAPE.sub(lambda match: r"\ufffd" if match[1] else match[0], text) if r"\u" in text else text

"""Remove passages between `<private>` and `</private>` from texts before they are stored.

Marks in a code span or in a closed fenced block of code have no effect. A passage without an end mark reaches to the
end of the text. Pure functions that use only the standard library.
"""

import re
from collections import Counter
from typing import Any

from memoryd.client.patterns import compile_late

KIND = "private passage"
WHOLE = "<private></private>"  # replaces a text of which no letter or digit is left

_MARK = compile_late(r"<(?P<end>/?)private[ \t]*>", re.IGNORECASE)
_TOKEN = compile_late(
    r"^[ \t]*+(?P<fence>`{3,}+(?=[^`\n]*+$)|~{3,}+)|(?P<ticks>`++)|<(?P<end>/?)private[ \t]*>",
    re.IGNORECASE | re.MULTILINE,
)


def cut_private(text: str, kinds: Counter[str] | None = None) -> str:
    """Return a text without its private passages, and count these; the same object if it has none."""
    if "<private" not in text.lower():
        return text
    passages = _find_passages(text)
    if not passages:
        return text
    if kinds is not None:
        kinds[KIND] += len(passages)
    starts, ends = [start for start, _ in passages], [end for _, end in passages]
    rest = "".join(text[start:end] for start, end in zip([0, *ends], [*starts, len(text)], strict=True))
    return rest if any(character.isalnum() for character in rest) else WHOLE


def cut_private_tree(value: Any, kinds: Counter[str]) -> Any:
    """Return a JSON value without the private passages in its texts."""
    if isinstance(value, str):
        return cut_private(value, kinds)
    if isinstance(value, dict):
        return {name: cut_private_tree(item, kinds) for name, item in value.items()}
    return [cut_private_tree(item, kinds) for item in value] if isinstance(value, list) else value


def _find_passages(text: str) -> list[tuple[int, int]]:
    """Return the ranges of the private passages in a text, in order."""
    found: list[tuple[int, int]] = []
    unclosed: set[tuple[str, int]] = set()  # ticks and fences that are not closed before a place
    at = 0
    while token := _TOKEN.search(text, at):
        at = token.end()
        if token["fence"] or token["ticks"]:
            at = _skip_code(text, token, unclosed)
        elif not token["end"]:
            at = _find_end(text, at)
            found.append((token.start(), at))
    return found


def _skip_code(text: str, token: re.Match[str], unclosed: set[tuple[str, int]]) -> int:
    """Return the end of the code that a fence or a run of backticks opens; if it is not closed, the mark's end."""
    if fence := token["fence"]:
        run, until = fence, len(text)
        closing = rf"(?m:^[ \t]*+{fence[0]}{{{len(fence)},}}+[ \t]*+$)"
    else:
        run, line_end = token["ticks"], text.find("\n", token.end())
        until = len(text) if line_end < 0 else line_end
        closing = rf"(?<!`){run}(?!`)"
    if (run, until) in unclosed:
        return token.end()
    closed = re.compile(closing).search(text, token.end(), until)
    if closed is None:
        unclosed.add((run, until))
    return closed.end() if closed else token.end()


def _find_end(text: str, at: int) -> int:
    """Return the end of a private passage that is open at `at`."""
    depth = 1
    for mark in _MARK.finditer(text, at):
        depth += -1 if mark["end"] else 1
        if depth == 0:
            return mark.end()
    return len(text)

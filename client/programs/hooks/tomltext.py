"""Add and remove a block of lines between two marks at the end of a TOML file.

No other byte of the file changes. The result is parsed, and must have the values of the file and of the block.
"""

import tomllib
from typing import Any

BEGIN = "# >>> memoryd >>> (memctl hooks uninstall codex takes this out)"
END = "# <<< memoryd <<<"


class NotToml(Exception):
    """The text is not TOML, or the block does not fit into it; the message gives the reason, without a full stop."""


def parse(text: str) -> dict[str, Any]:
    """Decode a text."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise NotToml(str(error)) from None


def add_block(text: str, block: str) -> str:
    """Return the text with the block instead of any earlier one; raise `NotToml` if that changes other values."""
    before = remove_block(text)
    parse(before)
    gap = "\n" if before else ""
    made = f"{before}{gap}{BEGIN}\n{block}{END}\n"
    if repr(parse(made)) != repr(_merge(parse(before), parse(block))):  # compared by repr, since nan != nan
        raise NotToml("it has something of the same name")
    return made


def remove_block(text: str) -> str:
    """Return the text without our block and the line break that was added before it."""
    found = _find_block(text)
    if found is None:
        return text
    head, tail = text[: found[0]], text[found[1] :]
    gap = "\n" if head and tail and not head.endswith("\n") else ""
    return f"{head}{gap}{tail}"


def _find_block(text: str) -> tuple[int, int] | None:
    """Return the range of our block, including the line break before it; None if one of its marks is missing."""
    begin, at = None, 0
    for line in text.split("\n"):
        said = line.rstrip()
        if said == BEGIN:
            begin = at
        elif said == END and begin is not None:
            head = text[:begin].removesuffix("\n").removesuffix("\r")
            return len(head), min(at + len(line) + 1, len(text))
        at += len(line) + 1
    return None


def _merge(whole: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """Return a table merged with `part`; raise `NotToml` if a key of both is not a table."""
    merged = dict(whole)
    for key, value in part.items():
        there = merged.get(key, {})
        if not isinstance(there, dict):
            raise NotToml(f"{key} is no table")
        merged[key] = _merge(there, value) if isinstance(value, dict) else value
    return merged

"""A block of lines of our own in a TOML file: put at its end between two marks, and taken out by them.

The rest of the file stays as it is, to the byte. What comes out is parsed, and must say what the file said and what the
block says.
"""

import tomllib
from typing import Any

BEGIN = "# >>> memoryd >>> (memctl hooks uninstall codex takes this out)"
END = "# <<< memoryd <<<"


class NotToml(Exception):
    """The text is no TOML, or the block does not fit into it; the message says why, without a full stop."""


def parse(text: str) -> dict[str, Any]:
    """Return what a text says."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise NotToml(str(error)) from None


def add_block(text: str, block: str) -> str:
    """Return the text with the block as its only one of ours; raise `NotToml` where that changes what the rest says."""
    before = remove_block(text)
    parse(before)
    gap = "\n" if before else ""
    made = f"{before}{gap}{BEGIN}\n{block}{END}\n"
    if repr(parse(made)) != repr(_merge(parse(before), parse(block))):  # as text, since nan is not equal to itself
        raise NotToml("it has something of the same name")
    return made


def remove_block(text: str) -> str:
    """Return the text without our block and the line end that was put before it."""
    found = _find_block(text)
    if found is None:
        return text
    head, tail = text[: found[0]], text[found[1] :]
    gap = "\n" if head and tail and not head.endswith("\n") else ""
    return f"{head}{gap}{tail}"


def _find_block(text: str) -> tuple[int, int] | None:
    """Return where our block begins, with the line end before it, and ends; None where one of its marks is missing."""
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
    """Return what a table says and what a part is to add to it; `NotToml` where the part finds no table to be in."""
    merged = dict(whole)
    for key, value in part.items():
        there = merged.get(key, {})
        if not isinstance(there, dict):
            raise NotToml(f"{key} is no table")
        merged[key] = _merge(there, value) if isinstance(value, dict) else value
    return merged

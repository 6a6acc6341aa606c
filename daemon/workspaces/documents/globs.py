"""The patterns of a workspace: which files they name, and which folders can hold such files.

Paths are relative to the root. `*`, `?` and `[…]` stay within a name, `**` represents any number of folders. Names that
begin with a dot are matched only by a pattern that spells the dot, as in a shell.
"""

import re
from collections.abc import Iterable, Sequence
from fnmatch import translate
from functools import cache

from memoryd.client.errors import Invalid

ANY = "**"

GlobParts = tuple[str, ...]  # a pattern, or what is left of one below a folder


def check_globs(globs: Sequence[str]) -> list[GlobParts]:
    """Return the parts of each pattern; raise `Invalid` for one that names nothing below the root."""
    if not globs:
        raise Invalid("A workspace needs at least one pattern, such as memory/**/*.md.")
    return [_split_parts(pattern) for pattern in globs]


def _split_parts(pattern: str) -> GlobParts:
    if not pattern.strip() or "\0" in pattern:
        raise Invalid(f"The pattern {pattern!r} is empty or has a NUL byte.")
    if pattern.startswith(("/", "~")):
        raise Invalid(f"The pattern {pattern!r} is absolute; write it relative to the workspace, such as docs/**/*.md.")
    if pattern.endswith("/"):
        raise Invalid(f"The pattern {pattern!r} names a folder; write {pattern}**/*.md for the files in it.")
    parts = tuple(part for part in pattern.split("/") if part not in ("", "."))
    if ".." in parts:
        raise Invalid(f"The pattern {pattern!r} leaves the workspace; add the other folder as a workspace of its own.")
    return parts


class Level:
    """What the patterns look for in one folder."""

    def __init__(self, patterns: Iterable[GlobParts]) -> None:
        self._left = _add_without_folder(patterns)
        names = {_translate(parts[0]) for parts in self._left if len(parts) == 1}
        self._files = re.compile("|".join(sorted(names)) or r"(?!)")

    def names(self, file: str) -> bool:
        """Return whether a file of this folder is meant."""
        return self._files.match(file) is not None

    def descend(self, folder: str) -> "Level | None":
        """Return what to look for in a folder of this one; None when nothing in it can be meant."""
        inner = {parts for parts in self._left if parts[0] == ANY and _matches(ANY, folder)}
        inner |= {parts[1:] for parts in self._left if len(parts) > 1 and _matches(parts[0], folder)}
        return level(frozenset(inner)) if inner else None


@cache
def level(patterns: frozenset[GlobParts]) -> Level:
    """Return the level of these patterns; most folders of a workspace share a few."""
    return Level(patterns)


def _add_without_folder(patterns: Iterable[GlobParts]) -> set[GlobParts]:
    """Return patterns, and beside each that begins with `**` what it means with no folder for it."""
    complete = set(patterns)
    for parts in list(complete):
        while len(parts) > 1 and parts[0] == ANY:
            parts = parts[1:]
            complete.add(parts)
    return complete


@cache
def _translate(part: str) -> str:
    return translate(part) if part.startswith(".") else rf"(?!\.){translate(part)}"


@cache
def _matches(part: str, name: str) -> bool:
    return re.match(_translate(part), name) is not None

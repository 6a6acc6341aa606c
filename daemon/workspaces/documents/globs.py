"""The patterns of a workspace: which files they name, and which folders can hold such files.

Paths are relative to the root. `*`, `?` and `[…]` stay within a name, `**` represents any number of folders. Names that
begin with a dot are matched only by a pattern that spells the dot, as in a shell.
"""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from memoryd.client.errors import Invalid
from memoryd.daemon.workspaces.documents.ignore import is_match, parse_pattern

if TYPE_CHECKING:
    from pathspec import RegexPattern

ANY = "**"


class Globs:
    """The patterns of a workspace; raise `Invalid` for one that names nothing below the root."""

    def __init__(self, patterns: Sequence[str]) -> None:
        if not patterns:
            raise Invalid("A workspace needs at least one pattern, such as memory/**/*.md.")
        self._patterns = [_parse(pattern) for pattern in patterns]

    def match(self, path: str) -> bool:
        """Return whether a file is meant."""
        names = path.split("/")
        return any(is_match(compiled, path) and _spells_dots(parts, names) for parts, compiled in self._patterns)

    def lead_into(self, folder: str) -> bool:
        """Return whether files in a folder, or below it, can be meant."""
        names = folder.split("/")
        return any(_is_beginning(names, parts) and _spells_dots(parts, names) for parts, _ in self._patterns)


def _parse(pattern: str) -> "tuple[list[str], RegexPattern]":
    """Return the parts of a pattern, and what matches paths."""
    if not pattern.strip() or "\0" in pattern:
        raise Invalid(f"The pattern {pattern!r} is empty or has a NUL byte.")
    if pattern.startswith(("/", "~")):
        raise Invalid(f"The pattern {pattern!r} is absolute; write it relative to the workspace, such as docs/**/*.md.")
    if pattern.endswith("/"):
        raise Invalid(f"The pattern {pattern!r} names a folder; write {pattern}**/*.md for the files in it.")
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise Invalid(f"The pattern {pattern!r} leaves the workspace; add the other folder as a workspace of its own.")
    compiled = parse_pattern(f"/{'/'.join(parts)}")
    if compiled is None:
        raise Invalid(f"The pattern {pattern!r} is not one that git would understand in a .gitignore.")
    return parts, compiled


def _is_beginning(names: Sequence[str], parts: Sequence[str]) -> bool:
    """Return whether folders lead to what a pattern names."""
    for name, part in zip(names, parts, strict=False):
        if part == ANY:
            return True
        if not fnmatchcase(name, part):
            return False
    return len(names) < len(parts)


def _spells_dots(parts: Sequence[str], names: Sequence[str]) -> bool:
    """Return whether a pattern spells the dot of each name that begins with one."""
    hidden = [name for name in names if name.startswith(".")]
    spelt = [part for part in parts if part.startswith(".")]
    return all(any(fnmatchcase(name, part) for part in spelt) for name in hidden)

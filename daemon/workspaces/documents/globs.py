"""The patterns of a workspace: which files they match, and which folders can contain such files.

Paths are relative to the root. `*`, `?` and `[…]` match within a name, `**` matches any number of folders. As in a
shell, names that begin with a dot are matched only by a pattern that contains the dot.
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
    """The patterns of a workspace; raise `Invalid` for a pattern that cannot match below the root."""

    def __init__(self, patterns: Sequence[str]) -> None:
        if not patterns:
            raise Invalid("A workspace needs at least one pattern, such as memory/**/*.md.")
        self._patterns = [_parse(pattern) for pattern in patterns]

    def match(self, path: str) -> bool:
        """Return whether a pattern matches a file."""
        names = path.split("/")
        return any(is_match(compiled, path) and _spells_dots(parts, names) for parts, compiled in self._patterns)

    def lead_into(self, folder: str) -> bool:
        """Return whether a pattern can match files in a folder or below it."""
        names = folder.split("/")
        return any(_is_beginning(names, parts) and _spells_dots(parts, names) for parts, _ in self._patterns)


def _parse(pattern: str) -> "tuple[list[str], RegexPattern]":
    """Return the parts of a pattern, and an object that matches paths."""
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
        raise Invalid(f"The pattern {pattern!r} is not valid in a .gitignore file.")
    return parts, compiled


def _is_beginning(names: Sequence[str], parts: Sequence[str]) -> bool:
    """Return whether the pattern can match files below these folders."""
    for name, part in zip(names, parts, strict=False):
        if part == ANY:
            return True
        if not fnmatchcase(name, part):
            return False
    return len(names) < len(parts)


def _spells_dots(parts: Sequence[str], names: Sequence[str]) -> bool:
    """Return whether a pattern contains the dot of each name that begins with a dot."""
    hidden = [name for name in names if name.startswith(".")]
    spelt = [part for part in parts if part.startswith(".")]
    return all(any(fnmatchcase(name, part) for part in spelt) for name in hidden)

"""What .gitignore files leave out, as git reads them: the nearest file decides, in it the last pattern that matches."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathspec import RegexPattern

NAME = ".gitignore"
MAX_BYTES = 1024 * 1024

_FOLDER_MARK = "ps_d"  # the group by which pathspec shows that a pattern matched a folder above


class IgnoreRules(NamedTuple):
    """The patterns of one .gitignore, the last one first."""

    below: str  # the folder that it is in, relative to the root, with a `/` at its end
    above: str  # or, when that encloses the root: the root's path in it
    patterns: "list[RegexPattern]"


def is_ignored(path: str, chain: Sequence[IgnoreRules]) -> bool:
    """Return whether a path relative to the root, a folder's with `/`, is left out by rules, the outermost first.

    The folders above it are taken to be not left out: a walk did not come here otherwise.
    """
    for rules in reversed(chain):
        local = rules.above + path.removeprefix(rules.below)
        for pattern in rules.patterns:
            if (end := _match(pattern, local)) and end == len(local):
                return bool(pattern.include)
    return False


def _match(pattern: "RegexPattern", path: str) -> int:
    """Return how far a pattern matches: a folder above the path, or all of it."""
    outcome = pattern.match_file(path)
    if outcome is None:
        return 0
    match: re.Match[str] = outcome.match
    above = match.re.groupindex.get(_FOLDER_MARK) and match[_FOLDER_MARK]
    return match.end() if above else len(path)


def read_enclosing(root: Path) -> list[IgnoreRules]:
    """Return the rules of the folders around a root, up to the git checkout that it is in."""
    checkout = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), root)
    if checkout == root:
        return []
    folders = [folder for folder in reversed(root.parents) if folder.is_relative_to(checkout)]
    chain = [read(folder / NAME, above=f"{root.relative_to(folder)}/") for folder in folders]
    # Who makes a workspace of a folder that git ignores wants it all the same.
    within = any(_match(pattern, rules.above) and pattern.include for rules in chain for pattern in rules.patterns)
    return [] if within else [rules for rules in chain if rules.patterns]


def read(path: Path, below: str = "", above: str = "") -> IgnoreRules:
    """Read a .gitignore; one that is missing or cannot be read has no patterns, and a wrong pattern is left out."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            text = file.read(MAX_BYTES).decode("utf-8-sig", "replace")
    except OSError:
        return IgnoreRules(below, above, [])
    patterns = [pattern for line in reversed(text.split("\n")) if (pattern := _parse_pattern(line.rstrip("\r")))]
    return IgnoreRules(below, above, patterns)


def _parse_pattern(line: str) -> "RegexPattern | None":
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern  # 8 ms that most starts need not take

    try:
        pattern = GitIgnoreSpecPattern(line)
    except ValueError:
        return None
    return None if pattern.include is None else pattern

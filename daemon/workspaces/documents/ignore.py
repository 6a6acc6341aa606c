"""What git ignores: the nearest .gitignore decides, in it the last pattern that matches; before these come the
repository's `info/exclude` and the user's own excludes (`core.excludesFile`). Git never runs.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memoryd.client.projects.checkout import find_repository

if TYPE_CHECKING:
    from pathspec import RegexPattern

NAME = ".gitignore"
MAX_BYTES = 1024 * 1024

_FOLDER_MARK = "ps_d"  # the group by which pathspec shows that a pattern matched a folder above


class IgnoreRules(NamedTuple):
    """The patterns of one file, the last one first."""

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
            if is_match(pattern, local):
                return bool(pattern.include)
    return False


def is_match(pattern: "RegexPattern", path: str) -> bool:
    """Return whether a pattern matches a path itself, not a folder above it."""
    return _match(pattern, path) == len(path)


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
    chain = [rules for folder in folders for rules in read_folder(folder, above=f"{root.relative_to(folder)}/")]
    # Who makes a workspace of a folder that git ignores wants it all the same.
    within = any(_match(pattern, rules.above) and pattern.include for rules in chain for pattern in rules.patterns)
    return [] if within else chain


def read_folder(folder: Path, below: str = "", above: str = "") -> list[IgnoreRules]:
    """Return the rules that a folder brings: those of its .gitignore and, before them, of the checkout that it is."""
    texts = [_read(folder / NAME, os.O_NOFOLLOW)]
    if (folder / ".git").exists():
        texts = [_read(_find_excludes_file()), _read_excludes(folder), *texts]
    return [rules for text in texts if (rules := _parse(text, below, above)).patterns]


def _read_excludes(checkout: Path) -> str:
    try:
        repository, _ = find_repository(str(checkout))
    except (OSError, UnicodeDecodeError):
        return ""
    return _read(Path(repository, "info", "exclude"), os.O_NOFOLLOW) if repository else ""


def _find_excludes_file() -> Path:
    """Return the file of what a user ignores in all checkouts, as git's configuration of the user names it."""
    home = Path(os.path.expanduser("~"))
    own = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config", "git")
    named = ""
    for config in (own / "config", home / ".gitconfig"):  # the last one decides
        section = ""
        for line in map(str.strip, _read(config).splitlines()):
            if line.startswith("["):
                section = line.partition("]")[0].lower()
                continue
            name, found, value = line.partition("=")
            if found and section == "[core" and name.strip().lower() == "excludesfile":
                named = re.split(r"\s[#;]", value)[0].strip().strip('"')
    return Path(os.path.expanduser(named)) if named else own / "ignore"


def _read(path: Path, flags: int = 0) -> str:
    """Return what a file says, empty for one that is missing or cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
        with open(descriptor, "rb") as file:
            return file.read(MAX_BYTES).decode("utf-8-sig", "replace")
    except OSError:
        return ""


def _parse(text: str, below: str, above: str) -> IgnoreRules:
    """Return the rules of a text; a wrong pattern is left out."""
    patterns = [pattern for line in reversed(text.split("\n")) if (pattern := parse_pattern(line.rstrip("\r")))]
    return IgnoreRules(below, above, patterns)


def parse_pattern(line: str) -> "RegexPattern | None":
    """Return a line of a .gitignore as a pattern; None where it is none."""
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern  # 8 ms that most starts need not take

    try:
        pattern = GitIgnoreSpecPattern(line)
    except ValueError:
        return None
    return None if pattern.include is None else pattern

"""Which files git ignores, without running git.

The nearest .gitignore with a matching pattern decides, by the last such pattern. The repository's `info/exclude` and
the user's excludes (`core.excludesFile`) decide only if no .gitignore does.
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

_FOLDER_MARK = "ps_d"  # pathspec's name of the group that matches if a pattern matched a folder above


class IgnoreRules(NamedTuple):
    """The patterns of one file, the last one first."""

    below: str  # the file's folder, relative to the root, with a `/` at its end
    above: str  # if that folder encloses the root: the root's path inside it
    patterns: "list[RegexPattern]"


def is_ignored(path: str, chain: Sequence[IgnoreRules]) -> bool:
    """Return whether rules, the outermost first, exclude a path relative to the root; a folder's path ends with `/`.

    The folders above it are assumed not to be excluded, because a walk does not enter excluded folders.
    """
    for rules in reversed(chain):
        local = rules.above + path.removeprefix(rules.below)
        for pattern in rules.patterns:
            if is_match(pattern, local):
                return bool(pattern.include)
    return False


def is_match(pattern: "RegexPattern", path: str) -> bool:
    """Return whether a pattern matches the path itself, not only a folder above it."""
    return _match(pattern, path) == len(path)


def _match(pattern: "RegexPattern", path: str) -> int:
    """Return how many characters of the path a pattern matches: a folder above it, or the whole path."""
    outcome = pattern.match_file(path)
    if outcome is None:
        return 0
    match: re.Match[str] = outcome.match
    above = match.re.groupindex.get(_FOLDER_MARK) and match[_FOLDER_MARK]
    return match.end() if above else len(path)


def read_enclosing(root: Path) -> list[IgnoreRules]:
    """Return the rules of the folders around a root, up to the git checkout that contains it."""
    checkout = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), root)
    if checkout == root:
        return []
    folders = [folder for folder in reversed(root.parents) if folder.is_relative_to(checkout)]
    chain = [rules for folder in folders for rules in read_folder(folder, above=f"{root.relative_to(folder)}/")]
    # A person who makes an ignored folder a workspace wants its files, so these rules are dropped.
    within = any(_match(pattern, rules.above) and pattern.include for rules in chain for pattern in rules.patterns)
    return [] if within else chain


def read_folder(folder: Path, below: str = "", above: str = "") -> list[IgnoreRules]:
    """Return the rules in a folder: those of its .gitignore and, if it is a checkout, first those of the checkout."""
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
    """Return the file of patterns that the user ignores in all checkouts, as configured for git."""
    home = Path(os.path.expanduser("~"))
    own = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config", "git")
    named = ""
    for config in (own / "config", home / ".gitconfig"):  # the last one takes precedence
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
    """Return the text of a file, empty if it is missing or cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
        with open(descriptor, "rb") as file:
            return file.read(MAX_BYTES).decode("utf-8-sig", "replace")
    except OSError:
        return ""


def _parse(text: str, below: str, above: str) -> IgnoreRules:
    patterns = [pattern for line in reversed(text.split("\n")) if (pattern := parse_pattern(line.rstrip("\r")))]
    return IgnoreRules(below, above, patterns)


def parse_pattern(line: str) -> "RegexPattern | None":
    """Return the pattern in a line of a .gitignore, or None if the line has no valid one."""
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern  # takes 8 ms

    try:
        pattern = GitIgnoreSpecPattern(line)
    except ValueError:
        return None
    return None if pattern.include is None else pattern

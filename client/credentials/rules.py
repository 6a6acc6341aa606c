"""Find credentials by their formats, which are rows of `rules.toml`."""

import math
import os
import re
import tomllib
from collections.abc import Iterator
from typing import NamedTuple

from memoryd.client.patterns import compile_late

MIN_RUN = 16  # characters of the shortest credential that is recognised within a run
_RUN_CHARS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+/=.~%:?&-"
_RUN = compile_late(f"[{re.escape(_RUN_CHARS)}]{{{MIN_RUN},}}")
_CLASSES = bytes(ord("w") if chr(byte) in _RUN_CHARS else ord(" ") for byte in range(256))
_DIGITS = frozenset("0123456789")
_MIN_ENTROPY = 2.33


class CredentialMatch(NamedTuple):
    """A credential in a text: its kind, and where it begins and ends."""

    kind: str
    start: int
    end: int


class CredentialFormat(NamedTuple):
    """A format of credentials: a row of `rules.toml`, whose first lines describe the fields."""

    id: str
    description: str
    keywords: tuple[str, ...]
    pattern: re.Pattern[str]
    folded: bool  # its keywords are in lower case
    tags: tuple[str, ...]
    entropy: float

    def judge(self, match: re.Match[str]) -> CredentialMatch | None:
        """Return the part of a match to remove, if it is a credential."""
        if self.pattern.groups and not match.lastindex:
            return None
        start, end = match.span(match.lastindex or 0)
        value = match.string[start:end]
        if measure_entropy(value) < self.entropy or ("published" not in self.tags and is_placeholder(value)):
            return None
        return CredentialMatch(self.id, start, end)


def _make(
    id: str,
    description: str,
    keywords: list[str],
    regex: str,
    tags: tuple[str, ...] = (),
    entropy: float = _MIN_ENTROPY,
) -> CredentialFormat:
    folded = regex.startswith(("(?i)", "(?ix)"))
    if regex.removeprefix("(?i)").startswith(r"\b"):
        regex = regex.replace(r"\b", r"(?:\b|(?<=%[0-9A-F]{2}))", 1)
    return CredentialFormat(id, description, tuple(keywords), compile_late(regex), folded, tuple(tags), entropy)


with open(os.path.join(os.path.dirname(__file__), "rules.toml"), "rb") as _opened:
    FILE = tomllib.load(_opened)
RULES = tuple(_make(**row) for row in FILE["rules"])
_ROWS = [(keyword, rule) for rule in RULES for keyword in rule.keywords]
_IN_RUNS = [row for row in _ROWS if "text" not in row[1].tags]
_IN_TEXT = [row for row in _ROWS if "text" in row[1].tags and not row[1].folded]
_IN_LOWERED = [row for row in _ROWS if "text" in row[1].tags and row[1].folded]
_ALLOWED = [compile_late(regex) for regex in FILE["allowlist"]["regexes"]]
_STOP_WORDS: list[str] = FILE["allowlist"]["stopwords"]
# Short words count only in the usual case: random keys contain them by chance in another one, such as `yOUr`.
_AS_WRITTEN = [form for word in _STOP_WORDS if len(word) < 6 for form in (word, word.upper(), word.title())]
_IN_ANY_CASE = [word for word in _STOP_WORDS if len(word) >= 6]


def find_formats(text: str, lowered: str) -> Iterator[CredentialMatch]:
    """Yield the credentials of a known format, some of which may overlap; `lowered` is the text in lower case."""
    for rows, haystack in ((_IN_TEXT, text), (_IN_LOWERED, lowered)):
        for keyword, rule in [(keyword, rule) for keyword, rule in rows if keyword in haystack]:
            at = haystack.find(keyword)
            while at >= 0:
                match = rule.pattern.match(text, at)
                if match and (found := rule.judge(match)):
                    yield found
                at = haystack.find(keyword, match.end() if match else at + 1)
    if b"w" * MIN_RUN not in text.encode("utf-8", "replace").translate(_CLASSES):
        return  # prose: no word is long enough
    runs = [match for match in _RUN.finditer(text) if not _DIGITS.isdisjoint(match.group())]
    if not runs:
        return  # names; almost every key has a digit
    joined = "\n".join([run.group() for run in runs])
    for keyword, rule in [(keyword, rule) for keyword, rule in _IN_RUNS if keyword in joined]:
        for run in runs:
            if keyword in run.group():
                for match in rule.pattern.finditer(text, *run.span()):
                    if found := rule.judge(match):
                        yield found


def is_placeholder(value: str) -> bool:
    """Return whether a text is a placeholder for a credential."""
    if len(set(value)) < 4 or any(pattern.fullmatch(value) for pattern in _ALLOWED):
        return True
    lowered = value.lower()
    return any(word in value for word in _AS_WRITTEN) or any(word in lowered for word in _IN_ANY_CASE)


def measure_entropy(value: str) -> float:
    """Return the Shannon entropy of a text in bits per character."""
    counts = map(value.count, set(value))
    return -sum(count / len(value) * math.log2(count / len(value)) for count in counts)

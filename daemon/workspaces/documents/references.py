"""References in a file, outside code: `[[name]]`, `[[name|shown]]`, `[[name#heading]]`, `[text](other.md)`, `#tags`.

A name is that of a file in lower case, without folder and `.md`, so that links remain valid when notes are moved.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from unicodedata import normalize
from urllib.parse import unquote

_LINK = re.compile(
    r"\[\[(?P<wiki>[^\[\]|#\n]{1,200})(?:#[^\[\]|\n]{0,200})?(?:\|[^\[\]\n]{0,200})?\]\]"
    # Without the limits, a line of many brackets would take quadratic time.
    r"|\]\(\s{0,9}(?:<(?P<angled>[^<>\n]{1,500})>|(?P<bare>[^()<>\s]{1,500}))(?:\s[^()\n]{0,200})?\)"
)
_TAG = re.compile(r"(?<![\w/#&(\[])#(?P<tag>[^\W\d_][\w/-]{0,99})")
_TICKS = re.compile(r"`+")
_ELSEWHERE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|/")


class Reference(NamedTuple):
    """A reference to a file, or a tag, and its place in the text."""

    at: int
    name: str


def name_of(path: str) -> str:
    """Return the name by which `[[name]]` refers to a file."""
    last = normalize("NFC", path).strip().rsplit("/", 1)[-1].lower()
    return last.removesuffix(".md")


def links_in(text: str, code: Sequence[tuple[int, int]]) -> list[Reference]:
    """Return the links of a text in order; `code` are the ranges of its code blocks, in order."""
    return _find(_LINK, text, code) if "[[" in text or "](" in text else []


def find_tags(text: str, code: Sequence[tuple[int, int]]) -> list[Reference]:
    """Return the tags of a text in order, without their `#`."""
    return _find(_TAG, text, code) if "#" in text else []


def _find(pattern: re.Pattern[str], text: str, code: Sequence[tuple[int, int]]) -> list[Reference]:
    references, at = list[Reference](), 0
    for begin, end in [*code, (len(text), len(text))]:
        references.extend(_find_outside(pattern, text, at, begin))
        at = end
    return references


def _find_outside(pattern: re.Pattern[str], text: str, begin: int, end: int) -> Iterator[Reference]:
    spans = iter([*_find_code_spans(text, begin, end), (end, end)])
    start, stop = next(spans)
    for match in pattern.finditer(text, begin, end):
        while stop <= match.start():
            start, stop = next(spans)
        name = match["tag"] if pattern is _TAG else _name(match)
        if name and match.start() < start:
            yield Reference(match.start(), name)


def _find_code_spans(text: str, begin: int, end: int) -> Iterable[tuple[int, int]]:
    """Yield `code` spans: from a run of backticks to the next run of the same length in the same paragraph."""
    if text.find("`", begin, end) < 0:
        return
    at = begin
    while at < end:
        stop = text.find("\n\n", at, end)
        stop = end if stop < 0 else stop
        yield from _find_paragraph_spans(list(_TICKS.finditer(text, at, stop)))
        at = stop + 2


def _find_paragraph_spans(runs: Sequence[re.Match[str]]) -> Iterator[tuple[int, int]]:
    following: dict[int, list[int]] = {}  # length -> the runs of that length, last first
    for number in reversed(range(len(runs))):
        following.setdefault(len(runs[number][0]), []).append(number)
    number = 0
    while number < len(runs):
        same = following[len(runs[number][0])]
        while same and same[-1] <= number:
            same.pop()
        if same:
            yield runs[number].start(), runs[same[-1]].end()
            number = same[-1]
        number += 1


def _name(match: re.Match[str]) -> str:
    if match["wiki"]:
        return name_of(match["wiki"])
    target = (match["angled"] or match["bare"]).split("#", 1)[0]
    if _ELSEWHERE.match(target) or not target.lower().endswith(".md"):
        return ""
    return name_of(unquote(target))

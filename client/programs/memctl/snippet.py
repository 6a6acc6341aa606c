"""Select the part of a text that a query is about, and mark the query's words in it.

A word is marked if its stem is that of a word of the query: endings (-s, -ing, -ed, -er, -ment …), case and accents do
not count, so "caching" marks "cache" and "cached". Common words of questions ("which", "the") mark nothing unless there
are no others. Since the daemon searches by its own rules, and by meaning, a hit may have nothing marked.
"""

import re
from collections.abc import Callable
from itertools import accumulate

from msgspec import Struct

from memoryd.client.patterns import compile_late
from memoryd.client.programs.memctl.output import make_printable
from memoryd.client.programs.memctl.text_table import width, wrap

MAX_CHARS = 100_000  # only the beginning of a longer content is examined
FILLED = 0.85  # the share of a line that is filled on average, because lines end with whole words

# Words that are common in questions.
COMMON = frozenset(
    "a about all an and any are as at be been but by can could did do does for from had has have her his how i if in"
    " into is it its me my no not of on or our out over she should so some that the their them then there these they"
    " this to was we were what when where which who why will with would you your".split()
)
# The longest first. An ending is only removed if at least three letters remain.
ENDINGS = "ations ation ments ment ings ing ers ies ied ed er es ly s e".split()

_WORD = compile_late(r"[^\W_]+")
_SENTENCE = compile_late(r"(?<=[.!?。！？]) +")
# Scripts without blanks between words. They are compared, because compiling a pattern of these ranges takes 2.5 ms.
_UNSPACED = (("\u2e80", "\ua4cf"), ("\uac00", "\ud7af"), ("\uf900", "\ufaff"))


class QueryWords(Struct, frozen=True):
    """The words to mark: stems of words, and parts of texts in scripts without blanks."""

    stems: frozenset[str]
    parts: tuple[str, ...]


class _Mark(Struct, frozen=True, order=True):
    start: int
    end: int
    what: str


def query_of(text: str) -> QueryWords:
    """Return the words of a query that are marked."""
    words = [match[0] for match in _WORD.finditer(text)]
    words = [word for word in words if word.lower() not in COMMON] or words
    parts = tuple(word.lower() for word in words if _is_unspaced(word))
    return QueryWords(frozenset(stem(word) for word in words if not _is_unspaced(word)), parts)


def _is_unspaced(word: str) -> bool:
    return not word.isascii() and any(first <= sign <= last for sign in word for first, last in _UNSPACED)


def stem(word: str) -> str:
    """Return a word without accents and ending: `cach` for caching, cached, caches and cache."""
    word = word.lower()
    if not word.isascii():
        from unicodedata import combining, normalize

        word = "".join(c for c in normalize("NFKD", word) if not combining(c))
    for ending in ENDINGS:
        rest = word.removesuffix(ending)
        if rest != word and len(rest) >= 3 and not word.endswith("ss"):
            word = rest + "i" if ending in ("ies", "ied") else rest
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "ls":
        word = word[:-1]  # runn(ing), plann(ed)
    if len(word) > 3 and word.endswith("y"):
        return word[:-1] + "i"
    return word.removesuffix("e") if len(word) > 3 else word


def make_snippet(content: str, query: str, size: int, lines: int, paint: Callable[[str], str]) -> list[str]:
    """Return the best part of a content in at most `lines` lines of `size` columns, the words of the query painted."""
    words = query_of(query)
    text, begins = _join_lines(content[:MAX_CHARS])
    start = _find_start(text, begins, words, _count_fitting(text, size * lines))
    lines_shown = wrap(("… " if start else "") + text[start : start + 2 * size * lines], size, lines)
    return [_paint_words(line, words, paint) for line in lines_shown]


def _join_lines(content: str) -> tuple[str, list[int]]:
    """Return a text on one line, and where its lines and sentences begin."""
    texts = [" ".join(make_printable(line).split()) for line in content.split("\n")]
    texts = [line for line in texts if line]
    text = " ".join(texts)
    begins = {0, *accumulate((len(line) + 1 for line in texts[:-1]), initial=0)}
    return text, sorted(begins | {match.end() for match in _SENTENCE.finditer(text)})


def _count_fitting(text: str, columns: int) -> int:
    """Return how many characters of a text fit into so many columns."""
    sample = text[:columns]
    return max(1, int(FILLED * columns * len(sample) / max(width(sample), 1)))


def _find_start(text: str, begins: list[int], words: QueryWords, room: int) -> int:
    """Return where to begin, so that as many different words of the query as possible are shown."""
    if len(text) <= room:
        return 0
    marks = _find_marks(text, words)
    if not marks:
        return 0
    first, last = _find_densest(marks, room)
    if last <= room * 2 // 3:
        return 0
    # Begin with a sentence or line that begins a little before the first mark, and fill the room at the end.
    earliest = min(max(0, first - (room - (last - first)) // 3), len(text) - room)
    return next(
        (begin for begin in begins if earliest <= begin <= first), _find_word_begin(text, max(earliest, first - 30))
    )


def _find_densest(marks: list[_Mark], room: int) -> tuple[int, int]:
    """Return where the best stretch that fits begins and ends: at its first and its last mark."""
    best, span, until = (0, 0), (marks[0].start, marks[0].end), 0
    within: dict[str, int] = {}
    for number, mark in enumerate(marks):
        while until < len(marks) and marks[until].end - mark.start <= room:
            within[marks[until].what] = within.get(marks[until].what, 0) + 1
            until += 1
        value = len(within), min(until - number, 2 * len(within))
        if until > number and value > best:
            best, span = value, (mark.start, marks[until - 1].end)
        within[mark.what] = within.get(mark.what, 1) - 1
        if not within[mark.what]:
            del within[mark.what]
        until = max(until, number + 1)
    return span


def _find_word_begin(text: str, at: int) -> int:
    blank = text.find(" ", at, at + 40) if at else -1
    return blank + 1 if blank >= 0 else at


def _find_marks(text: str, words: QueryWords) -> list[_Mark]:
    stems: dict[str, str] = {}
    marks = list[_Mark]()
    for match in _WORD.finditer(text):
        word = match[0]
        if word not in stems:
            stems[word] = stem(word)
        if stems[word] in words.stems:
            marks.append(_Mark(match.start(), match.end(), stems[word]))
    for part in words.parts:
        marks += [_Mark(match.start(), match.end(), part) for match in re.finditer(re.escape(part), text, re.I)]
    return sorted(marks)


def _paint_words(line: str, words: QueryWords, paint: Callable[[str], str]) -> str:
    parts, at = list[str](), 0
    for mark in _find_marks(line, words):
        if mark.start >= at:
            parts += [line[at : mark.start], paint(line[mark.start : mark.end])]
            at = mark.end
    return "".join([*parts, line[at:]])

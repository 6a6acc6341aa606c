"""What can be read in a context: how much of a text stands there, and what its tokens are spent on.

Texts are compared by their words: runs of letters and figures in any case, in Chinese and Japanese each character. So
nothing depends on how a context is laid out, on signs that were made inert, or on ids.

A text can be read *whole* where all of its words stand in the context one after the other. A text that was cut, at its
end or to some of its sentences, is not whole: of it counts the share of its words that stand there, in runs that begin
where a sentence begins. A run shorter than `_LEAST_RUN` words is there by chance, unless the text has no more.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Literal, NamedTuple

ReadingKind = Literal["answer", "neighbours", "rest"]
_LEAST_RUN = 3  # words
_WORD = re.compile(r"[^\W_\u3040-\u9fff]+|[\u3040-\u9fff]")
_SENTENCE_END = re.compile(r"[.!?…。！？\n]")
_ESCAPED = "&lt;"  # how a context writes what would open a tag


class Reading(NamedTuple):
    """How much of a text stands in a context: whether the whole, the share of its words, and which words of the context
    they are."""

    whole: bool
    share: float
    runs: list[tuple[int, int]]  # first word, and the one after the last


class ContextPage:
    """A context to read in."""

    def __init__(self, text: str) -> None:
        self._text = text
        found = list(_WORD.finditer(_unescape(text)))
        self._words = [word.span() for word in found]
        self._joined = f" {' '.join(word[0].casefold() for word in found)} "
        self._starts = [place for place, sign in enumerate(self._joined) if sign == " "]

    def read(self, text: str) -> Reading:
        """Return how much of a text stands here."""
        words, begins = _split(text)
        least, runs, covered = min(_LEAST_RUN, len(words)), [], 0
        for begin in begins:
            if begin < covered:
                continue
            count, place = self._find_longest(words[begin:])
            if count and count >= least:
                runs.append((place, place + count))
                covered = begin + count
        read = sum(end - start for start, end in runs)
        return Reading(bool(words) and read == len(words) and len(runs) == 1, read / max(1, len(words)), runs)

    def divide(self, texts: Iterable[tuple[ReadingKind, str]]) -> Iterator[tuple[ReadingKind, str]]:
        """Yield the parts of the context that some texts account for; each word counts for the first text that has it.

        What no text accounts for are the heads: dates, ids, speakers, headings.
        """
        kinds: list[ReadingKind | None] = [None] * len(self._words)
        for kind, text in texts:
            for start, end in (same for run in self.read(text).runs for same in self._find_all(*run)):
                kinds[start:end] = [known or kind for known in kinds[start:end]]
        for found, part in groupby(range(len(kinds)), lambda place: kinds[place]):
            if found is not None:
                places = list(part)
                yield found, self._text[self._words[places[0]][0] : self._end(places[-1])]

    def _end(self, place: int) -> int:
        """Return where a word ends, with the signs right behind it."""
        end = self._words[place][1]
        while end < len(self._text) and not self._text[end].isspace() and not _WORD.match(self._text, end):
            end += 1
        return end

    def _find_all(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield every run of the same words as this one."""
        text = self._joined[self._starts[start] : self._starts[end] + 1]
        place = self._joined.find(text)
        while place >= 0:
            first = bisect_left(self._starts, place)
            yield first, first + end - start
            place = self._joined.find(text, place + 1)

    def _find_longest(self, words: list[str]) -> tuple[int, int]:
        """Return how many of the first words stand here in a row, and the place of the first."""
        low, high, place = 0, len(words), -1
        while low < high:
            middle = (low + high + 1) // 2
            found = self._joined.find(f" {' '.join(words[:middle])} ")
            if found < 0:
                high = middle - 1
            else:
                low, place = middle, bisect_left(self._starts, found)
        return low, place


def _split(text: str) -> tuple[list[str], list[int]]:
    """Return the words of a text, and the numbers of those that begin a sentence."""
    words: list[str] = []
    begins: list[int] = []
    last = 0
    for found in _WORD.finditer(text := _unescape(text)):
        if not words or _SENTENCE_END.search(text, last, found.start()):
            begins.append(len(words))
        words.append(found[0].casefold())
        last = found.end()
    return words, begins


def _unescape(text: str) -> str:
    return text.replace(_ESCAPED, "<   ")  # as long as it was

"""Find the names in a question: identifiers ("PR #414", "4.2.2", "labels.py") and proper names. Pure functions.

A text with other names does not answer the question, however similar it is. Dates do not count as names, since they
can be written in many ways. German capitalises every noun, so only words in all capitals count there; in Chinese,
Japanese and Korean only names in Latin letters and digits are found.
"""

from typing import NamedTuple

from memoryd.client.dates import remove_dates
from memoryd.client.patterns import compile_late

_WORD = compile_late(r"[A-Za-zÀ-ɏ0-9](?:[A-Za-zÀ-ɏ0-9./_-]*[A-Za-zÀ-ɏ0-9])?")
_SIGN = compile_late(r"[0-9./_]")  # of an identifier
_CONTINUES_BEFORE = compile_late(r"[a-zà-ɏ0-9]\Z|[0-9]\.\Z")
_CONTINUES = compile_late(r"[a-zà-ɏ0-9]|\.[0-9]")
_READ_CHARS = 1_000  # of a question
_LOOK_BACK = 8  # characters before a word
_SENTENCE_END = compile_late(r"[.!?:]\s+\Z")
_GERMAN = frozenset(
    "ist der die das wer wie und für mit von den dem ein eine einen einer nicht zu im auf wir bei was wann wo hat wurde"
    " warum welche welcher welches welchen statt sind war wird ob".split()
)
_PRONOUN = compile_late(r"I(?:['’]\w+)?")


class Names(NamedTuple):
    """The names in a text, in lower case."""

    identifiers: tuple[str, ...]
    proper: tuple[str, ...]


def find_names(text: str) -> Names:
    """Return the names in a text: words that contain digits or signs, and capitalised words within sentences."""
    text = remove_dates(text[:_READ_CHARS])
    words: list[tuple[str, bool]] = []  # and whether each begins a sentence
    for match in _WORD.finditer(text):
        before = text[max(0, match.start() - _LOOK_BACK) : match.start()]
        words.append((match[0], match.start() == 0 or _SENTENCE_END.search(before) is not None))
    identifiers = [word.casefold() for word, _ in words if _is_identifier(word)]
    is_german = not _GERMAN.isdisjoint(text.casefold().split())
    proper = [word.casefold() for word, begins in words if _is_proper(word, begins, is_german)]
    return Names(tuple(dict.fromkeys(identifiers)), tuple(dict.fromkeys(proper)))


def is_named(name: str, text: str) -> bool:
    """Return whether a text in lower case contains a name as a whole word: "4.2" is not in "4.2.1"."""
    start = text.find(name)
    while start >= 0:
        end = start + len(name)
        if not _CONTINUES_BEFORE.search(text[max(0, start - 2) : start]) and not _CONTINUES.match(text, end):
            return True
        start = text.find(name, end)
    return False


def _is_identifier(word: str) -> bool:
    return _SIGN.search(word) is not None


def _is_proper(word: str, begins: bool, is_german: bool) -> bool:
    if _is_identifier(word) or not word[0].isupper() or _PRONOUN.fullmatch(word):
        return False
    return len(word) > 1 and word.isupper() if is_german else not begins

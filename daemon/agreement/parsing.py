"""Parse statements for the rules of `statements`: words, the stems of content words, and polarity.

A word may be a number, an identifier, or a single Chinese character. Pure functions.
"""

import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from memoryd.client.patterns import compile_late
from memoryd.daemon.agreement import words

_CACHED = 256  # statements, since an added one is compared with many
_NO_CONTENT = words.STOP | words.NEGATIVE
_NUMBER = compile_late(r"[$€£~]?[0-9]|v[0-9]")
_NAMES = {"US": "usa", "MIT": "mit-licence"}  # not "us", nor German "mit"
_NAME = compile_late(r"\b(?:US|MIT)\b")
_TOKEN = compile_late(
    r"[0-9]+[a-z]+[0-9][a-z0-9]*|[0-9]+ ?月 ?[0-9]+ ?日"  # a hash, a day
    r"|[#$€£~v]?[0-9]+(?:[.,:/-][0-9]+)*[a-z%]*"  # numbers, dates, times
    r"|[^\W\d_぀-ヿ㐀-鿿가-힯]+(?:['.][^\W\d_]+)*(?:[-_][^\W_぀-ヿ㐀-鿿]+)*[0-9]*(?:\.[0-9]+)*(?:\(\))?"
    r"|(?<=\w):(?=\s)|[゠-ヿー]+|[㐀-鿿]|[぀-ゟ]+"  # katakana, each Chinese character, hiragana
)


class StatementWord(NamedTuple):
    """A word, and the one before it."""

    key: str
    before: str


class Statement(NamedTuple):
    """A parsed text: its words, the stems of its content words, their indexes in `words`, and its polarity."""

    words: list[StatementWord]
    content: list[str]
    places: list[int]
    negative: bool

    @property
    def keys(self) -> set[str]:
        """All words."""
        return {word.key for word in self.words}


@lru_cache(_CACHED)
def read_statement(text: str) -> Statement:
    """Parse a text."""
    text = _NAME.sub(lambda match: _NAMES[match[0]], unicodedata.normalize("NFKC", text).replace("’", "'")).casefold()
    text = words.ONE.sub("1", words.MAY.sub("mai", words.NOT_BEFORE.sub(r"\1\2", words.REASON.sub("", text))))
    tokens = list(_tokenize(words.NOISE.sub(" ", words.BUT.sub("only", text))))
    denials = sum(token.key in words.NEGATIVE for token in tokens) + bool(words.NO_LONGER.search(text))
    places = [at for at, token in enumerate(tokens) if token.key not in _NO_CONTENT]
    return Statement(tokens, [stem(tokens[at].key) for at in places], places, denials % 2 == 1)


def _tokenize(text: str) -> Iterator[StatementWord]:
    before = ""
    for match in _TOKEN.finditer(text.replace("禁止", "不").replace(words.SURELY, "")):
        word = match[0]
        if word.endswith("n't") or word in words.CONTRACTED:
            word = "not"
        elif "぀" <= word[0] <= "ゟ":
            word = "not" if words.HIRAGANA_NOT.search(word) else ""
        word = word.partition("'")[0]
        word = words.NUMBERS.get(word, word)
        if word:
            yield StatementWord(word, before)
        before = word


def stem(word: str) -> str:
    """Return an English word without its most common endings; other words are returned unchanged."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    for tail in ("ing", "ed", "es", "s"):
        if word.endswith(tail) and len(word) - len(tail) >= 3 and not word.endswith("ss"):
            rest = word.removesuffix(tail).rstrip("e")
            is_doubled = tail in ("ing", "ed") and len(rest) > 3 and rest[-1] == rest[-2] and rest[-1] not in "lsz"
            return rest[:-1] if is_doubled else rest  # rerunning, rerun
    return word.rstrip("e")


def has_digit(word: str) -> bool:
    """Return whether a word has a digit anywhere."""
    return any(map(str.isdigit, word))


def is_number(word: str) -> bool:
    """Return whether a word is a number, an amount or a version."""
    return _NUMBER.match(word) is not None

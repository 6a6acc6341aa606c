"""Two short statements: do they say the same, does the newer one contradict the older one?

The same is what differs in nothing but articles, contractions, punctuation and the case of its first word: keeping a
rephrasing twice costs little, merging look-alikes destroys knowledge. A contradiction is another value of the same
attribute of the same thing, and is claimed only where one of three rules sees it in the words of content: the same is
affirmed and denied, one word or number differs where a value is said, or the newer one says that something changed.
Another identifier, number of a thing, name, place or time is another thing. What is no statement, or long, is never
judged. On the pairs of `tests/data/pairs` (seen half): precision 1.00, recall 0.81.

Languages: English, German, Chinese, Japanese (`words`); texts in others contradict each other only by a number or a
name. Pure functions of about 0.1 ms, called on `add`.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from memoryd.client.patterns import compile_late
from memoryd.daemon.language import words

MAX_WORDS = 30
MAX_CHARS = 250
_LEAST_SHARED, _LEAST_SHARE = 1.0, 0.3  # words, and share of the shorter statement's, for one that reports a change
_VALUE_WORDS = 2
_ARTICLES = frozenset({"the", "The", "a", "an", "An"})  # "A" is a name as well
_NO_CONTENT = words.STOP | words.NEGATIVE
_NUMBER = compile_late(r"[$€£~]?[0-9]")
_TOKEN = compile_late(
    r"[#$€£~]?[0-9]+(?:[.,:/-][0-9]+)*[a-z%]*"  # numbers, dates, times
    r"|[^\W\d_぀-ヿ㐀-鿿가-힯]+(?:['.][^\W\d_]+)*(?:[-_][^\W_぀-ヿ㐀-鿿]+)*[0-9]*(?:\(\))?"
    r"|[゠-ヿー]+|[㐀-鿿]|[぀-ゟ]+"  # katakana, each Chinese character, hiragana
)


class Token(NamedTuple):
    """A word or number, and the one before it."""

    key: str
    before: str


class Statement(NamedTuple):
    """A text as the rules read it: its words, the stems of content, where in `words` these are, and its polarity."""

    words: list[Token]
    content: list[str]
    places: list[int]
    negative: bool

    @property
    def keys(self) -> set[str]:
        """All words."""
        return {word.key for word in self.words}


def is_same(old: str, new: str) -> bool:
    """Return whether two texts say the same, so that the new one may replace the old one."""
    one, other = _simplify(old), _simplify(new)
    if one == other or not one or not other:
        return one == other
    is_english = bool(words.ENGLISH & set(f"{one} {other}".casefold().split()))
    return _fold(one, is_english) == _fold(other, is_english)


def find_contradiction(old: str, new: str) -> str | None:
    """Return which rule sees that the newer statement contradicts the older one, None if none does."""
    if max(len(old), len(new)) > MAX_CHARS or any(words.NO_STATEMENT.search(text.strip()) for text in (old, new)):
        return None
    one, two = _read(old), _read(new)
    if not one.content or not two.content or max(len(one.words), len(two.words)) > MAX_WORDS:
        return None
    only_old, only_new = _is_exclusive(one, two), _is_exclusive(two, one)
    if one.negative != two.negative:
        return "polarity" if _is_denied(one, two, only_old, only_new) else None
    if words.ADDITIVE & two.keys:
        return None
    if _is_other_number(one, two, only_old, only_new) or _is_other_value(one, two):
        return "value"
    changed = words.CHANGE.search(new.casefold()) and only_old and only_new
    return "change" if changed and _is_about_the_same(one, two) else None


# The rules -----------------------------------------------------------------------------------------------------------


def _is_denied(one: Statement, two: Statement, only_old: list[str], only_new: list[str]) -> bool:
    """Return whether what one affirms the other denies: nothing of content is said by both alone, but a state."""
    old, new = ([word for word in only if word not in words.LIGHT] for only in (only_old, only_new))
    alone = bool(old and new) and not {*old, *new} <= words.STATES
    return len(set(one.content) & set(two.content)) >= 2 and not alone


def _is_other_number(one: Statement, two: Statement, only_old: list[str], only_new: list[str]) -> bool:
    """Return whether all that differs is a number after at least two words of content: a value of theirs."""
    if len(only_old) != 1 or len(only_new) != 1 or not (_is_number(only_old[0]) and _is_number(only_new[0])):
        return False
    at = min(one.content.index(only_old[0]), two.content.index(only_new[0]))
    return at >= 2 and not (one.keys | two.keys) & words.PAST


def _is_other_value(one: Statement, two: Statement) -> bool:
    """Return whether the statements are equal but for one or two words in a row, and these say a value."""
    matcher = SequenceMatcher(None, one.content, two.content, autojunk=False)
    blocks = [block for block in matcher.get_opcodes() if block[0] != "equal"]
    if len(blocks) != 1 or blocks[0][0] != "replace":
        return False
    _, first, last, start, end = blocks[0]
    size = last - first
    if size != end - start or size > _VALUE_WORDS or size == len(one.content):
        return False
    if not (_is_unbroken(one.places[first:last]) and _is_unbroken(two.places[start:end])):
        return False
    return _is_value(one, two, first, last)


def _is_value(one: Statement, two: Statement, first: int, last: int) -> bool:
    """Return whether the words of content from `first` to `last`, which differ, say a value of what is before them."""
    old, new = one.words[one.places[first]], two.words[two.places[first]]
    keys = one.keys | two.keys
    is_number = _is_number(old.key)
    if is_number != _is_number(new.key) or {old.key, new.key} & words.PLACES:
        return False
    if (is_number or {old.key, new.key} & words.TIMES) and keys & words.PAST:
        return False  # two events at two times
    if first == 0:  # who: another one only where there is one for it
        return bool(keys & words.ROLES) and not is_number
    if is_number:
        named = first == 1 and last < len(one.content) and old.before == one.words[one.places[0]].key
        return not named  # else it is the number of a thing: PR 12 is merged
    return not keys & words.OPEN


def _is_about_the_same(one: Statement, two: Statement) -> bool:
    shared = set(one.content) & set(two.content)
    size = sum(_weight(word) for word in shared)
    whole = min(sum(map(_weight, set(one.content))), sum(map(_weight, set(two.content))))
    return size >= _LEAST_SHARED and size >= _LEAST_SHARE * whole


def _weight(word: str) -> float:
    return 0.34 if len(word) == 1 and not word.isascii() else 1.0


# Reading -------------------------------------------------------------------------------------------------------------


def _read(text: str) -> Statement:
    text = unicodedata.normalize("NFKC", text).replace("’", "'").casefold()
    tokens = list(_tokenize(words.NOISE.sub(" ", words.REASON.sub("", text))))
    denials = sum(token.key in words.NEGATIVE for token in tokens) + bool(words.NO_LONGER.search(text))
    places = [at for at, token in enumerate(tokens) if token.key not in _NO_CONTENT]
    return Statement(tokens, [stem(tokens[at].key) for at in places], places, denials % 2 == 1)


def _tokenize(text: str) -> Iterator[Token]:
    before = ""
    for match in _TOKEN.finditer(text.replace("禁止", "不")):
        word = match[0]
        if word.endswith("n't") or word in words.CONTRACTED:
            word = "not"
        elif "぀" <= word[0] <= "ゟ":
            word = "not" if words.HIRAGANA_NOT.search(word) else ""
        word = word.partition("'")[0]
        word = words.NUMBERS.get(word, word)
        if word:
            yield Token(word, before)
        before = word


def stem(word: str) -> str:
    """Return an English word without its commonest endings; others as they are."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    for tail in ("ing", "ed", "es", "s"):
        if word.endswith(tail) and len(word) - len(tail) >= 3 and not word.endswith("ss"):
            return word.removesuffix(tail).rstrip("e")
    return word.rstrip("e")


def _is_exclusive(one: Statement, other: Statement) -> list[str]:
    known = set(other.content)
    return [word for word in one.content if word not in known]


def _is_unbroken(places: Sequence[int]) -> bool:
    return places[-1] - places[0] == len(places) - 1


def _is_number(word: str) -> bool:
    return _NUMBER.match(word) is not None


def _simplify(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def _fold(text: str, is_english: bool) -> list[str]:
    """Return the words of a text; English ones in full, without articles and the marks around them."""
    found = text.removesuffix(".").removesuffix("!").replace("’", "'").split()
    if not is_english:
        return found
    found = " ".join(words.IN_FULL.get(word.casefold(), word) for word in found).split()
    pairs = zip(found, ["", *found], strict=False)
    kept = [word.strip('`"') for word, before in pairs if word not in _ARTICLES or before.endswith("'s")]
    if kept and kept[0] == "A":
        del kept[0]
    if kept and kept[0][1:].islower():
        kept[0] = kept[0].casefold()
    return kept

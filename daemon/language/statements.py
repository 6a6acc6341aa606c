"""Two short statements: do they say the same, does the newer one contradict the older one?

The same is what differs in nothing but articles, contractions, punctuation and the case of its first word: keeping a
rephrasing twice costs little, merging look-alikes destroys knowledge. A contradiction is another value of the same
attribute of the same thing, and is claimed only where one of four rules sees it in the words of content: the same is
affirmed and denied, one word or number differs where a value is said, what is said of all is said of some alone, or the
newer one says that something changed. Clauses between commas are compared as well.
Another identifier, number of a thing, name, place or time is another thing. What is no statement, or long, is never
judged. On the pairs of `tests/data/pairs` (seen half): precision 1.00, recall 0.93.

Languages: English, German, Chinese, Japanese (`words`); texts in others contradict each other only by a number or a
name. Pure functions of some 0.1 ms, called on `add`.
"""

import unicodedata
from collections.abc import Sequence
from difflib import SequenceMatcher

from memoryd.client.patterns import compile_late
from memoryd.daemon.language import words
from memoryd.daemon.language.reading import Statement, has_digit, is_number, read_statement, stem

MAX_WORDS = 30
MAX_CHARS = 250
_LEAST_SHARED, _LEAST_SHARE = 1.0, 0.3  # words, and share of the shorter statement's, for one that reports a change
_HEAD_CHARS = 2000  # of long texts are compared first: most differ there
_VALUE_WORDS = 2
_SHORT = 14  # words of a statement about a state
_MOST_SHARED = 1.6  # words that two statements about a quantity share
_MOST_CLAUSES = 9  # pairs of clauses that are looked at
_MEASURE = words.LIGHT | {stem(word) for word in words.MEASURE}
_ARTICLES = frozenset({"the", "The", "a", "an", "An"})  # "A" is a name as well
_IDENTIFIER = compile_late(r"^[^\W\d_]+[-_]?[0-9]|^[0-9]+[a-z]+[0-9]")


def is_same(old: str, new: str) -> bool:
    """Return whether two texts say the same, so that the new one may replace the old one."""
    if max(len(old), len(new)) > _HEAD_CHARS and _is_other_head(old, new):
        return False
    one, other = _simplify(old), _simplify(new)
    if one == other or not one or not other:
        return one == other
    is_english = bool(words.ENGLISH & set(f"{one} {other}".casefold().split()))
    return _fold(one, is_english) == _fold(other, is_english)


def _is_other_head(old: str, new: str) -> bool:
    """Return whether texts differ in their first words, apart from the last ones of these, which may be cut."""
    one, other = (_fold(_simplify(text[:_HEAD_CHARS]), True) for text in (old, new))
    sure = min(len(one), len(other)) - 2
    return one[: max(sure, 0)] != other[: max(sure, 0)]


def find_contradiction(old: str, new: str) -> str | None:
    """Return which rule sees that the newer statement contradicts the older one, None if none does."""
    if max(len(old), len(new)) > MAX_CHARS or any(words.NO_STATEMENT.search(text.strip()) for text in (old, new)):
        return None
    old, new = words.GREETING.sub("", old), words.GREETING.sub("", new)
    one, two = read_statement(old), read_statement(new)
    if not one.content or not two.content or max(len(one.words), len(two.words)) > MAX_WORDS:
        return None
    if words.VAGUE.search(old.casefold()) or any(words.EXCEPT.search(text.casefold()) for text in (old, new)):
        return None
    if _is_other_quantity(old, new, one, two):
        return "quantity"
    if words.ADDITIVE & two.keys or words.ADDED.search(new):
        return _find_rule(one, two) if one.negative != two.negative else None
    parts = [(read_statement(first), read_statement(second)) for first in _split(old) for second in _split(new)]
    clauses = [pair for pair in parts if pair[0].content and pair[1].content][:_MOST_CLAUSES]
    if _is_other_identifier(one, two):
        clauses = []  # of two things
    is_whole = len(clauses) < 2 or one.negative == two.negative  # else one clause denies, which may be another one
    found = [_find_rule(*pair) for pair in ([(one, two)] if is_whole else []) + clauses]
    if rule := next(filter(None, found), None):
        return rule
    is_changed = _is_change(old, new, one, two) or any(_is_change(old, new, one, part) for _, part in clauses)
    return "change" if is_changed else None


def _split(text: str) -> list[str]:
    """Return the parts of one sentence between commas, none where one of them is a mere addition of one word."""
    if words.SENTENCES.search(text):
        return []
    parts = words.CLAUSE.split(text.strip())
    is_added = any(part.isascii() and len(part.split()) == 1 for part in parts)
    return [] if is_added or words.CIRCUMSTANCE.match(text.strip().casefold()) else parts


def _find_rule(one: Statement, two: Statement) -> str | None:
    only_old, only_new = _is_exclusive(one, two), _is_exclusive(two, one)
    if one.negative != two.negative:
        return "polarity" if _is_denied(one, two, only_old, only_new) else None
    is_other = _is_other_number(one, two, only_old, only_new) or _is_other_value(one, two)
    if is_other or _is_other_measure(one, two, only_old, only_new):
        return "value"
    is_turned = _is_opposite(only_old, only_new) or _is_turned_round(one, two, only_old, only_new)
    return "value" if is_turned and set(one.content) & set(two.content) else None


def _is_change(old: str, new: str, one: Statement, two: Statement) -> bool:
    """Return whether the newer statement says that something changed that the older one is about."""
    old, new = old.casefold(), new.casefold()
    only_old, only_new = _is_exclusive(one, two), _is_exclusive(two, one)
    if not _is_about_the_same(one, two) or (one.negative != two.negative and _is_any_opposite(only_old, only_new)):
        return False
    if words.PENDING.search(old) and words.DONE.search(new) and _is_done(one, two, only_old, only_new):
        return True
    corrected = None if words.CORRECTED.search(old) else words.CORRECTED.search(new)
    if corrected and only_new and stem(corrected[1]) in one.content[1:]:
        return True
    if (one.content[0] in only_old and two.content[0] in only_new) or _is_other_identifier(one, two):
        return False  # about another thing
    if (one.keys - two.keys) & words.PLACES and (two.keys - one.keys) & words.PLACES:
        return False  # about another place
    is_left = bool(only_old or words.FROM.search(new))
    return is_left and bool(only_new and words.CHANGE.search(new) and not words.CHANGE.search(old))


def _is_done(one: Statement, two: Statement, only_old: list[str], only_new: list[str]) -> bool:
    """Return whether of two short statements the newer may say that what the older one waits for is done."""
    is_short = max(len(one.words), len(two.words)) <= _SHORT
    is_new = bool(only_old or only_new) and not two.negative
    return is_short and is_new and not _is_of_two(one, two, only_old, only_new)


def _is_of_two(one: Statement, two: Statement, only_old: list[str], only_new: list[str]) -> bool:
    """Return whether two states are of two things: of two numbers, or beginning otherwise with only a state shared."""
    if any(map(has_digit, only_old)) and any(map(has_digit, only_new)):
        return True  # invoices 7 and 8
    shared = {word for word in set(one.content) & set(two.content) - words.STATES if not _is_state(word)}
    return one.content[0] in only_old and two.content[0] in only_new and sum(map(_weight, shared)) < 1


def _is_state(word: str) -> bool:
    return bool(words.DONE.search(word) or words.PENDING.search(word))


# The rules -----------------------------------------------------------------------------------------------------------


def _is_denied(one: Statement, two: Statement, only_old: list[str], only_new: list[str]) -> bool:
    """Return whether what one affirms the other denies: nothing of content is said by both alone, but a state."""
    old, new = ([word for word in only if word not in words.LIGHT] for only in (only_old, only_new))
    alone = bool(old and new) and not {*old, *new} <= words.STATES
    is_twice = _is_any_opposite(old, new)  # closed, not open: the same
    return len(set(one.content) & set(two.content)) >= 2 and not alone and not is_twice


def _is_other_number(one: Statement, two: Statement, only_old: list[str], only_new: list[str]) -> bool:
    """Return whether all that differs is a number after at least two words of content: a value of theirs."""
    if len(only_old) != 1 or len(only_new) != 1 or not (is_number(only_old[0]) and is_number(only_new[0])):
        return False
    at = min(one.content.index(only_old[0]), two.content.index(only_new[0]))
    return at >= 2 and not (one.keys | two.keys) & words.PAST


def _is_other_measure(one: Statement, two: Statement, only_old: list[str], only_new: list[str]) -> bool:
    """Return whether the statements say two numbers of the same, in other words: one may say what else happened."""
    found, rest = [], []
    for said, only in ((one, only_old), (two, only_new)):
        numbers = [word for word in only if is_number(word)]
        if len(numbers) != 1:
            return False
        at = said.places[said.content.index(numbers[0])]
        found.append((said.words[at].before, said.words[at + 1].key if at + 1 < len(said.words) else ""))
        rest.append([word for word in only if word not in _MEASURE and word != numbers[0]])
    keys = one.keys | two.keys
    if keys & words.PAST or (one.keys ^ two.keys) & words.ABOUT or _measure_shared(one, two) < _MOST_SHARED:
        return False
    if all(rest) or len(rest[0] + rest[1]) > _VALUE_WORDS or _is_narrower(one, rest[0]) or _is_narrower(two, rest[1]):
        return False
    return all(unit in words.UNITS | words.TIMES or before in words.STOP for before, unit in found)


def _is_narrower(said: Statement, only: list[str]) -> bool:
    """Return whether one of these words says which of several: it is before what both name, or after `of`, `in`."""
    for word in only:
        at = said.places[said.content.index(word)]
        is_before = any(place == at + 1 and stem(said.words[place].key) not in only for place in said.places)
        if is_before or any(token.key in words.WITHIN for token in said.words[max(0, at - 2) : at]):
            return True
    return False


def _is_other_value(one: Statement, two: Statement) -> bool:
    """Return whether the statements are equal but for one or two words in a row, and these say a value."""
    matcher = SequenceMatcher(None, one.content, two.content, autojunk=False)
    blocks = [block for block in matcher.get_opcodes() if block[0] != "equal"]
    if len(blocks) != 1 or blocks[0][0] != "replace":
        return False
    _, first, last, start, end = blocks[0]
    size = last - first
    is_last = (
        last == len(one.content) and end == len(two.content) and one.words[one.places[first]].before in words.MEANS
    )
    if (size != end - start and not is_last) or max(size, end - start) > _VALUE_WORDS or size == len(one.content):
        return False
    if not (_is_unbroken(one.places[first:last]) and _is_unbroken(two.places[start:end])):
        return False
    return _is_value(one, two, first, last)


def _is_other_identifier(one: Statement, two: Statement) -> bool:
    """Return whether the statements begin with things of one name and two numbers or identifiers."""
    pairs = [(one.words[at], two.words[other]) for at, other in zip(one.places[:2], two.places[:2], strict=False)]
    return any(
        has_digit(old.key) and has_digit(new.key) and old.key != new.key and old.before == new.before
        for old, new in pairs
    )


def _is_other_quantity(old: str, new: str, one: Statement, two: Statement) -> bool:
    """Return whether one says it of all or of none, the other of some alone."""
    old, new = old.casefold(), new.casefold()
    pairs = ((words.WHOLE.search(old), words.PART.search(new)), (words.PART.search(old), words.WHOLE.search(new)))
    if not any(all(pair) for pair in pairs) or (words.PART.search(old) and words.PART.search(new)):
        return False
    bare = [read_statement(words.PART.sub(" ", words.WHOLE.sub(" ", text))) for text in (old, new)]
    rest = [
        [word for word in only if word not in words.LIGHT]
        for only in (_is_exclusive(*bare), _is_exclusive(*reversed(bare)))
    ]
    is_one = not all(rest) or _is_opposite(*rest)  # else they are about two things
    return is_one and _measure_shared(one, two) >= _MOST_SHARED and _is_about_the_same(one, two)


def _is_any_opposite(only_old: list[str], only_new: list[str]) -> bool:
    return any(_is_pair_of_opposites(word, other) for word in only_old for other in only_new)


def _is_pair_of_opposites(word: str, other: str) -> bool:
    if word.endswith(other) or other.endswith(word):
        size = min(len(word), len(other))
        return (word[:-size] or other[:-size]) in words.DENYING  # encrypted, unencrypted
    return (word, other) in words.OPPOSITES


def _is_opposite(only_old: list[str], only_new: list[str]) -> bool:
    """Return whether one says the opposite of the other, and one of the two nothing else."""
    return _is_any_opposite(only_old, only_new) and min(len(only_old), len(only_new)) == 1


def _is_turned_round(one: Statement, two: Statement, only_old: list[str], only_new: list[str]) -> bool:
    """Return whether one begins with a value and the other ends with another: `X leads it`, `it is led by Y`."""
    if not 0 < len(only_old) <= _VALUE_WORDS >= len(only_new) > 0 or len(set(one.content) & set(two.content)) < 2:
        return False
    return any(
        first.content[:2].count(only[0]) and second.content[-len(other) :] == other and _is_named(second, other[0])
        for first, only, second, other in ((one, only_old, two, only_new), (two, only_new, one, only_old))
        if first.content[-1] not in only and second.content[0] not in other
    )


def _is_named(said: Statement, word: str) -> bool:
    """Return whether a word of content is what is said to be it, or who does it: `it is X`, `it is done by the X`."""
    at = said.places[said.content.index(word)]
    return any(token.before in words.BY for token in said.words[max(0, at - 1) : at + 1])


def _is_value(one: Statement, two: Statement, first: int, last: int) -> bool:
    """Return whether the words of content from `first` to `last`, which differ, say a value of what is before them."""
    old, new = one.words[one.places[first]], two.words[two.places[first]]
    keys = one.keys | two.keys
    is_followed = last < len(one.content) or last - first > 1
    if is_followed and any(_IDENTIFIER.search(word) for word in one.content[first:last]):
        return False  # test case TC-204 fails
    is_amount = is_number(old.key)
    if is_amount != is_number(new.key) or {old.key, new.key} & words.PLACES:
        return False
    if (old.key.removesuffix("s") in words.TIMES) != (new.key.removesuffix("s") in words.TIMES):
        return False  # when, and something else
    if (is_amount or {old.key, new.key} & words.TIMES) and keys & words.PAST:
        return False  # two events at two times
    if first == 0:  # who: another one only where there is one for it
        return bool(keys & words.ROLES) and not is_amount
    if _is_of_another(one, one.places[first]):
        return False
    if is_amount:
        is_named = (first == 1 and is_followed and old.before == one.words[one.places[0]].key) or last - first > 1
        unit = one.words[one.places[first + 1 :][0] if first + 1 < len(one.places) else -1].key
        is_measured = unit in words.UNITS | words.TIMES  # I weigh 81 kilos
        return is_measured or not is_named  # else it is the number of a thing: PR 12 is merged
    return not keys & words.OPEN and not _is_one_of_some(one, one.places[first])


def _is_of_another(one: Statement, at: int) -> bool:
    """Return whether a word belongs to what something is said of, or used for: `the X limit is five`, `used for X`."""
    is_subject = any(word.key in words.IS for word in one.words[at + 1 :])
    return is_subject or (one.words[at].before in words.FOR and bool(one.keys & words.USE))


def _is_one_of_some(one: Statement, at: int) -> bool:
    """Return whether a word is what somebody or something has one of: `it has a garden`."""
    before = [word.key for word in one.words[max(0, at - 2) : at]]
    return len(before) == 2 and before[0] in words.HAVE and before[1] in words.ONE_OF_SOME


def _is_about_the_same(one: Statement, two: Statement) -> bool:
    size = _measure_shared(one, two)
    whole = min(sum(map(_weight, set(one.content))), sum(map(_weight, set(two.content))))
    least = (2 if max(len(one.words), len(two.words)) > _SHORT else 1) * _LEAST_SHARED
    return size >= least and size >= _LEAST_SHARE * whole


def _measure_shared(one: Statement, two: Statement) -> float:
    return sum(_weight(word) for word in set(one.content) & set(two.content) if not is_number(word))


def _weight(word: str) -> float:
    return 0.34 if len(word) == 1 and not word.isascii() else 1.0


def _is_exclusive(one: Statement, other: Statement) -> list[str]:
    known = set(other.content)
    return [word for word in one.content if word not in known]


def _is_unbroken(places: Sequence[int]) -> bool:
    return places[-1] - places[0] == len(places) - 1


# The same ------------------------------------------------------------------------------------------------------------


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

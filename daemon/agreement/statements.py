"""Decide whether two short statements say the same, and whether the newer one contradicts the older one.

Two texts say the same if they differ only in articles, contractions, punctuation and the case of the first word:
storing a rephrasing twice costs little, while merging similar texts destroys information. A contradiction gives another
value for the same attribute of the same thing. It is reported only if the content words show it (`Rule`):

- *polarity*: one affirms what the other denies.
- *value*: one word or number differs where a value is given.
- *quantity*: one says something of all or none, the other of some.
- *change*: the newer one says that something changed, or that something pending is done.

Clauses between commas are compared too. Statements with different identifiers, item numbers, names, places or times are
about different things, and two statements in the past tense are two events. Long texts, questions and texts without a
named subject are not judged. `tells_change` is a weaker test, used only to order two hits.

Supports English, German, Chinese and Japanese (`words`); in other languages only numbers and names are compared. Each
rule is covered by pairs in `tests/data/pairs`. Do not apply the rules to turns: there they are almost always wrong.
Pure functions that take about 0.1 ms, called on `add`.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Literal

from memoryd.client.patterns import compile_late
from memoryd.daemon.agreement import words
from memoryd.daemon.agreement.parsing import Statement, has_digit, is_number, read_statement, stem

Rule = Literal["polarity", "value", "quantity", "change"]

MAX_CHARS = 200
_CACHED = 64  # texts, since the best hits are compared with each other
_MIN_SHARE, _MIN_SHARE_OF_LONGER = 0.3, 0.25  # of shared words (shorter, longer statement) to be about the same thing
_MIN_SHARED = 1.6  # words shared by two statements about one quantity
_HEAD_CHARS = 2000  # compared first, since most long texts differ there
_VALUE_WORDS = 2  # at most, in a value
_NAME_CHARACTERS = 4  # at most, in a person's Chinese name
_MAX_PAIRS = 9  # of clauses
_MEASURE = words.LIGHT | {stem(word) for word in words.MEASURE}
_ARTICLES = frozenset({"the", "The", "a", "an", "An"})  # "A" is a name as well
_IDENTIFIER = compile_late(r"^[^\W\d_]+[-_]?[0-9]|^[0-9]+[a-z]+[0-9]")


# The same ------------------------------------------------------------------------------------------------------------


def is_same(old: str, new: str) -> bool:
    """Return whether two texts say the same, so that the new one may replace the old one."""
    if max(len(old), len(new)) > _HEAD_CHARS:
        heads = [_fold(_simplify(text[:_HEAD_CHARS]), True) for text in (old, new)]
        sure = max(0, min(map(len, heads)) - 2)  # the last words may be cut
        if heads[0][:sure] != heads[1][:sure]:
            return False
    one, other = _simplify(old), _simplify(new)
    if one == other or not one or not other:
        return one == other
    is_english = bool(words.ENGLISH & set(f"{one} {other}".casefold().split()))
    return _fold(one, is_english) == _fold(other, is_english)


def _simplify(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def _fold(text: str, is_english: bool) -> list[str]:
    """Return the words of a text; for English without contractions, articles and quotation marks."""
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


# A contradiction -----------------------------------------------------------------------------------------------------


def find_contradiction(old: str, new: str) -> Rule | None:
    """Return the rule by which the newer statement contradicts the older one, None if it does not."""
    if max(len(old), len(new)) > MAX_CHARS or any(words.NO_STATEMENT.search(text.strip()) for text in (old, new)):
        return None
    if words.GUESS.search(new) or any(words.EXCEPT.search(text) for text in (old, new)):
        return None
    one, two = read_statement(old), read_statement(new)
    if not one.content or not two.content or _are_two_places(one, two):
        return None
    if _is_other_quantity(old, new, one, two):
        return "quantity"
    if words.ADDITIVE & two.keys or words.ADDED.search(new):
        return None
    clauses = [(read_statement(first), read_statement(second)) for first in _split(old) for second in _split(new)]
    clauses = clauses[:_MAX_PAIRS]
    if _is_other_identifier(one, two):
        clauses = []
    is_whole = len(clauses) < 2 or one.negative == two.negative  # otherwise compare only clause by clause
    for pair in ([(one, two)] if is_whole else []) + clauses:
        if rule := _find_rule(*pair):
            return rule
    is_changed = any(_is_changed(old, new, one, part) for part in (two, *(part for _, part in clauses)))
    return "change" if is_changed else None


def tells_change(old: str, new: str) -> bool:
    """Return whether the newer of two statements about one subject says, in other words, that something changed.

    Less certain than a contradiction, and used only to order two answers to one question.
    """
    if not announces_change(new) or len(old) > MAX_CHARS or words.NO_STATEMENT.search(old.strip()):
        return False
    one, two = read_statement(old), read_statement(new)
    if _are_two_places(one, two) or _is_other_identifier(one, two):
        return False
    # Two events: `failed on Monday`, `succeeded on Tuesday`.
    times = [{key for key in keys if key.removesuffix("s") in words.TIMES} for keys in (one.keys, two.keys)]
    is_event = times[0] - times[1] and times[1] - times[0] and (one.keys | two.keys) & words.PAST
    return not is_event and _weigh(set(one.content) & set(two.content)) >= 1


@lru_cache(_CACHED)
def announces_change(text: str) -> bool:
    """Return whether a text states that something changed, or why, and not that something was added."""
    if len(text) > MAX_CHARS or words.NO_STATEMENT.search(text.strip()) or words.GUESS.search(text):
        return False
    told = text.casefold()
    if not any(words_of.search(told) for words_of in (words.CHANGE, words.CORRECTED, words.RETOLD)):
        return False
    return not (words.ADDITIVE_ALONE & read_statement(text).keys or words.ADDED.search(text))


def shares_answer(question: str, old: str, new: str) -> bool:
    """Return whether both statements share a word that is not in the question, which the newer one then replaces."""
    asked, one, two = (set(read_statement(text).content) for text in (question, old, new))
    return _weigh((one - asked) & two) >= 1


def _is_past(statement: Statement) -> bool:
    """Return whether a statement is in the past tense: `was bought`, not `is bought`."""
    return bool(statement.keys & words.PAST) and not statement.keys & words.PRESENT


def _are_two_places(one: Statement, two: Statement) -> bool:
    """Return whether the statements are about two places (staging, production)."""
    return bool((one.keys - two.keys) & words.PLACES and (two.keys - one.keys) & words.PLACES)


def _split(text: str) -> list[str]:
    """Return the clauses of a text; none if one is a single word, or is a condition for the others."""
    parts = words.CLAUSE.split(text.strip())
    is_added = any(part.isascii() and len(part.split()) == 1 for part in parts)
    return [] if is_added or words.CIRCUMSTANCE.match(text.strip().casefold()) else parts


def _find_rule(one: Statement, two: Statement) -> Rule | None:
    if _is_past(one) and _is_past(two):
        return None  # two events
    only_old, only_new = _select_only(one, two), _select_only(two, one)
    if one.negative != two.negative:
        # One denies what the other affirms; only one of the two may say more than that.
        says_more = all(any(word not in words.LIGHT for word in only) for only in (only_old, only_new))
        return "polarity" if len(set(one.content) & set(two.content)) >= 2 and not says_more else None
    if (one.keys ^ two.keys) & words.ABOUT:
        return None  # one is merely more precise
    is_other = (
        _is_other_value(one, two)
        or _is_other_measure(one, two, only_old, only_new)
        or _is_reversed(one, two, only_old, only_new)
        or (_has_opposites(only_old, only_new) and min(len(only_old), len(only_new)) == 1)
    )
    return "value" if is_other else None


def _is_other_value(one: Statement, two: Statement) -> bool:
    """Return whether the statements differ in one or two consecutive words, and these are a value."""
    matcher = SequenceMatcher(None, one.content, two.content, autojunk=False)
    blocks = [block for block in matcher.get_opcodes() if block[0] != "equal"]
    if len(blocks) != 1 or blocks[0][0] != "replace":
        return False
    _, first, last, start, end = blocks[0]
    size = last - first
    values = one.content[first:last], two.content[start:end]
    is_name = bool(one.keys & words.ROLES) and all(_is_character(word) for value in values for word in value)
    most = _NAME_CHARACTERS if is_name else _VALUE_WORDS
    if max(map(len, values)) > most or size == len(one.content):
        return False
    is_last = (last, end) == (len(one.content), len(two.content))
    if size != end - start and not is_name and not (is_last and one.words[one.places[first]].before in words.MEANS):
        return False
    if not (_is_unbroken(one.places[first:last]) and _is_unbroken(two.places[start:end])):
        return False
    return _is_value(one, two, first, last)


def _is_character(word: str) -> bool:
    return len(word) == 1 and not word.isascii()


def _is_unbroken(places: Sequence[int]) -> bool:
    return places[-1] - places[0] == len(places) - 1


def _is_value(one: Statement, two: Statement, first: int, last: int) -> bool:
    """Return whether the differing content words from `first` to `last` are a value of the words before them."""
    old, new = one.words[one.places[first]], two.words[two.places[first]]
    keys = one.keys | two.keys
    is_followed = last < len(one.content) or last - first > 1
    if is_followed and any(_IDENTIFIER.search(word) for word in one.content[first:last]):
        return False  # test case TC-204 fails
    is_amount = is_number(old.key)
    if is_amount != is_number(new.key):
        return False
    if (old.key.removesuffix("s") in words.TIMES) != (new.key.removesuffix("s") in words.TIMES):
        return False  # one is a time, the other is not
    if (is_amount or {old.key, new.key} & words.TIMES) and keys & words.PAST:
        return False  # two events at two times
    if first == 0:  # the subject: another one contradicts only in a role with a single holder
        return bool(keys & words.ROLES) and not is_amount
    is_purpose = old.before in words.FOR and old.key not in words.TIMES
    if is_purpose or any(word.key in words.IS for word in one.words[one.places[first] :]):
        return False  # it names the thing, as in "the limit of X is five"
    if is_amount:
        is_named = old.before == one.words[one.places[0]].key or last - first > 1
        unit = one.words[one.places[first + 1 :][0] if first + 1 < len(one.places) else -1].key
        return unit in words.UNITS | words.TIMES or not is_named  # otherwise it is an item number: PR 12 is merged
    return not any(word.key in words.OPEN and word.before not in words.BY for word in (*one.words, *two.words))


def _is_other_measure(one: Statement, two: Statement, only_old: list[str], only_new: list[str]) -> bool:
    """Return whether the statements give two numbers for the same quantity in different words."""
    rest: list[list[str]] = []
    is_amount = False
    for said, only, other in ((one, only_old, two), (two, only_new, one)):
        numbers = [word for word in only if is_number(word)]
        if len(numbers) != 1:
            return False
        at = said.places[said.content.index(numbers[0])]
        unit, before = said.words[at + 1].key if at + 1 < len(said.words) else "", said.words[at].before
        is_said = unit in words.UNITS | words.TIMES or before in words.STOP
        if not is_said and before not in other.keys:
            return False
        is_amount = is_amount or is_said
        rest.append([word for word in only if word not in _MEASURE and word not in (numbers[0], stem(unit))])
        if any(_is_qualifier(said, word) for word in rest[-1]):
            return False
    is_shared = is_amount and _weigh(set(one.content) & set(two.content)) >= _MIN_SHARED
    return not all(rest) and not (one.keys | two.keys) & words.PAST and is_shared


def _is_qualifier(said: Statement, word: str) -> bool:
    """Return whether a content word selects one of several things: `the limit of the X`."""
    at = said.places[said.content.index(word)]
    return any(token.key in words.WITHIN for token in said.words[max(0, at - 2) : at])


def _is_reversed(one: Statement, two: Statement, only_old: list[str], only_new: list[str]) -> bool:
    """Return whether one begins with a value and the other ends with another one: `X leads it`, `it is led by Y`."""
    if not 0 < len(only_old) <= _VALUE_WORDS >= len(only_new) > 0 or len(set(one.content) & set(two.content)) < 2:
        return False
    return any(
        only[0] in first.content[:2] and second.content[-len(other) :] == other and _is_complement(second, other[0])
        for first, only, second, other in ((one, only_old, two, only_new), (two, only_new, one, only_old))
        if first.content[-1] not in only and second.content[0] not in other
    )


def _is_complement(said: Statement, word: str) -> bool:
    """Return whether a content word is a complement or an agent: `it is X`, `it is done by the X`."""
    at = said.places[said.content.index(word)]
    return any(token.before in words.BY for token in said.words[max(0, at - 1) : at + 1])


def _is_other_quantity(old: str, new: str, one: Statement, two: Statement) -> bool:
    """Return whether one is about all or none of something, and the other about some of it."""
    old, new = old.casefold(), new.casefold()
    pairs = ((words.WHOLE.search(old), words.PART.search(new)), (words.PART.search(old), words.WHOLE.search(new)))
    if not any(all(pair) for pair in pairs) or (words.PART.search(old) and words.PART.search(new)):
        return False
    bare = [read_statement(words.PART.sub(" ", words.WHOLE.sub(" ", text))) for text in (old, new)]
    rest = [
        [word for word in only if word not in words.LIGHT]
        for only in (_select_only(*bare), _select_only(*reversed(bare)))
    ]
    return not all(rest) and _is_about_the_same(one, two)


def _is_changed(old: str, new: str, one: Statement, two: Statement) -> bool:
    """Return whether the newer statement says that the subject of the older one has changed."""
    old, new = old.casefold(), new.casefold()
    if not _is_about_the_same(one, two) or _is_other_identifier(one, two):
        return False
    only_old, only_new = _select_only(one, two), _select_only(two, one)
    is_alike = one.negative == two.negative
    if not is_alike and _has_opposites(only_old, only_new):
        return False  # "closed" and "not open" are the same
    if words.PENDING.search(old) and words.DONE.search(new) and not two.negative:
        return True
    corrected = None if words.CORRECTED.search(old) else words.CORRECTED.search(new)
    if corrected and stem(corrected[1]) in one.content[1:]:
        return True
    if one.content[0] in only_old and two.content[0] in only_new:
        return False  # about different things
    return bool(only_new and words.CHANGE.search(new) and (is_alike or not words.CHANGE.search(old)))


def _is_other_identifier(one: Statement, two: Statement) -> bool:
    """Return whether the subjects have the same name but different numbers or identifiers."""
    pairs = [(one.words[at], two.words[other]) for at, other in zip(one.places[:2], two.places[:2], strict=False)]
    return any(
        has_digit(old.key) and has_digit(new.key) and old.key != new.key and old.before == new.before
        for old, new in pairs
    )


def _has_opposites(only_old: list[str], only_new: list[str]) -> bool:
    return any(_is_opposite(word, other) for word in only_old for other in only_new)


def _is_opposite(word: str, other: str) -> bool:
    if word.endswith(other) or other.endswith(word):
        size = min(len(word), len(other))
        return (word[:-size] or other[:-size]) in words.DENYING  # encrypted, unencrypted
    return (word, other) in words.OPPOSITES


def _is_about_the_same(one: Statement, two: Statement) -> bool:
    shared = _weigh(set(one.content) & set(two.content) - _MEASURE)
    shorter, longer = sorted(_weigh(set(said.content)) for said in (one, two))
    return shared >= max(1.0, _MIN_SHARE * shorter, _MIN_SHARE_OF_LONGER * longer)


def _weigh(found: Iterable[str]) -> float:
    """Count words without numbers; a Chinese character counts as a third of a word."""
    return sum(0.34 if _is_character(word) else 1.0 for word in found if not is_number(word))


def _select_only(one: Statement, other: Statement) -> list[str]:
    """Return the content words that the other statement does not have."""
    known = set(other.content)
    return [word for word in one.content if word not in known]

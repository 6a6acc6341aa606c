"""Which of two statements about one subject holds by now, and which statements are of a day only. English, by rules.

A statement is taken apart into what it is about (topics) and what it says of it (values: numbers, days, names, code).
A newer statement puts an older one out of date when both have the same subject and it says that something changed, or
when it merely gives another value of the same kind. In doubt both stay: a fact kept too long costs little, a lost one
much. Pure functions.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from memoryd.client.patterns import compile_late
from memoryd.daemon.language import rating

DURABLE = 0.6  # importance from which a plain statement of a daily file may be kept
_ABOUT_ALL, _ABOUT_HALF = 0.75, 0.5  # share of an older statement's topics that a newer one must speak of


def _find_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_STOP = _find_words(
    "a an the this that these those of for in on at to by with from as and or but is are was were be been being it its"
    " we our us i my me you your they their them he she his her there here has have had do does did will would shall"
    " can could may so than then too very just all any some each both via per into about after before since until"
    " over under up out off through within between against among during above below inside behind down around away"
    " when where which who whom whose what how if because while also only again please team"
)
_GENERIC = _find_words(
    "use run keep set live make take get work go decide agree choose chose switch move change replace plan now"
    " decision correction update note reminder instead longer anymore not no never rather back new old become became"
    " stay remain happen say said need want start begin today currently moved switched changed decided agreed replaced"
)
_OPPOSITES = {  # what says the same of a subject, denied
    "forbidden": "allow",
    "prohibited": "allow",
    "banned": "allow",
    "disabled": "enabl",
    "optional": "requir",
    "closed": "open",
    "inactive": "activ",
}
_ALIKE = {"permitt": "allow", "permit": "allow", "mandatory": "requir", "obligatory": "requir"}
_RULED = compile_late(rf"\b(?:is|are) (?:not )?(?:allowed|permitted|{'|'.join(_OPPOSITES)})\b", re.I)
_NEGATIONS = compile_late(
    rf"\b(?:not|no|never|none|without|cannot|stop(?:s|ped)?|{'|'.join(_OPPOSITES)})\b|n't\b", re.I
)
_CHANGE = compile_late(
    r"\b(?:now|instead of|rather than|no longer|any ?more|mov(?:es?|ed|ing)|switch(?:es|ed|ing)?|chang(?:es?|ed|ing)"
    r"|replac(?:es?|ed|ing)|migrat(?:es?|ed|ing)|renamed|correction|updated?|from now on|back to"
    r"|postponed|brought forward|rescheduled|extended|rais(?:es?|ed)|lowered|increased|reduced|bumped|upgraded"
    r"|retired|deprecated|resigned|grew|shrank|rose|fell|swapped|took over"
    r"|takes over|handed over|shifted|pushed|became|turns out)\b",
    re.I,
)
_GONE = compile_late(  # what follows these words held before
    r"\b(?:instead of|rather than|no longer|replac(?:es|ed|ing)|(?:moved?|migrated|switched|changed|renamed|took over"
    r"|takes over) (?:\w+ ){0,4}?from|retired|deprecated|, not|and not)\s+((?:[\w.:/'-]+\s*){1,3})",
    re.I,
)
_LEFT = compile_late(r"(?<![\w-])([A-Z][\w-]+) (?:has )?(?:retired|left|resigned|quit|stepped down)\b")
_TOKEN = compile_late(r"[^\W_](?:[\w.:/'@+-]*\w)?|\d")
_DAYS = _find_words("monday tuesday wednesday thursday friday saturday sunday noon midnight weekday weekend")
_MONTHS = _find_words(
    "january february march april may june july august september october november december jan feb mar apr jun jul"
    " aug sep sept oct nov dec"
)
_NUMBERS = _find_words(
    "one two three four five six seven eight nine ten eleven twelve twenty thirty fifty hundred thousand"
)
_CODE = compile_late(r"[_/@]|[a-z][A-Z]|\w\.\w|\w-\d")

_GUESS = compile_late(
    r"\b(?:maybe|perhaps|might|considering|wondering|thinking (?:about|of)|not sure|could try|idea:|what if|probably"
    r"|undecided|nothing (?:\w+ )?decided|no decision|someone should)\b|\?\s*$",
    re.I,
)
_OF_THE_DAY = compile_late(
    r"^(?:I |We )?(?:had|went|met|talked|spent|worked|looked|tried|read|wrote|fixed|reviewed|started|finished|cleaned"
    r"|paired|chatted|got|made|took|did|saw|helped|waited|ran|walked|called|answered|debugged|merged|sat|joined|watched"
    r"|ordered|ate|left|came|tested|refactored|tidied|investigated|continued|skimmed|caught)\b"
    r"|\b(?:today|yesterday|tonight|this (?:morning|afternoon|evening)|lunch|coffee|weather|sunny|rain(?:y|ed)?)\b",
    re.I,
)
_LASTING = frozenset({"decision", "rule", "preference", "lesson"})
_HOLDS = compile_late(
    r"\b(?:is|are|uses?|runs?|lives?|listens?|owns?|needs?|prefers?|expects?|has|have|stays?|keeps?|happens?|starts?|ends?"
    r"|costs?|goes|means?|holds?|takes?|works?|belongs?|maintains?|leads?|moved|switched|changed|migrated|took over|now"
    r"|due|deadline)\b",
    re.I,
)
_SOLID = frozenset({"number", "code", "name", "date", "plan"})
_ROLE = compile_late(
    r"^[A-Z][\w-]+(?: and [A-Z][\w-]+)? (?:maintains?|leads?|owns?|manages?|keeps?|handles?|heads?|looks? after"
    r"|took over|takes? over|(?:is|are) (?:responsible|in charge|the))\b"
)
_DANGLING = compile_late(r"^(?:it|this|that|they|he|she|these|those|there|which|same)\b", re.I)


class Said(NamedTuple):
    """A statement taken apart."""

    topics: frozenset[str]
    values: dict[str, str]  # value → its kind
    words: frozenset[str]  # all that carries meaning, as it is and without its ending
    subject: frozenset[str]  # the first of these
    gone: frozenset[str]  # what it says to hold no longer
    is_change: bool
    is_negated: bool


@lru_cache(4096)
def parse_statement(text: str) -> Said:
    """Take a statement apart."""
    topics, values, order = set[str](), dict[str, str](), list[frozenset[str]]()
    for number, found in enumerate(_TOKEN.finditer(text)):
        key, kind = _key(found[0], is_first=number == 0 or text[: found.start()].rstrip()[-1:] in (".", ":", "!"))
        if not key:
            continue
        order.append(frozenset([key, found[0].casefold().removesuffix("'s")]))
        if kind:
            values[key] = kind
        else:
            topics.add(key)
    gone = {key for part in _GONE.findall(text) for key in _take_first_phrase(part)}
    gone |= {name.casefold() for name in _LEFT.findall(text)}
    return Said(
        topics=frozenset(topics),
        values=values,
        words=frozenset().union(*order),
        subject=order[0] if order else frozenset(),
        gone=frozenset(gone),
        is_change=bool(_CHANGE.search(text)),
        is_negated=bool(_NEGATIONS.search(text)),
    )


def _take_first_phrase(text: str) -> Iterator[str]:
    """Yield what carries meaning up to the first word that does not."""
    for word in _TOKEN.findall(text):
        if not (key := _key(word, False)[0]):
            break
        yield key


def _key(word: str, is_first: bool) -> tuple[str, str]:
    """Return what is compared of a word, empty for one that says nothing, and its kind if it is a value."""
    plain = word.casefold().removesuffix("'s")
    if plain in _DAYS or plain.removesuffix("s") in _DAYS or (plain in _MONTHS and word[0].isupper() and not is_first):
        return plain.removesuffix("s"), "date"
    if plain in _STOP or plain in _GENERIC:
        return "", ""
    if plain in _NUMBERS or any(c.isdigit() for c in plain):
        return plain, "number"
    if _CODE.search(word) or (word[0].isupper() and not is_first) or (word.isupper() and len(word) > 1):
        return plain, "name"
    stem = _OPPOSITES.get(plain) or _stem(plain)
    stem = _ALIKE.get(stem, stem)
    return ("", "") if stem in _GENERIC else (stem, "")


def _stem(word: str) -> str:
    for suffix, kept in (("ies", "y"), ("ing", ""), ("ed", ""), ("es", "e"), ("s", "")):
        if word.endswith(suffix) and len(word) - len(suffix) >= 3 and not word.endswith("ss"):
            word = word.removesuffix(suffix) + kept
            break
    return word.removesuffix("e") if len(word) > 4 else word


def find_reason(older: str, newer: str) -> str:
    """Return why a newer statement of like meaning puts an older one out of date; empty when both may hold."""
    if _GUESS.search(newer):
        return ""
    old, new = parse_statement(older), parse_statement(newer)
    if not old.words or not new.words or (old.words == new.words and old.is_negated == new.is_negated):
        return ""
    left = old.topics - new.gone - {_stem(word) for word in new.gone}
    about = _share(left, new.words)
    lost = old.words & new.gone
    if lost and (about >= _ABOUT_HALF or not left) and not old.gone & new.words - new.gone:
        return f"'{' '.join(sorted(lost))}' holds no longer"
    has_subject = bool(old.subject & new.words)
    replaced, replacing = _is_exclusive(old, new), _is_exclusive(new, old)
    if (
        new.is_change
        and has_subject
        and about >= _ABOUT_HALF
        and replaced
        and _find_kinds(replaced) & _find_kinds(replacing)
    ):
        return _is_change(replaced, replacing)
    same_subject = bool(old.subject & new.subject)
    both = min(about, _share(new.topics, old.words))
    if not same_subject or both < _ABOUT_ALL:
        return ""
    if replaced and replacing and _find_kinds(replaced) == _find_kinds(replacing) and len(_find_kinds(replaced)) == 1:
        return _is_change(replaced, replacing)
    if not replaced and not replacing and old.is_negated != new.is_negated:
        return "one is negated"
    return ""


def _share(topics: frozenset[str], words: frozenset[str]) -> float:
    return len(topics & words) / len(topics) if topics else 1.0


def _is_exclusive(one: Said, other: Said) -> dict[str, str]:
    return {value: kind for value, kind in one.values.items() if value not in other.words}


def _find_kinds(values: dict[str, str]) -> frozenset[str]:
    """Return the kinds of values; a date with a number in it is a date."""
    kinds = frozenset(values.values())
    return frozenset({"date"}) if kinds == {"date", "number"} else kinds


def _is_change(old: dict[str, str], new: dict[str, str]) -> str:
    return f"{' '.join(old)} became {' '.join(new)}"


def is_durable(text: str) -> bool:
    """Return whether a note of a day states something that holds beyond it."""
    if _GUESS.search(text) or _DANGLING.match(text):
        return False
    if _ROLE.match(text) or _RULED.search(text):
        return True
    if rating.importance(text) < DURABLE:
        return False
    found = frozenset(rating.list_features(text))
    if _OF_THE_DAY.search(text):
        return "decision" in found or "lesson" in found or bool(found & {"rule"} and found & _SOLID)
    holds = _HOLDS.search(text) or _CHANGE.search(text)
    return bool(found & _LASTING) or bool(holds and found & _SOLID)

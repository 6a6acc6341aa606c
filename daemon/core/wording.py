"""What a text says, as a sequence of tokens in which spelling no longer matters: 30 s, thirty seconds and 30-second.

`wordings` reads two texts together, because whether a capital at the start of a sentence is a name, or "using" is a
form of "use", shows in the other text. Only what cannot change a fact is folded; identifiers, versions and names stay
as written. Texts without an English word are only split. Pure functions; called by `agreement`.
"""

import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import NamedTuple

from memoryd.daemon.core import lexicon
from memoryd.daemon.core.tokens import TIME, Token, as_text, clock, split


class Wordings(NamedTuple):
    """Two texts, read in the light of each other."""

    old: list[Token]
    new: list[Token]
    english: bool


Pass = Callable[[list[Token]], list[Token]]


def wordings(old: str, new: str) -> Wordings:
    """Read two texts; equal sequences of keys mean the same apart from pauses."""
    first, second = split(old), split(new)
    both = [*first, *second]
    if not any(token.key in lexicon.ENGLISH for token in both):
        return Wordings(first, second, False)
    known = {stem(token.key) for token in both if token.kind == "word"}
    negated = any(token.key in lexicon.NEGATIONS for token in both)
    return Wordings(_canonical(first, known, negated), _canonical(second, known, negated), True)


def stem(word: str) -> str:
    """Return a word without plural or third person s and in American spelling."""
    if word.endswith("s") and len(word) > 3 and word not in lexicon.NOT_PLURAL:
        word = _singular(word)
    if len(word) > 5:
        word = re.sub(r"our$", "or", re.sub(r"is(e|ation|ed|er|ing)$", r"iz\1", word))
    if len(word) > 4:
        word = re.sub(r"(?<=ch|sh|ss)e$|(?<=[xz])e$", "", re.sub(r"ie$", "y", word))
    return word


def _singular(word: str) -> str:
    if word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-2] if re.search(r"(ch|sh|ss|[xz])es$", word) else word[:-1]


_ROOTS = {stem(word): equal for word, equal in lexicon.SAME.items()}


# Folding ------------------------------------------------------------------------------------------------------------


def _canonical(tokens: list[Token], known: set[str], negated: bool) -> list[Token]:
    """Fold everything that cannot change a fact."""
    passes: tuple[Pass, ...] = (
        _commands,
        _number_words,
        _dates,
        _clocks,
        _units,
        lambda found: _weekdays(found, negated),
        lambda found: [_same(token, known) for token in found],
        lambda found: _progressive(found, known),
        _articles,
        _phrases,
        _frequencies,
    )
    for fold in passes:
        tokens = fold(tokens)
    return tokens


def _commands(tokens: list[Token]) -> list[Token]:
    """Keep the comma in "no, deploys"."""
    found: list[Token] = []
    for index, token in enumerate(tokens):
        found.append(token)
        if token.pause and token.key in lexicon.COMMANDS and index + 1 < len(tokens):
            found.append(Token(",", ",", "sign"))
    return found


def _number_words(tokens: list[Token]) -> list[Token]:
    """Read twenty-five, two hundred and 2 million as figures."""
    found: list[Token] = []
    for token in tokens:
        last = found[-1] if found and found[-1].kind == "number" and not found[-1].pause else None
        small = lexicon.SMALL_NUMBERS.get(token.key, lexicon.TENS.get(token.key))
        if last and token.key in lexicon.MULTIPLES and re.fullmatch(r"[0-9]{1,15}(\.[0-9]{1,15})?", last.key):
            value = as_text(Fraction(last.key) * lexicon.MULTIPLES[token.key])
            found[-1] = Token(value, f"{last.text} {token.text}", "number", token.pause)
        elif last and small and small < 10 and last.text.casefold() in lexicon.TENS:
            found[-1] = Token(str(int(last.key) + small), f"{last.text} {token.text}", "number", token.pause)
        elif small is not None and token.kind != "name":
            found.append(Token(str(small), token.text, "number", token.pause))
        else:
            found.append(token)
    return found


def _dates(tokens: list[Token]) -> list[Token]:
    """Read March 5, 2026, 5 March 2026 and 5th of March 2026 as 2026-03-05."""
    found: list[Token] = []
    index = 0
    while index < len(tokens):
        length = next((n for n in (4, 3, 2) if _date(tokens[index : index + n], n)), 0)
        if length:
            parts = tokens[index : index + length]
            text = " ".join(part.text for part in parts)
            found.append(Token(_date(parts, length) or "", text, "number", parts[-1].pause))
        else:
            found.append(tokens[index])
        index += length or 1
    return found


def _date(parts: list[Token], length: int) -> str | None:
    """Return YYYY-MM-DD, or --MM-DD without a year, if the parts are exactly a date."""
    if len(parts) != length:
        return None
    year = ""
    if length > 2 and re.fullmatch(r"(19|20)[0-9]{2}", parts[-1].key):
        year, parts = parts[-1].key, parts[:-1]
    if len(parts) == 3 and parts[1].key == "of":
        parts = [parts[0], parts[2]]
    if len(parts) != 2 or parts[0].pause:
        return None
    for month_at in (0, 1):
        month, day = _month(parts[month_at]), _day(parts[1 - month_at])
        if month and day:
            return f"{year or '-'}-{month:02}-{day:02}"
    return None


def _month(token: Token) -> int | None:
    if token.kind == "word" and token.key in ("may", "march", "mar", "dec", "sep"):
        return None
    return lexicon.MONTHS.get(token.key.rstrip("^"))


def _day(token: Token) -> int | None:
    digits = re.fullmatch(r"([0-9]{1,2})(?:st|nd|rd|th)?", token.text)
    return int(digits[1]) if digits and 1 <= int(digits[1]) <= 31 else None


def _clocks(tokens: list[Token]) -> list[Token]:
    """Read 3 pm and 3:30 p.m. as 15:00 and 15:30."""
    found: list[Token] = []
    for token in tokens:
        half = token.key.rstrip("^").replace(".", "")
        time = TIME.fullmatch(found[-1].text) if found and half in ("am", "pm") else None
        hour = clock(int(time[1]), time[2], half) if time and not time[3] else None
        if hour:
            found[-1] = Token(hour, f"{found[-1].text} {token.text}", "number", token.pause)
        else:
            found.append(token)
    return [Token("12:00", t.text, "number", t.pause) if t.key == "noon" else t for t in found]


def _units(tokens: list[Token]) -> list[Token]:
    """Join numbers with their units, durations in seconds."""
    found: list[Token] = []
    for token in tokens:
        number = found[-1] if found and found[-1].kind == "number" and not found[-1].pause else None
        key = _quantity(number.key, token) if number else None
        if number and key:
            found[-1] = Token(key, f"{number.text} {token.text}", "number", token.pause)
        else:
            found.append(token)
    return found


def _quantity(number: str, token: Token) -> str | None:
    mixed = len(token.text) < 4 and not token.text.islower()
    unit = token.text if mixed or token.text in lexicon.UNITS else token.key
    if unit in lexicon.UNITS:
        return f"{number} {lexicon.UNITS[unit]}"
    if unit in lexicon.DURATIONS and re.fullmatch(r"[0-9]{1,15}(\.[0-9]{1,15})?", number):
        return as_text(Fraction(number) * Fraction(lexicon.DURATIONS[unit])) + " s"
    return None


def _weekdays(tokens: list[Token], negated: bool) -> list[Token]:
    """Write Mon as monday, drop "on" before a day; "every Friday" is "Fridays" unless something is negated."""
    found: list[Token] = []
    for token in tokens:
        short = lexicon.SHORT_WEEKDAYS.get(token.key) if token.kind != "word" else None
        token = token._replace(key=short or token.key)
        day = token.key.removesuffix("s")
        if day not in lexicon.WEEKDAYS:
            if found and found[-1].key == "on" and re.fullmatch(r"[0-9]{4}-[0-9-]+|--[0-9-]+", token.key):
                found.pop()
            found.append(token)
            continue
        before = found[-1].key if found else ""
        if before in ("every", "each") and not negated and token.key == day:
            found.pop()
            token = token._replace(key=day + "s")
        if found and found[-1].key == "on":
            found.pop()
        found.append(token._replace(key="~" + token.key))
    return found


def _same(token: Token, known: set[str]) -> Token:
    """Replace a word by the one that stands for all its spellings and forms."""
    written = lexicon.MISSPELT.get(token.key, token.key)
    root = stem(written)
    if written in lexicon.SAME:
        return token._replace(key=lexicon.SAME[written])
    if token.kind == "word" or (token.kind == "start" and root in known):
        return token._replace(key=_ROOTS.get(root, root))
    return token._replace(key=written)


def _progressive(tokens: list[Token], known: set[str]) -> list[Token]:
    """Read "is using" as "uses" when the other text has that verb."""
    verbs = {_ROOTS.get(root, root) for root in known}
    found: list[Token] = []
    for token in tokens:
        at = len(found) - (2 if found and found[-1].key == "not" else 1)
        candidates = _verbs(token.key) if token.kind == "word" and at >= 0 and found[at].key == "be" else []
        verb = next((key for key in candidates if key in verbs), None)
        if verb:
            del found[at]
            token = token._replace(key=verb)
        found.append(token)
    return found


def _verbs(word: str) -> list[str]:
    """Return what a word in -ing may be a form of."""
    root = word.removesuffix("ing")
    if root == word or len(root) < 2:
        return []
    if re.search(r"([bdgmnprt])\1$", root):
        roots = [root[:-1]]
    elif re.fullmatch(r"[^aeiou]*[aeiou][^aeiouwxy]", root):
        roots = [root + "e"]
    else:
        roots = [root, root + "e"]
    return [_ROOTS.get(stem(form), stem(form)) for form in roots]


def _articles(tokens: list[Token]) -> list[Token]:
    """Drop articles and fillers; "a" stays in "plan A" and "a few"."""
    found: list[Token] = []
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.key in lexicon.DROPPED:
            continue
        if token.key == "a" and token.kind != "name" and following and not token.pause and _article(following):
            continue
        found.append(token)
    return found


def _article(following: Token) -> bool:
    return following.kind != "sign" and following.key not in ("few", "little", "lot", "bit", "be")


def _phrases(tokens: list[Token]) -> list[Token]:
    """Replace phrases by shorter ones of the same meaning."""
    found: list[Token] = []
    for token in tokens:
        found.append(token)
        for length in (4, 3, 2):
            tail = found[-length:]
            if any(part.pause for part in tail[:-1]):
                continue
            shorter = lexicon.PHRASES.get(tuple(keys(tail)))
            if shorter is not None:
                text = " ".join(part.text for part in tail)
                found[-length:] = [Token(word, text) for word in shorter]
                if shorter:
                    found[-1] = found[-1]._replace(pause=token.pause)
                break
    return found


def _frequencies(tokens: list[Token]) -> list[Token]:
    """Read daily as every day."""
    found: list[Token] = []
    for token in tokens:
        period = lexicon.FREQUENCIES.get(token.key)
        found += [Token("every", token.text), token._replace(key=period)] if period else [token]
    return found


def keys(tokens: Iterable[Token]) -> list[str]:
    """Return what is compared."""
    return [token.key for token in tokens]

"""Figures in a sequence of tokens: written-out numbers, dates, times of the day, quantities and weekdays.

Each pass returns a new sequence in which equal figures have equal keys: dates as 2026-03-05, times in 24 hours,
durations in seconds, weekdays with a ~ before them. A decimal is never shortened: 3.10 is not 3.1. Called by `wording`.
"""

import re
from fractions import Fraction

from memoryd.daemon.language import lexicon
from memoryd.daemon.language.tokens import TIME, Token, as_text, clock

_DECIMAL = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?")
_YEAR = re.compile(r"(19|20)[0-9]{2}")


def figures(tokens: list[Token], negated: bool) -> list[Token]:
    """Give equal figures equal keys; `negated` keeps "every Friday" apart from "Fridays"."""
    for fold in (_number_words, _dates, _clocks, _units, _versions):
        tokens = fold(tokens)
    return _weekdays(_about(tokens), negated)


def _number_words(tokens: list[Token]) -> list[Token]:
    """Read twenty-five, two hundred and 2 million as figures."""
    found: list[Token] = []
    for token in tokens:
        last = found[-1] if found and found[-1].kind == "number" and not found[-1].pause else None
        small = lexicon.SMALL_NUMBERS.get(token.key, lexicon.TENS.get(token.key))
        if last and token.key in lexicon.MULTIPLES and _DECIMAL.fullmatch(last.key):
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
    """Return YYYY-MM-DD, --MM-DD or YYYY-MM if the parts are exactly a date."""
    if len(parts) != length:
        return None
    year = ""
    if _YEAR.fullmatch(parts[-1].key):
        year, parts = parts[-1].key, parts[:-1]
        month = _month(parts[0])
        if month and [part.key for part in parts[1:]] in ([], ["of"]) and not parts[0].pause:
            return f"{year}-{month:02}"
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
    if unit in lexicon.DURATIONS and _DECIMAL.fullmatch(number):
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


def _versions(tokens: list[Token]) -> list[Token]:
    """Drop "version" before 1.2.3."""
    following = [*tokens[1:], None]
    dotted = [token is not None and token.kind == "number" and token.key.count(".") > 0 for token in following]
    return [token for token, drop in zip(tokens, dotted, strict=False) if not (token.key == "version" and drop)]


def _about(tokens: list[Token]) -> list[Token]:
    """Read about 10, around 10 and ~10 as approximately 10."""
    found = list(tokens)
    for index in range(len(tokens) - 1):
        if tokens[index].key in ("about", "around", "~") and tokens[index + 1].kind == "number":
            found[index] = tokens[index]._replace(key="approximately", kind="word")
    return found

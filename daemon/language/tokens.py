"""A text as tokens: words, names, figures, identifiers and signs, with the pauses between them.

Identifiers (paths, URLs, addresses, snake_case, camelCase) stay whole and as written; figures come apart from their
units. Takes time linear in the length of the text. Pure functions; called by `wording`.
"""

import re
import unicodedata
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from memoryd.daemon.language import lexicon

_OPENING, _CLOSING = "([{\"'“‘«`¿¡", ")]}\"'”’»`.,;:!?…。，、；：！？"
_AFTER_CODE = ".,;:!?…)]}"
_PAUSES = frozenset(".,;:!?…-。，、；：！？")
_NUMBER = r"-?(?:[0-9]{1,3}(?:[,_][0-9]{3}){1,4}|[0-9]{1,15})(?:\.[0-9]{1,15})?|-?\.[0-9]{1,15}"
_FIGURE = re.compile(rf"([$€£]?)({_NUMBER})([a-zA-Z%€$£°]*)")
TIME = re.compile(r"([0-9]{1,2})(?::([0-5][0-9]))?(am|pm)?", re.IGNORECASE)
_DATE = re.compile(r"([0-9]{4})([-/])([0-9]{2})\2([0-9]{2})")
_ORDINAL = re.compile(r"([0-9]+)(?:st|nd|rd|th)")
_VERSION = re.compile(r"v([0-9][0-9A-Za-z.+-]*)", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_PART = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?|[0-9]+")
_PREFIXED = re.compile(r"([<>=~≤≥≠±+#]+)(?=[$€£.]?[0-9])")
_ABBREVIATED = lexicon.words("a.m p.m e.g i.e mr mrs ms dr st vs approx etc")
_IS = lexicon.words("it that there he she what who here where how this everything everyone")


class Token(NamedTuple):
    """One word, figure or sign."""

    key: str
    """What is compared."""
    text: str
    """As written, for people."""
    kind: str = "word"
    """word, start (capital at a sentence's start), part (of dark-mode), name, number, identifier or sign."""
    pause: bool = False
    """A comma, full stop or dash follows."""
    article: bool = False
    """An article stood before it."""


def split(text: str) -> list[Token]:
    """Split a text at white space, and those pieces into tokens; keys are casefolded, not yet stemmed."""
    text = unicodedata.normalize("NFC", text).replace("’", "'").replace("−", "-").replace("–", "-").replace("—", " - ")
    pieces = text.split()
    shouting = text.isupper()
    tokens: list[Token] = []
    start = True
    for index, piece in enumerate(pieces):
        following = pieces[index + 1] if index + 1 < len(pieces) else ""
        found, pause = _piece(piece, start, shouting)
        if piece == "-" and tokens and _is_range(tokens[-1], following):
            found = [Token("to", piece)]
        if not found and tokens:
            tokens[-1] = tokens[-1]._replace(pause=True)
        tokens += found
        if pause and found:
            tokens[-1] = found[-1]._replace(pause=True)
        start = piece.rstrip("\"')”’")[-1:] in (".", "!", "?", ":") if pause else (start and not found)
    return tokens


def _is_range(before: Token, following: str) -> bool:
    word = following.strip(_CLOSING).casefold()
    return (before.kind == "number" and following[:1].isdigit()) or (
        _weekday(before.key) is not None and _weekday(word) is not None
    )


def _weekday(word: str) -> str | None:
    word = lexicon.SHORT_WEEKDAYS.get(word, word)
    return word if word in lexicon.WEEKDAYS else None


def _piece(piece: str, start: bool, shouting: bool) -> tuple[list[Token], bool]:
    """Return the tokens of a piece without white space, and whether a pause follows it."""
    core = piece.lstrip(_OPENING)
    core = core.rstrip(_CLOSING.replace("`", "")) if piece.rstrip(_AFTER_CODE)[-1:] == "`" else core.rstrip(_CLOSING)
    core = core.removesuffix("`")
    for mark in "*_":
        if len(core) > 2 and core[0] == core[-1] == mark:
            core = core.strip(mark).rstrip(_CLOSING)
    if not core.strip("-" + _OPENING + _CLOSING):
        dash = not piece.strip("-…") or piece == "..."
        return [] if dash else [Token(piece, piece, "sign")], dash or "?" in piece
    tail = piece[piece.rfind(core) + len(core) :]
    tokens = list(_tokens(core, start, shouting))
    if "?" in tail:
        tokens.append(Token("?", "?", "sign"))
    pause = any(mark in _PAUSES for mark in tail) and core.casefold() not in _ABBREVIATED
    return tokens, pause


def _tokens(core: str, start: bool, shouting: bool) -> Iterator[Token]:
    prefix = _PREFIXED.match(core)
    if prefix:
        yield Token(prefix[1], prefix[1], "sign")
        core = core[prefix.end() :]
    figure = _figure(core) or _span(core)
    if figure:
        yield from figure
    elif _WORD.fullmatch(core):
        yield from _word(core, start, shouting)
    elif "-" in core and all(_PART.fullmatch(part) for part in core.split("-")):
        for index, part in enumerate(core.split("-")):
            for token in _figure(part) or _word(part, start and not index, shouting):
                yield token._replace(kind="part") if token.kind == "word" else token
    else:
        yield _identifier(core)


def _figure(core: str) -> list[Token] | None:
    """Read a number, date, time, ordinal, version or sum of money; a unit becomes a token of its own."""
    if date := _DATE.fullmatch(core):
        return [Token(f"{date[1]}-{date[3]}-{date[4]}", core, "number")]
    if (time := TIME.fullmatch(core)) and (time[2] or time[3]):
        return [Token(clock(int(time[1]), time[2], time[3]) or core.casefold(), core, "number")]
    if ordinal := _ORDINAL.fullmatch(core):
        return [Token(lexicon.ORDINALS.get(int(ordinal[1][:4]), core), core, "number")]
    if version := _VERSION.fullmatch(core):
        return [Token("version", core), Token(version[1], core, "number")]
    found = _FIGURE.fullmatch(core)
    if not found:
        return None
    number, unit = _plain(found[2]), found[3]
    if unit == "k" or (found[1] and unit in ("K", "m", "M")):
        number, unit = as_text(Fraction(number) * (1_000_000 if unit in "mM" else 1000)), ""
    unit = found[1] or unit
    if not unit:
        return [Token(number, core, "number")]
    if unit not in lexicon.DURATIONS and unit not in lexicon.UNITS:
        return None
    return [Token(number, found[2], "number"), Token(unit, unit)]


def _span(core: str) -> list[Token] | None:
    """Read 5-10, 9am-5pm or Mon-Fri as "from … to"; None when it is something else."""
    parts = core.split("-")
    if len(parts) != 2 or not all(parts):
        return None
    days = [_weekday(part.casefold()) for part in parts]
    if all(days):
        return [Token(parts[0].casefold(), parts[0]), Token("to", "-"), Token(parts[1].casefold(), parts[1])]
    first, last = (_figure(part) if part[0].isdigit() else None for part in parts)
    return [*first, Token("to", "-"), *last] if first and last else None


def _word(core: str, start: bool, shouting: bool) -> Iterator[Token]:
    """Split contractions; tell names from words."""
    key = core.casefold()
    base, apostrophe, rest = key.partition("'")
    if key.endswith("n't"):
        verb = {"ca": "can", "wo": "will", "sha": "shall"}.get(key[:-3], key[:-3])
        yield from (Token(verb, verb), Token("not", "not"))
        return
    if key == "cannot":
        yield from (Token("can", "can"), Token("not", "not"))
        return
    if key in ("dont", "doesnt", "isnt", "arent"):
        yield from (Token(key[:-2], key[:-2]), Token("not", "not"))
        return
    yield _plain_word(core.partition("'")[0], base, start, shouting)
    if apostrophe:
        yield Token(_contracted(base, rest), "'" + rest)


def _contracted(base: str, rest: str) -> str:
    if rest == "s" and base in _IS:
        return "be"
    if rest == "s" and base == "let":
        return "us"
    return {"re": "be", "m": "be", "ll": "will", "ve": "have"}.get(rest, "'" + rest)


def _plain_word(core: str, key: str, start: bool, shouting: bool) -> Token:
    if core == "I" or core.islower():
        return Token(key, core)
    if core[1:] != core[1:].lower() and core[0].islower():
        return Token(core, core, "identifier")  # camelCase
    if len(core) > 1 and core.isupper():
        return Token(key + "^" if key in lexicon.ALL_CAPITALS and not shouting else key, core, "name")
    if start:
        return Token(key, core, "start")
    if core[-1] == "s" and len(core) > 2 and core[:-1].isupper():
        return Token(key[:-1], core, "name")  # APIs
    return Token(key + "^" if key in lexicon.CAPITALS else key, core, "name")


def _identifier(core: str) -> Token:
    """Keep a path, URL, version or symbol whole; only case that cannot matter is folded."""
    simple = core.isalnum() and not re.search(r"[a-z][A-Z]", core)
    kind = "number" if core[0].isdigit() else "identifier"
    return Token(core.casefold() if simple or "@" in core[1:] else core, core, kind)


def _plain(number: str) -> str:
    number = number.replace(",", "").replace("_", "")
    return re.sub(r"^(-?)\.", r"\g<1>0.", number)


def as_text(value: Fraction) -> str:
    """Write a value as an integer, or as a fraction where it is none."""
    return str(value.numerator) if value.denominator == 1 else f"{value.numerator}/{value.denominator}"


def clock(hour: int, minute: str | None, half: str | None) -> str | None:
    """Return a time of the day in 24 hours, None when there is no such time."""
    if half and not 1 <= hour <= 12:
        return None
    if half:
        hour = hour % 12 + (12 if half.casefold() == "pm" else 0)
    return f"{hour:02}:{minute or '00'}" if hour < 24 else None

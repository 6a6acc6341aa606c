"""Judge whether a value next to a telling name is a credential: whether it looks random rather than like words.

How random it must look depends on the name and on the place of the value: directly after the name (`NEAR`), in a
sentence or as an expression of code (`SAID`), after a sign such as `=` (`BARE`), or in quotes (`QUOTED`). Names of
variables, calls, types, placeholders and plain words are not credentials.
"""

import re

from memoryd.client.credentials.rules import FILE, is_placeholder, measure_entropy
from memoryd.client.credentials.secret_names import NAMES, PARTS, WORDS, kind_of
from memoryd.client.patterns import compile_late

NEAR, SAID, BARE, QUOTED = range(4)
_VALUES: dict[str, str] = FILE["values"]
_REFERENCE = compile_late(_VALUES["reference"])
_TECHNICAL = compile_late(_VALUES["technical"])
_IDENTIFIER = compile_late(r"[A-Za-z_]+\d{0,2}(?:[.:>-]+[A-Za-z_]+\d{0,2})*[.:]?")
_WORDS = compile_late(r"[A-Za-z]+\d{0,2}(?:[_./:-][A-Za-z]*\d{0,2})*")
_TYPE_OF_KEY = compile_late(r"[a-z](?:Key|Token|Secret)(?:s|Types?)?$")
_PHRASE = compile_late(r"[a-z]{3,12}(?:[-_.][a-z]{3,12}){2,7}")
_NUMBERED = compile_late(  # a word that contains a number, unlike the words of `us-east-1`
    r"(?=\D{0,100}(?<=[A-Za-z])\d)[A-Za-z]{2,12}\d{0,4}(?:-(?:[A-Za-z]{2,12}\d{0,4}|\d{1,4})){2,7}"
)
_FILE = compile_late(_VALUES["file"])
_CHAIN = compile_late(r"(?=[A-Za-z-]{0,100}\d)[A-Za-z]{3,12}(?:-(?:[A-Za-z]{3,12}|\d{1,4})){3,7}")
_ENTRY = compile_late(r"[^\W\d_]{8,}|(?=[^\d]*\d)[A-Za-z0-9]{2,24}(?:-[A-Za-z0-9]{1,24}){1,7}")
_STRONG = compile_late(r"[!@#$%^&*?~+=|]")
_TYPED = compile_late(r"[!@#$%^&]")  # signs that are more frequent in passwords than in code
_MIXED = compile_late(r"[^\W\d_]*\d+[^\W\d_]+\d[^\W_]*")  # digits, letters, digits
_MEANT = compile_late(_VALUES["meant"])
_COUNTED = frozenset(_VALUES["counted"].split())
_HEX = compile_late(r"[0-9A-Fa-f-]+")
_MIN_NEAR, _MIN_TOKEN, _MIN_SECRET, _MIN_MADE_UP, _MIN_PASSWORD = 20, 16, 8, 8, 6
_HEX_BITS, _TEXT_BITS = 2.8, 3.2  # least entropy per character of random keys; words have less


def is_credential(name: str, value: str, place: int, words: bool = False) -> bool:
    """Return whether a value is a credential of this name; `words`: it cannot be a variable, as in JSON."""
    kind = kind_of(name)
    if len(value) < _MIN_PASSWORD or _REFERENCE.match(value) or is_placeholder(value):
        return False
    if kind == "password":
        if place < QUOTED and _FILE.search(value):
            return False
        may_be_words = place > NEAR or (name != "pass" and _is_chain(value))
        return _is_password(name, value, place) or (may_be_words and _is_passphrase(value, words))
    if _TYPE_OF_KEY.search(value) or not is_made(value):
        return False
    if kind == "secret" and place >= BARE:
        return len(value) >= _MIN_SECRET
    bits = _HEX_BITS if _HEX.fullmatch(value) else _TEXT_BITS
    if place == NEAR and (len(value) < _MIN_NEAR or "=" in value.rstrip("=")):
        return False
    return len(value) >= _MIN_TOKEN and measure_entropy(value) >= bits


def _is_password(name: str, value: str, place: int) -> bool:
    strong, digits = bool(_STRONG.search(value)), _has_digit(value)
    if not any(map(str.isalpha, value)):
        return digits and place >= BARE and (strong or place == QUOTED)
    if place == NEAR and not (name == "pw" and strong and digits):
        return digits and _is_made_up(value)
    if not digits and not strong:
        return False
    if place < QUOTED:
        return not _TECHNICAL.match(value) and (strong or not _is_named(value, most_digits=0))
    return "_" not in value or not _IDENTIFIER.fullmatch(value)


def _is_made_up(value: str) -> bool:
    """Return whether letters with digits are clearly a password: with a sign of passwords, or with digits in two
    places."""
    if len(value) < _MIN_MADE_UP or _TECHNICAL.match(value) or _MEANT.search(value):
        return False
    stem = value.rstrip("!")
    if _TYPED.search(stem):
        return True
    words = {part.lower() for part in PARTS.findall(stem) if len(part) > 3}
    is_word = stem.isalnum() and WORDS.isdisjoint(words) and words.isdisjoint(NAMES)
    return is_word and (stem != value or bool(_MIXED.fullmatch(value)))


def _is_passphrase(value: str, words: bool) -> bool:
    """Return whether a value is a phrase of three or more words, perhaps with numbers, none of them about passwords.

    With `words`, one long word or a few words with digits count too.
    """
    has_digits = _is_chain(value) or _NUMBERED.fullmatch(value) or (words and _ENTRY.fullmatch(value))
    if not _PHRASE.fullmatch(value) and not (has_digits and not _TECHNICAL.match(value)):
        return False
    lowered = value.lower()
    parts = [part.rstrip("0123456789") for part in re.split("[-_.]", lowered)]
    return WORDS.isdisjoint(parts) and not any(name in (lowered if value.isalpha() else parts) for name in NAMES)


def _is_chain(value: str) -> bool:
    """Return whether a value consists of three or more long words, and of separate numbers."""
    parts = value.lower().split("-")
    long_words = sum(len(part) > 3 and part.isalpha() for part in parts)
    return bool(_CHAIN.fullmatch(value)) and long_words > 2 and _COUNTED.isdisjoint(parts)


def is_made(value: str) -> bool:
    """Return whether a run of letters and digits looks random, not like a name or words."""
    return _has_digit(value) and any(map(str.isalpha, value)) and not _is_named(value)


def _is_named(value: str, most_digits: int = 2) -> bool:
    """Return whether a value looks like a name: words, perhaps with a number at the end."""
    if not re.search("[-_.:/]", value):
        word = value.rstrip("0123456789")
        return word.isalpha() and len(value) - len(word) <= most_digits
    return bool(_WORDS.fullmatch(value) or _IDENTIFIER.fullmatch(value))


def _has_digit(value: str) -> bool:
    return any(map(str.isdigit, value))

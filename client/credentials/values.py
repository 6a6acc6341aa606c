"""What a value beside a telling name must look like to be a credential: made rather than meant.

How much it must have depends on how telling the name is. Names of variables, calls, types, placeholders and plain words
are none.
"""

import math
import re
from typing import NamedTuple

from memoryd.client.credentials.names import KINDS, NAMES, kind_of
from memoryd.client.patterns import compile_late

_HYPHENED = compile_late(r"[A-Za-z0-9]{2,24}(?:-[A-Za-z0-9]{1,24}){1,7}")
_PHRASE = compile_late(r"[a-z]{3,12}(?:[-_.][a-z]{3,12}){2,7}")
_EMPTY = compile_late(
    r"your|example|sample|placeholder|change[_-]?me|replace|redacted|insert|x{4}|\*{3}|\.{3}|…|\[secret: |dummy|todo"
    r"|goes[_-]?here|foobar|lorem|&(?:quot|lt|gt|amp|\#)",
    re.IGNORECASE,
)
_REFERENCE = compile_late(
    r"[$%{<\[&@#/~]|\w+://|(?:env|var|vault|secrets?|config|settings|self|process|os)\b[.:]|!vault\b", re.I
)
_PLAIN = frozenset(
    "password passwd passphrase passcode secret token string integer number boolean object required optional none null"
    " true false default undefined hidden masked username credential credentials apikey api_key pass pwd str bytes"
    " testing tested wrong invalid missing expired unknown empty disabled enabled changed".split()
)
# What forms, types and rules say of passwords.
_LABELS = frozenset(
    "the and for with must not least most minimum maximum eight twelve characters character length long strong weak"
    " reset forgot forgotten change update confirm repeat verify verification enter type input field form page link"
    " button label text hash hashed bcrypt argon salted encrypted encryption protected policy manager generator auth"
    " authentication required mandatory user account login email name file path url env var variable config settings"
    " module class function object instance client server service store vault provider handler based only see ask"
    " kubernetes secret default public private prompt interactive stdin redacted removed omitted".split()
)
_TECHNICAL = compile_late(
    r"(?:[vxhsp]\d{1,4}(?![a-z0-9])|(?:base|sha|md|utf|ascii|latin|rsa|ed|aes|blake|argon|bcrypt|scrypt|pbkdf|hs|rs|es|oauth|http|ipv?|py|u?int|"
    r"float|mp|ec|k8|win|log|web|base_|i18n|l10n|oauth|saml|tls|ssl|ldap|ntlm|wpa|pkcs|rfc|pep|python|cl)[_-]?\d)",
    re.IGNORECASE,
)
_IDENTIFIER = compile_late(r"[A-Za-z_][A-Za-z_]*\d{0,2}(?:[.:>-]+[A-Za-z_][A-Za-z_]*\d{0,2})*[.:]?")
_WORDS = compile_late(r"[A-Za-z]+\d{0,2}(?:[_./:-][A-Za-z]*\d{0,2})+")
_TYPE_OF_KEY = compile_late(r"[a-z](?:Key|Token|Secret)(?:s|Types?)?$")
_DIGIT = compile_late(r"[0-9]")
_STRONG = compile_late(r"[!@#$%^&*?~+=|]")
_EMPTY_PARTS = (  # of which one is in whatever `_EMPTY` finds
    *("your", "example", "sample", "placeholder", "change", "replace", "redacted", "insert", "xxxx", "***", "...", "…"),
    *("[secret: ", "dummy", "todo", "goes", "foobar", "lorem", "&"),
)
_MIN_UNSAID = 20  # where nothing says that it is one
_MIN_WORD = 8  # of letters alone
_MIN_TOKEN, _MIN_SECRET, _MIN_PASSWORD = 16, 8, 6
_LONGEST_PLAIN = 32
_HEX_BITS, _TEXT_BITS = 2.8, 3.2  # of entropy per character from which a key looks made: words have less


class Assigned(NamedTuple):
    """A credential found by its name: the name, and its position."""

    kind: str
    start: int
    end: int
    cut: bool = False  # it may be longer than what is looked at


def is_label(value: str) -> bool:
    """Return whether a word is what a form says beside a field."""
    lowered = value.lower()
    return any(name in lowered for name in NAMES) or lowered in _LABELS


def is_phrase(value: str) -> bool:
    """Return whether a value is a passphrase: three words or more, none of which speaks of passwords."""
    return bool(_PHRASE.fullmatch(value)) and not _has_label(value) and not is_placeholder(value)


def is_entry(value: str) -> bool:
    """Return whether a value is a password where it can be no variable, as in an entry of JSON: a word, or some."""
    if value.isalpha():
        return len(value) >= _MIN_WORD and not is_label(value) and not is_placeholder(value)
    hyphened = bool(_HYPHENED.fullmatch(value)) and _has_digit(value) and not _TECHNICAL.match(value)
    return hyphened and not _has_label(value.lower()) and not is_placeholder(value)


def _has_label(value: str) -> bool:
    """Return whether one of a value's words speaks of passwords."""
    parts = re.split("[-_.]", value)
    return not _LABELS.isdisjoint(parts) or any(part in NAMES or part in _PLAIN for part in parts)


def is_credential(name: str, value: str, quoted: bool, strict: bool = False) -> bool:
    """Return whether a value beside a name of credentials is one; `strict` where words may follow too."""
    return (
        _is_generated(kind_of(name), value, quoted, strict)
        and not _REFERENCE.match(value)
        and not is_placeholder(value)
    )


def _is_generated(kind: str, value: str, quoted: bool, strict: bool) -> bool:
    if kind == "password":
        return _is_password(value, quoted, strict)
    if _TYPE_OF_KEY.search(value):
        return False
    if kind == "secret" and not strict:
        return len(value) >= _MIN_SECRET and _is_mixed(value) and not _is_named(value)
    return len(value) >= _MIN_TOKEN and _is_mixed(value) and not _is_named(value) and _is_random(value)


def is_unmistakable(name: str, value: str) -> bool:
    """Return whether a value right after its name, with nothing between, can be nothing but a credential."""
    if name == "pw":
        return bool(_STRONG.search(value)) and _is_mixed(value)
    made = len(value) >= _MIN_UNSAID and _is_mixed(value) and _is_random(value)
    return made and kind_of(name) in KINDS and "=" not in value.rstrip("=")


def is_made(value: str) -> bool:
    """Return whether a run of characters is of letters and digits, and no name or words."""
    return _is_mixed(value) and not _is_named(value)


def is_placeholder(value: str) -> bool:
    """Return whether a value is a placeholder."""
    if len(set(value[:_LONGEST_PLAIN])) < 4 and len(set(value)) < 4:
        return True
    lowered = value.lower()
    if lowered.strip("_-.:?") in _PLAIN:
        return True
    # Searching for each part is faster than the pattern; beyond ASCII a pattern that ignores case finds more.
    return (not value.isascii() or any(part in lowered for part in _EMPTY_PARTS)) and bool(_EMPTY.search(value))


def _is_password(value: str, quoted: bool, strict: bool) -> bool:
    if len(value) < _MIN_PASSWORD:
        return False
    strong = bool(_STRONG.search(value))
    letters = any(map(str.isalpha, value))
    digits = _has_digit(value)
    if not letters:
        return not strict and digits and (strong or quoted)
    if strict or not quoted:
        made = (digits or strong) and not _TECHNICAL.match(value)
        return made and (strong or not _is_named(value, most_digits=0))
    return (digits or strong) and not _IDENTIFIER.fullmatch(value) if "_" in value else digits or strong


def _is_named(value: str, most_digits: int = 2) -> bool:
    """Return whether a value is the name of something: words, perhaps with a number at the end."""
    if "_" in value or "." in value or "-" in value or ":" in value or "/" in value:
        return bool(_WORDS.fullmatch(value) or _IDENTIFIER.fullmatch(value))
    trailing = len(value) - len(value.rstrip("0123456789"))
    return value[: len(value) - trailing].isalpha() and trailing <= most_digits


def _is_mixed(value: str) -> bool:
    return _has_digit(value) and any(map(str.isalpha, value))


def _has_digit(value: str) -> bool:
    return bool(_DIGIT.search(value)) or (not value.isascii() and any(map(str.isdigit, value)))


def _is_random(value: str) -> bool:
    """Return whether the characters of a value are as spread as those of a key (Shannon entropy per character)."""
    counts = map(value.count, set(value))
    bits = -sum(count / len(value) * math.log2(count / len(value)) for count in counts)
    return bits >= (_HEX_BITS if all(c in "0123456789abcdefABCDEF-" for c in value) else _TEXT_BITS)

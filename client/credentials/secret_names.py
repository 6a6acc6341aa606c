"""Telling names, which show that a value is a credential: `password`, `clientSecret`, `MY_SECRET_KEY_2` …"""

import re
from typing import NamedTuple

from memoryd.client.credentials.rules import FILE
from memoryd.client.credentials.views import INVISIBLE
from memoryd.client.patterns import compile_late

NAMES: list[str] = FILE["names"]["names"]
FOREIGN_NAMES: list[str] = FILE["names"]["foreign"]
_KINDS = ("secret", "credential", "token", "key")
# `key` and `pass` are telling names only after one of these words, such as `api` in `api_key`.
_BEFORE_KEY = compile_late(
    r"(?:api|app|access|auth|private|signing|encryption|master|account|service|subscription|secret|pre-?shared)[ _-]?\Z"
)
_BEFORE_PASS = compile_late(
    r"(?:db|database|mysql|pg|postgres|redis|smtp|mail|ssh|sudo|become|root|user|admin|ldap|ftp|proxy)_\Z"
)
_PUBLIC = ("publickey", "public_key_", "public-key-")  # the token of an assembly's public key is not secret
_SUFFIX = compile_late(r"(?:s\b)?(?:[ _-]?(?:access[ _-]?)?key)?(?P<suffix>[A-Za-z0-9_.-]{0,40}+)", re.IGNORECASE)
PARTS = compile_late(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_WHICH, _ABOUT = (frozenset(FILE["names"][group].split()) for group in ("which", "about"))
WORDS = _ABOUT.union(FILE["values"]["forms"].split())  # words that are not part of a password
_USER_NAME = compile_late(r"(?:user(?:[ _-]?name)?|login|e-?mail|account|uid)", re.IGNORECASE)
_USER = compile_late(
    r"(?:^|[\s{,;/(\"'&?])(?:user(?:[_-]?name)?|login|e?mail|account|uid)[\"']?\s{0,4}[:=]{1,2}\s{0,4}[\"']?[^\s\"',}=]"
)
_BEGIN_OF_ENTRY = compile_late(r"(?:^|[\n{,;/(&?\[]|- )[ \t]{0,80}[\"']?\Z")
_LABEL = compile_late(r"(?:\A|[^\w-])pass[\"']?[ \t]{0,4}[:=]")
_SIGN_OF_ENTRY = compile_late(r"[\"']?[ \t]{0,4}[:=]")
_NEAR_USER = 200  # characters between `pass` and its user
_LONGEST_KEY = 200  # characters at the end of a key that are read


class TellingName(NamedTuple):
    """A telling name in a text, and where it begins and ends.

    `exact`: no suffix follows that may change its meaning. `vague`: it is a label of other things too.
    """

    name: str
    start: int
    end: int
    exact: bool
    vague: bool = False


def kind_of(name: str) -> str:
    """Return the kind of a credential with this name, which replaces it in the text."""
    return name if name in _KINDS else "password"


def is_user(name: str) -> bool:
    """Return whether a name is one for a user name; a `pass` next to it is a password."""
    return bool(_USER_NAME.fullmatch(name))


def list_names(text: str) -> list[str]:
    """Return the telling names that may occur in a text."""
    return NAMES if text.isascii() else NAMES + FOREIGN_NAMES


def read_name(name: str, text: str, lowered: str, at: int) -> TellingName | None:
    """Return the telling name at a place with its suffix, None if it is only part of a word."""
    if not _is_separate(name, lowered, at):
        is_label = name == "pass" and _LABEL.match(lowered, max(0, at - 1))
        return TellingName(name, at, at + len(name), exact=False, vague=True) if is_label else None
    rest = _SUFFIX.match(text, at + len(name))
    assert rest is not None
    suffix = rest["suffix"]
    if not suffix.strip("_.-"):
        return TellingName(name, at, rest.end(), exact=True)
    parts = [part.lower() for part in PARTS.findall(suffix)]
    if not _ABOUT.isdisjoint(parts):
        return None
    exact = all(part.isdigit() or part in _WHICH for part in parts)
    apart = suffix[0] in "_.-0123456789" or (suffix[0].isupper() and not text[at : at + len(name)].isupper())
    return TellingName(name, at, rest.end(), exact) if exact or apart else None


def find_name(key: str) -> str | None:
    """Return the telling name of a key, if it has one."""
    key = INVISIBLE.sub("", key[-2 * _LONGEST_KEY :])[-_LONGEST_KEY:]  # bounded: a list's key is read for each item
    lowered = key.lower()
    for name in list_names(key):
        at = lowered.rfind(name)
        if at >= 0 and (found := read_name(name, key, lowered, at)) and found.exact and found.end == len(key):
            return name
    return None


def _is_separate(name: str, lowered: str, at: int) -> bool:
    """Return whether a name is separate: not part of a word, and `key` only after a word such as `api`."""
    if name == "key":
        return bool(_BEFORE_KEY.search(lowered, max(0, at - 13), at))
    if name == "token":
        return not lowered.endswith(_PUBLIC, 0, at)
    if name == "pass":
        return bool(_BEFORE_PASS.search(lowered, max(0, at - 9), at)) or _is_beside_user(lowered, at, at + len(name))
    if name == "pw" and lowered[at + 2 : at + 3].isalnum():
        return False
    return name not in ("pw", "pwd") or at == 0 or not lowered[at - 1].isalnum()


def _is_beside_user(lowered: str, start: int, end: int) -> bool:
    """Return whether an entry `pass` of a settings file is near an entry for a user name."""
    if not _SIGN_OF_ENTRY.match(lowered, end) or not _BEGIN_OF_ENTRY.search(lowered[max(0, start - 90) : start]):
        return False
    return bool(_USER.search(lowered[max(0, start - _NEAR_USER) : end + _NEAR_USER]))

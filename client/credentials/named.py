"""Find credentials without a format of their own: values that look random, next to a name such as `password`.

The ways in which name and value are connected are rows of `connections` in `rules.toml`: `password = …`,
`"api_key": "…"`, `--token …`, "the password is …", a line below, a default; `tables.py` reads columns. Every pattern
matches a bounded part of the text, and no part of a credential is matched twice, so the time is proportional to the
length of the text.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from memoryd.client.credentials.rules import FILE, CredentialMatch
from memoryd.client.credentials.secret_names import TellingName, kind_of, list_names, read_name
from memoryd.client.credentials.secret_values import BARE, NEAR, QUOTED, SAID, is_credential
from memoryd.client.credentials.tables import CELL, find_in_tables
from memoryd.client.patterns import compile_late

_MOST_CHARACTERS = 400  # of a value that are judged; the rest of a longer value is part of the credential too
_REST_OF_VALUE = compile_late(r"[^\s\"'`,;<>()\[\]{}|\\]*+")
_PARAMETER = compile_late(r"&\w{1,40}=|%26\w{1,40}%3D", re.IGNORECASE)
_PLACES = {"near": NEAR, "said": SAID, "bare": BARE}


class Connection(NamedTuple):
    """A way in which a name is connected with its value: a row of `rules.toml`."""

    pattern: re.Pattern[str]
    place: int
    before: re.Pattern[str] | None
    exact: bool
    vague: bool
    upper: bool
    words: bool
    further: bool

    def match(self, name: TellingName, text: str, before: str) -> re.Match[str] | None:
        """Match the text after a name if the name is connected with a value in this way."""
        if (self.exact and not name.exact) or self.vague != name.vague:
            return None
        match = self.pattern.match(text, name.end)
        if match and (self.before is None or self.before.search(before)):
            return match if not self.upper or text[name.start : name.end].isupper() else None
        return None


def _fill(regex: str) -> str:
    for part, pattern in reversed(_PARTS):
        regex = regex.replace(part, pattern)
    return regex


def _connect(regex: str, place: str, before: str | None = None, **conditions: bool) -> Connection:
    flags = {flag: conditions.get(flag, False) for flag in ("exact", "vague", "upper", "words", "further")}
    return Connection(compile_late(_fill(regex)), _PLACES[place], compile_late(before) if before else None, **flags)


_PARTS: list[tuple[str, str]] = FILE["connections"]["parts"]
_CONNECTIONS = [_connect(**row) for row in FILE["connections"]["rows"]]


def find_named(text: str, lowered: str) -> Iterator[CredentialMatch]:
    """Yield the credentials next to names, some of which may overlap; `lowered` is the text in lower case."""
    ends: list[int] = []
    for name in [name for name in list_names(text) if name in lowered]:
        at = lowered.find(name)
        while at >= 0:
            whole = read_name(name, text, lowered, at)
            found = whole and _find_connected(whole, text)
            if whole and not found and CELL.match(text, whole.end):
                ends.append(whole.end)
            at += len(name)
            if found:
                yield found
                if lowered.find(name, at, found.start) < 0:
                    at = max(at, found.end - len(name))
            at = lowered.find(name, at)
    yield from find_in_tables(text, lowered, ends)


def _find_connected(name: TellingName, text: str) -> CredentialMatch | None:
    """Return the credential that is connected with a name."""
    before, is_decided = text[max(0, name.start - 60) : name.start], False
    for connection in _CONNECTIONS:
        if not (is_decided and not connection.further) and (match := connection.match(name, text, before)):
            if found := _judge(name, match, connection.place, connection.words):
                return found
            is_decided = True
    return None


def _judge(name: TellingName, match: re.Match[str], place: int, words: bool = False) -> CredentialMatch | None:
    """Return the last group of a match if it is a credential."""
    group = match.lastgroup or ""
    value = match[group]
    if group == "quoted":
        value, place = value.removesuffix("\\"), QUOTED if place == BARE else place
    else:
        parameter = _PARAMETER.search(value)  # the value ends where the next parameter of a web address begins
        value = (value[: parameter.start()] if parameter else value).rstrip(".,:?*")
    if not is_credential(name.name, value, place, words):
        return None
    start, end = match.start(group), match.start(group) + len(value)
    if len(value) == _MOST_CHARACTERS and (rest := _REST_OF_VALUE.match(match.string, end)):
        end = rest.end()
    return CredentialMatch(kind_of(name.name), start, end)

"""The one rule for credentials without a format of their own: a name that announces one, and a value that looks so.

The value is beside its name (`password = …`, `"api_key": "…"`, `--token …`, "the password is …"), or further away: on
the line below the one that ends with the name, as its default, or below it in a column of a table. Every pattern looks
at a bounded part of the text, and what is within a credential is not looked at again, so a text takes time in
proportion to its length.
"""

import re
from collections.abc import Iterator

from memoryd.client.credentials.names import TellingName, kind_of, list_names, read_name
from memoryd.client.credentials.rules import CredentialMatch
from memoryd.client.credentials.tables import CELL, find_in_tables
from memoryd.client.credentials.values import BARE, NEAR, QUOTED, SAID, is_credential
from memoryd.client.patterns import compile_late

_MOST = 400  # characters of a value that are looked at: where it is longer the rest goes with them
_VALUE = (
    r"\\?(?:(?:@|[bru]{1,2})?(?P<quote>[\"'`])(?P<quoted>[^\"'`\s]{4,400}+)(?P=quote)"
    r"|(?P<bare>[^\s\"'`,;<>()\[\]{}|\\]{4,400}+)(?![(\[{<]))"
)
_REST_OF_VALUE = compile_late(r"[^\s\"'`,;<>()\[\]{}|\\]*+")
_NEXT_LINE = r"[ \t]{0,2}(?:\\|[|>][-+]?)?\r?\n[ \t]{1,8}"
_OF = r"(?:for|of|to|on|in|at|für|zum|von|pour|de|du) "
_GIVEN = compile_late(rf"[ \t=]{{1,4}}{_VALUE}")
_BEFORE_GIVEN = compile_late(  # an option, or a variable of a shell or a Dockerfile
    r"(?:(?:^|[\s\"'`])--?(?:[A-Za-z]+-){0,4}|\b(?:ENV|setenv|set(?: -\w{1,9}){1,3})[ \t]{1,4}\w{0,60})\Z"
)
_ASSIGNED = compile_late(
    r"(?:[ \t]?:?[ \t]{1,2}(?:str|string|SecretStr)(?=[ \t]{0,4}=)"  # its type
    r"|[\"']?,?\s{1,20}[\"']?value(?=[\"' \t:=]))?"  # `name: X, value: …`
    r"(?:(?P<between>[\\\"'\[\]*]{0,4}[ \t]{0,4}(?P<sign>:{1,3}=|[?+.]=|=>|={1,3}|%3D|[:：])(?:\*\*|__)?"
    rf"(?:[ \t]{{0,4}}|{_NEXT_LINE})){_VALUE}|>\s{{0,8}}(?P<element>[^<\s]{{4,400}}+)\s{{0,8}}<)",
    re.IGNORECASE,
)
_BEFORE_ENTRY = compile_late(r"(?P<variable>(?:^|\s)[A-Z0-9_]*\Z)|[?&;]\w*\Z")
_BEFORE_YAML = compile_late(r"(?:^|\n)[ \t]*(?:- )?[\w.-]{0,40}\Z")
_SAID = compile_late(
    rf" (?:{_OF}(?:[\w'.:/-]{{1,40}} ){{0,7}}?)?"
    r"(?:(?:is |was |has been )?(?:changed |set |reset )to|(?P<to>to)|is|was|=|lautet|ist|est|es)(?: now| still| just)?"
    rf"(?:[: ][ \t]{{0,2}}|:?{_NEXT_LINE}){_VALUE}",
    re.IGNORECASE,
)
_TITLED = compile_late(  # `the token for acme: …`
    rf" (?:{_OF}[^\s:()]{{1,40}}(?: [^\s:()]{{1,40}}){{0,7}}|\([^()\n]{{1,40}}\)):[*_]{{0,2}}[ \t]{{1,3}}{_VALUE}",
    re.IGNORECASE,
)
_SETS = compile_late(
    r"\b(?:set|change|changing|reset|update|updating|rotate|make|made)\w{0,4} (?:[\w'-]{1,20} ){0,4}\Z", re.IGNORECASE
)
_SAID_ABROAD = compile_late(rf"[ \t]?(?:是|为|為|は|が|이|은|는|это|είναι|je|jest|to)[ \t:：]{{0,2}}{_VALUE}")
_NEAR = compile_late(rf"(?:[\"'`]?[ \t]{{0,2}}[,|][ \t]{{0,2}}|\((?=[\"'`])|[ \t]{{1,2}})(?:\*\*)?{_VALUE}")
_PARAMETER = compile_late(r"&\w{1,40}=|%26\w{1,40}%3D", re.IGNORECASE)

_ANNOUNCED = compile_late(
    rf"[*_\"'`]{{0,3}}(?: {_OF}[\w'.:/-]{{1,40}}(?: [\w'./-]{{1,40}}){{0,3}}?)?"
    r"(?P<said>(?: (?:is|are|was|lautet|ist|est|es|reads))?(?: (?:now|below|as follows|the following|this))?"
    r"[ \t]?[:：]?)[*_\"'`]{0,3}[ \t]{0,4}\r?\n(?:[ \t>]{0,8}\r?\n)?(?:[ \t>]{0,8}(?:```|~~~)\w{0,16}[ \t]{0,4}\r?\n)?"
    r"[ \t]{0,12}(?:[>*-][ \t]{1,4})?[*_]{0,3}(?P<quote>[\"'`]?)(?P<bare>[^\s\"'`<>()\[\]{}|\\,;]{6,400}+)(?P=quote)"
    r"[*_.]{0,3}[ \t]{0,4}(?:\r?\n|\Z)",
    re.IGNORECASE,
)
_HEADING = compile_late(r"(?:^|\n)[ \t]{0,3}(?:#{1,6}[ \t]|\*\*|__)[^\n]{0,50}\Z")
_DEFAULT = compile_late(
    r"(?:(?<=[\s,{\"'(])(?:default|value)[\"']?[ \t]{0,8}(?::|=>|:?=)[ \t]{0,4}"
    rf"|(?<=\s)--(?:value|default|body|secret-string)[ =]{{1,3}}){_VALUE}",
    re.IGNORECASE,
)
_OPENED = compile_late(r"(?P<quote>[\"'`]?)[ \t]{0,4}(?::[ \t]{0,4})?(?P<mark>[{,]|\r?\n|)")
_FAR = 400  # characters from a name to its default


def find_named(text: str, lowered: str) -> Iterator[CredentialMatch]:
    """Yield the credentials that a name announces; `lowered` is the text in lower case. Some may overlap."""
    ends: list[int] = []
    for name in [name for name in list_names(text) if name in lowered]:
        at = lowered.find(name)
        while at >= 0:
            whole = read_name(name, text, lowered, at)
            found = whole and (_find_beside(whole, text) or _find_further(whole, text, lowered))
            if whole and not found and CELL.match(text, whole.end):
                ends.append(whole.end)
            at += len(name)
            if found:
                yield found
                if lowered.find(name, at, found.start) < 0:
                    at = max(at, found.end - len(name))
            at = lowered.find(name, at)
    yield from find_in_tables(text, ends)


def _find_beside(name: TellingName, text: str) -> CredentialMatch | None:
    """Return the credential right after a name and what connects them."""
    before = text[max(0, name.start - 60) : name.start]
    if name.exact and (match := _GIVEN.match(text, name.end)) and _BEFORE_GIVEN.search(before):
        return _judge(name, match, BARE)
    if match := _ASSIGNED.match(text, name.end):
        if name.vague:
            return _judge(name, match, NEAR)
        between = match["between"] or ""  # of an element of XML nothing
        if name.exact and _is_entry(name, text, match, between, before):
            return _judge(name, match, BARE, words=True)
        code = match["sign"] == "=" and " = " in between and match["quoted"] is None
        return _judge(name, match, SAID if code or "\n" in between or not name.exact else BARE)
    match = _SAID.match(text, name.end)
    if match and not (match["to"] and not _SETS.search(before)):  # else `to` says what it opens
        return _judge(name, match, SAID)
    if name.exact and (match := _TITLED.match(text, name.end)):
        return _judge(name, match, SAID)
    if match := _SAID_ABROAD.match(text, name.end):
        return _judge(name, match, SAID)
    return _judge(name, match, NEAR) if (match := _NEAR.match(text, name.end)) else None


def _is_entry(name: TellingName, text: str, match: re.Match[str], between: str, before: str) -> bool:
    """Return whether a name and its value are an entry of JSON, a line of YAML, a variable of an environment or a
    parameter of an address, where the value can be no variable."""
    if match["quoted"] is not None:
        return match["quote"] == between[:1] == '"'
    if between == "=":
        found = _BEFORE_ENTRY.search(before)
        return found is not None and (found["variable"] is None or text[name.start : name.end].isupper())
    is_line = text.startswith(("\n", "\r"), match.end()) or match.end() == len(text)
    return between.startswith(": ") and is_line and bool(_BEFORE_YAML.search(before))


def _judge(name: TellingName, match: re.Match[str], place: int, words: bool = False) -> CredentialMatch | None:
    """Return the credential that the last group of a match holds, if it does."""
    group = match.lastgroup or ""
    value = match[group]
    if group == "quoted":
        value, place = value.removesuffix("\\"), QUOTED if place == BARE else place
    else:
        parameter = _PARAMETER.search(value)  # another one of an address follows
        value = (value[: parameter.start()] if parameter else value).rstrip(".,:?*")
    if not is_credential(name.name, value, place, words):
        return None
    start, end = match.start(group), match.start(group) + len(value)
    if len(value) == _MOST and (rest := _REST_OF_VALUE.match(match.string, end)):
        end = rest.end()
    return CredentialMatch(kind_of(name.name), start, end)


def _find_further(name: TellingName, text: str, lowered: str) -> CredentialMatch | None:
    """Return the credential that a name announces from further away."""
    if not name.exact:
        return None
    if below := _ANNOUNCED.match(text, name.end):
        if below["said"].strip() or _HEADING.search(text[max(0, name.start - 60) : name.start]):
            return _judge(name, below, SAID, words=True)
        return None
    return _find_default(name, text, lowered)


def _find_default(name: TellingName, text: str, lowered: str) -> CredentialMatch | None:
    """Return the credential that something of this name has as its default or value, within the same braces or call.

    What follows indented less or as much belongs to something else.
    """
    opened = _OPENED.match(text, name.end)
    words = ("default", "value", " --") if opened and opened["mark"] else (" --",)
    if opened is None or all(lowered.find(word, name.end, name.end + _FAR) < 0 for word in words):
        return None
    if (match := _DEFAULT.search(text, name.end, name.end + _FAR + 200)) is None:
        return None
    between = text[opened.end() : match.start()]
    if any(mark in between for mark in ("}", ")", ";", "\n\n", "|")):
        return None
    if match.group().startswith("--"):
        is_own = "\n" not in between.replace("\\\n", "") and opened["mark"] == ""
    elif opened["mark"] == ",":
        is_own = opened["quote"] != ""
    else:
        is_own = opened["mark"] == "{" or (
            opened["mark"] != "" and _is_indented(text, name.start, opened.end(), match.start())
        )
    return _judge(name, match, BARE, words=True) if is_own else None


def _is_indented(text: str, start: int, begin: int, end: int) -> bool:
    """Return whether all lines from `begin` to the one of `end` are further in than the line of `start`."""
    lines = [text[text.rfind("\n", 0, start) + 1 : start], *text[begin : end + 1].split("\n")]
    depth, *others = [len(line) - len(line.lstrip(" \t")) for line in lines]
    return all(other > depth for other in others)

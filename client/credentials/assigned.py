"""Credentials that only their name gives away: `password = …`, `"api_key": "…"`, "the password is …".

What is a name is in `names`, what a value in `values`, and where a name announces one from further away in `announced`.

Every pattern looks at a bounded part of the text, and what is within a credential is not looked at again, so a text
takes time in proportion to its length.
"""

import re
from collections.abc import Iterator

from memoryd.client.credentials.announced import find_below, find_columns, find_default, is_cell
from memoryd.client.credentials.names import FOREIGN_NAMES, NAMES, is_separate, judge_suffix, kind_of
from memoryd.client.credentials.values import Assigned, is_credential, is_entry, is_phrase, is_unmistakable
from memoryd.client.patterns import compile_late

_REST = (
    r"(?:s\b)?(?:[ _-]?(?:access[ _-]?)?key)?"
    r"(?:[_-]?(?:value|string|text|plain|prod|dev|live|test|b64|base(?:64)?)|[12])?"
)
_REST_OF_NAME = r"(?:s\b)?(?:[ _-]?(?:access[ _-]?)?key)?(?P<suffix>[A-Za-z0-9_.-]{0,40}+)"
_REST_OF_KEY = compile_late(_REST_OF_NAME)
_MOST, _MOST_SHORT = 400, 200  # characters of a value: where it is longer it is cut
_QUOTED = rf"(?P<quote>[\"'`])(?P<quoted>[^\"'`\s]{{4,{_MOST}}}+)(?P=quote)"
_BARE = rf"(?P<bare>[^\s\"'`,;<>()\[\]{{}}|\\]{{4,{_MOST}}}+)(?![(\[{{<])"
_LONGEST_BETWEEN = 80  # from a name to its value, apart from white space
_VALUE = rf"\\?(?:(?:@|[bru]{{1,2}})?{_QUOTED}|{_BARE})"
_NEXT_LINE = r"[ \t]{0,2}(?:\\|[|>][-+]?)?\r?\n[ \t]{1,8}"
_TYPE = r"[ \t]?:?[ \t]{1,2}(?:str|string|SecretStr)(?=[ \t]{0,4}=)"
_VALUE_OF_NAME = r"[\"']?,?\s{1,20}[\"']?value(?=[\"' \t:=])"  # `name: X, value: …`
_ASSIGNED = compile_late(
    rf"{_REST_OF_NAME}(?:{_TYPE}|{_VALUE_OF_NAME})?(?P<between>[\\\"'\[\]*]{{0,4}}[ \t]{{0,4}}"
    rf"(?P<sign>:{{1,3}}=|[?+.]=|=>|={{1,3}}|%3D|[:：])(?:\*\*|__)?(?:[ \t]{{0,4}}|{_NEXT_LINE}))"
    rf"{_VALUE}",
    re.IGNORECASE,
)
_SAID = compile_late(
    rf"{_REST} (?:(?:for|of|to|on|in|für|zum|von|pour|de|du) (?:[\w'.:/-]{{1,40}} ){{0,4}}?)?"
    r"(?:(?:(?:is |was )?(?:changed |set |reset ))?to|is|was|=|lautet|ist|est|es)(?: now| still| just)?"
    rf"(?:[: ][ \t]{{0,2}}|:?{_NEXT_LINE}){_VALUE}",
    re.IGNORECASE,
)
_SAID_THERE = compile_late(rf"[ \t]?(?:是|为|為|は|が|이|은|는|это|είναι|je|jest|to)[ \t:：]{{0,2}}{_VALUE}")
_NEXT = compile_late(
    rf"{_REST}(?:[\"'`]?[ \t]{{0,2}}[,|][ \t]{{0,2}}|\((?=[\"'`])|[ \t]{{1,2}}){_VALUE}", re.IGNORECASE
)
_OPTION = compile_late(rf"[ =]{_VALUE}")
_BEFORE_OPTION = compile_late(r"(?:^|[\s\"'`])--?(?:[a-z]+-){0,4}$")
_SET = compile_late(rf"[ \t]{{1,4}}{_VALUE}")
_BEFORE_SET = compile_late(r"\b(?:ENV|setenv|set(?: -\w{1,9}){1,3})[ \t]{1,4}\w{0,60}$")
_ELEMENT = compile_late(rf">\s{{0,8}}(?P<bare>[^<\s]{{4,{_MOST}}}+)\s{{0,8}}<")
_LOGIN = compile_late(rf"\s{{1,4}}(?P<bare>\S{{4,{_MOST_SHORT}}})")
_BEFORE_LOGIN = compile_late(r"\blogin\s{1,4}\S{1,100}\s{1,4}$", re.IGNORECASE)
_IDENTIFIED = compile_late(r"identified(?: with \w{1,40})? by '(?P<quoted>[^'\s]{4,200}+)'", re.IGNORECASE)
_USER = compile_late(
    r"\s(?:-u|--user)(?:=|\s{1,5})(?P<open>['\"]?)"
    r"(?:(?P<whole>[^\s:'\"$]{8,200}):(?P=open)(?=\s)|[^\s:'\"]{0,80}['\"]?:['\"]?(?P<bare>[^\s'\"]{4,200}))"
)
_LONGEST_AFTER_CURL = 204  # with its name
_PARAMETER = compile_late(r"&\w{1,40}=|%26\w{1,40}%3D", re.IGNORECASE)
_BEFORE_PLAIN = compile_late(r"(?:^|\s)[A-Z0-9_]*$|[?&;]\w*$")
_BEFORE_JSON = compile_late(r"\"[\w.-]{0,40}$")
_BEFORE_YAML = compile_late(r"(?:^|\n)[ \t]*(?:- )?[\w.-]{0,40}$")


def find_assigned(text: str, lowered: str) -> Iterator[Assigned]:
    """Yield the credentials of a text that a telling name announces; `lowered` is the text in lower case.

    One that is within another one may be left out.
    """
    cells: list[int] = []
    for name in NAMES if text.isascii() else (*NAMES, *FOREIGN_NAMES):
        if name in lowered:
            yield from _find_named(name, text, lowered, cells)
    yield from find_columns(text, cells)
    if "identified" in lowered:
        for match in _IDENTIFIED.finditer(text):
            if found := _judge("password", match, strict=False):
                yield found
    if "curl " in lowered:
        yield from _find_user_passwords(text)


def _find_named(name: str, text: str, lowered: str, cells: list[int]) -> Iterator[Assigned]:
    """Yield the credentials that one name announces; note where it may be the head of a column."""
    at, size = lowered.find(name), len(name)
    while at >= 0:
        found = None
        if is_separate(name, lowered, at):
            found = _find_beside(name, text, at, at + size) or _find_further(name, text, lowered, at, at + size)
            if not found and is_cell(text, at + size):
                cells.append(at)
        at += size
        if found:
            yield found
            if lowered.find(name, at, found.start) < 0:
                at = max(at, _find_next(name, text, lowered, found))
        at = lowered.find(name, at)


def _find_further(name: str, text: str, lowered: str, at: int, end: int) -> Assigned | None:
    """Return the credential that a name announces from further away."""
    rest = _REST_OF_KEY.match(text, end)
    if rest is None or judge_suffix(text[at:end], rest["suffix"]) != "same":
        return None
    return find_below(name, text, at, rest.end()) or find_default(name, text, lowered, at, rest.end())


def _find_next(name: str, text: str, lowered: str, found: Assigned) -> int:
    """Return where to go on after a credential: what is within it matters only if it reaches further.

    That can be a name near its end, or if it was cut, the last name within it whose credential begins in it too.
    """
    inner = lowered.rfind(name, found.start, found.end) if found.cut else -1
    while inner >= 0:
        further = _find_beside(name, text, inner, inner + len(name)) if is_separate(name, lowered, inner) else None
        if further and further.start < found.end < further.end:
            return inner
        inner = lowered.rfind(name, found.start, inner)
    return found.end - _LONGEST_BETWEEN


def _find_user_passwords(text: str) -> Iterator[Assigned]:
    """Yield the passwords that are given to curl with the name of a user, and keys in place of a name."""
    latest = 0
    for match in _USER.finditer(text):
        at = text.rfind("curl ", max(latest, match.start() - _LONGEST_AFTER_CURL), match.start() + 1)
        if at < 0 or "\n" in text[at : match.start()].replace("\\\n", ""):
            continue  # of another command
        latest = match.end()
        if found := _judge("password", match, strict=match["whole"] is not None, plain=True):
            yield found


def _find_beside(name: str, text: str, at: int, end: int) -> Assigned | None:
    """Return the credential beside a name that ends at `end`, if there is one."""
    follows = text[end : end + 1]
    before = text[max(0, at - 60) : at]
    if follows in (" ", "=") and before.endswith("-") and _BEFORE_OPTION.search(before):
        match = _OPTION.match(text, end)
    elif (match := _ASSIGNED.match(text, end)) and (meant := judge_suffix(text[at:end], match["suffix"])):
        if _is_plain(text[at:end], match, before) or _is_data(text, match, before):
            return _judge(name, match, strict=meant == "other", plain=meant == "same")
        code = match["sign"] == "=" and " = " in match["between"] and match["quoted"] is None
        return _judge(name, match, strict=code or "\n" in match["between"] or meant == "other")
    elif follows == ">":
        match = _ELEMENT.match(text, end)
    elif name == "password" and _BEFORE_LOGIN.search(text[max(0, at - 120) : at]):
        match = _LOGIN.match(text, end)
    else:
        match = _match_said(name, text, end, before)
        return _judge(name, match, strict=True) if match else None
    return _judge(name, match, strict=False) if match else None


def _match_said(name: str, text: str, end: int, before: str) -> re.Match[str] | None:
    """Return the match of a value that a sentence gives to a name, or that comes right after it."""
    if match := _SAID.match(text, end):
        return match
    if text[end : end + 1] in (" ", "\t") and _BEFORE_SET.search(before) and (match := _SET.match(text, end)):
        return match
    if (name in FOREIGN_NAMES or name == "heslo") and (match := _SAID_THERE.match(text, end)):
        return match
    match = _NEXT.match(text, end)
    return match if match and is_unmistakable(name, match["quoted"] or match["bare"]) else None


def _is_plain(written: str, match: re.Match[str], before: str) -> bool:
    """Return whether a name and its value look like an environment or an address, where the value is no variable."""
    if match["between"] != "=" or match["quoted"] is not None:
        return False
    found = _BEFORE_PLAIN.search(before)
    return found is not None and (written.isupper() or found.group().startswith(("?", "&", ";")))


def _is_data(text: str, match: re.Match[str], before: str) -> bool:
    """Return whether a name and its value are an entry of JSON or a line of YAML: the value is no variable there."""
    if match["quoted"] is not None:
        return match["quote"] == '"' and match["between"].startswith('"') and bool(_BEFORE_JSON.search(before))
    is_line = text.startswith(("\n", "\r"), match.end()) or match.end() == len(text)
    return match["between"].startswith(": ") and is_line and bool(_BEFORE_YAML.search(before))


def _judge(name: str, match: re.Match[str], strict: bool, plain: bool = False) -> Assigned | None:
    groups = match.groupdict()
    group = next((group for group in ("quoted", "whole") if groups.get(group) is not None), "bare")
    value = str(groups[group])
    cut = len(value) in (_MOST, _MOST_SHORT)
    value = _first_parameter(value).rstrip(".,:?*") if group == "bare" else value.removesuffix("\\")
    word = kind_of(name) == "password" and ((plain and is_entry(value)) or is_phrase(value))
    if not word and not is_credential(name, value, group == "quoted", strict):
        return None
    start = match.start(group)
    return Assigned(kind_of(name), start, start + len(value), cut)


def _first_parameter(value: str) -> str:
    """Return a value of an address without the parameters that follow it."""
    following = _PARAMETER.search(value) if "&" in value or "%26" in value else None
    return value[: following.start()] if following else value

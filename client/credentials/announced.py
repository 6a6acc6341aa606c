"""Credentials that a name announces from further away: the line below it, its default, a column of a table.

`The password is:` and a line; `variable "db_password" { default = … }` and `--name db-password --value …`; a table
whose head says `password`. As beside a name (`assigned`), each pattern looks at a bounded part of the text.
"""

import re
from collections.abc import Iterator, Sequence

from memoryd.client.credentials.names import is_user, kind_of, name_in
from memoryd.client.credentials.values import Assigned, is_credential, is_entry
from memoryd.client.patterns import compile_late

_ANNOUNCED = compile_late(
    r"(?:s\b)?[*_\"'`]{0,3}(?: (?:for|of|to|on|in|at|für|zum|von|pour|de|du) [\w'.:/-]{1,40}(?: [\w'./-]{1,40}){0,3}?)?"
    r"(?P<said>(?: (?:is|are|was|lautet|ist|est|es|reads))?(?: (?:now|below|as follows|the following|this))?"
    r"[ \t]?[:：]?)[*_\"'`]{0,3}[ \t]{0,4}(?=\r?\n)",
    re.IGNORECASE,
)
_HEADING = compile_late(r"(?:^|\n)[ \t]{0,3}(?:#{1,6}[ \t]|\*\*|__)[^\n]{0,50}$")
_LINE_BELOW = compile_late(
    r"\r?\n(?:[ \t>]{0,8}\r?\n)?(?:[ \t>]{0,8}(?:```|~~~)\w{0,16}[ \t]{0,4}\r?\n)?[ \t]{0,12}(?:[>*-][ \t]{1,4})?"
    r"[*_]{0,3}(?P<quote>[\"'`]?)(?P<value>[^\s\"'`<>()\[\]{}|\\,;]{6,400}+)(?P=quote)[*_.]{0,3}[ \t]{0,4}(?:\r?\n|\Z)"
)
_LONGEST_ANNOUNCEMENT = 200  # characters of its line
_DEFAULT = compile_late(
    r"(?:(?<=[\s,{\"'(])(?:default|value)(?P<quote>[\"']?)[ \t]{0,8}(?::|=>|:?=)[ \t]{0,4}"
    r"|(?<=\s)--(?:value|default|body|secret-string)[ =]{1,3})"
    r"(?P<open>[\"'`]?)(?P<value>[^\s\"'`,;<>()\[\]{}|\\]{4,200}+)(?P=open)",
    re.IGNORECASE,
)
_OPENED = compile_late(r"(?P<quote>[\"'`]?)[ \t]{0,4}(?::[ \t]{0,4})?(?P<mark>[{,]|\r?\n|)")
_FAR = 400  # characters from a name to its default
_CELL = compile_late(r"s?[\w.-]{0,20}[*_`\"' \t]{0,4}(?:[|,;\t\r\n]|\Z)", re.IGNORECASE)
_DIVIDER = compile_late(r"[ \t>]{0,8}\|?(?:[ \t]{0,8}:?-{1,200}+:?[ \t]{0,8}(?:\||(?=\r?$))){1,200}+[ \t]{0,8}\r?$")
_HEAD_CELL = compile_late(r"[\"']?[\w.-]{1,30}(?: [\w.-]{1,20}){0,2}[\"']?")
_MARKS = " \t\r*_`\"'"
_LONGEST_HEAD = 2_000  # characters of a table's first line
_MIN_CHARS = 6  # of a value


def find_below(name: str, text: str, start: int, end: int) -> Assigned | None:
    """Return the credential that is the line below the one that ends with its announcement."""
    line_end = text.find("\n", end, end + _LONGEST_ANNOUNCEMENT)
    if line_end < 0 or (announced := _ANNOUNCED.match(text, end, line_end + 1)) is None:
        return None
    if not announced["said"].strip() and not _HEADING.search(text[max(0, start - 60) : start]):
        return None
    below = _LINE_BELOW.match(text, announced.end())
    return _judge(name, below, strict=True) if below else None


def find_default(name: str, text: str, lowered: str, start: int, end: int) -> Assigned | None:
    """Return the credential that something of this name has as its default or value, within the same braces or call.

    What follows indented less or as much belongs to something else.
    """
    if all(lowered.find(word, end, end + _FAR) < 0 for word in ("default", "value", " --")):
        return None
    opened, match = _OPENED.match(text, end), _DEFAULT.search(text, end, end + _FAR + 200)
    if match is None or opened is None:
        return None
    between = text[opened.end() : match.start()]
    if any(mark in between for mark in ("}", ")", ";", "\n\n", "|")):
        return None
    if match.group().startswith("--"):
        is_own = "\n" not in between.replace("\\\n", "") and opened["mark"] == ""
    elif opened["mark"] == "{":
        is_own = True
    elif opened["mark"] == ",":
        is_own = opened["quote"] != ""
    else:
        is_own = opened["mark"] != "" and _is_indented(text, start, opened.end(), match.start())
    return _judge(name, match, strict=False) if is_own else None


def _is_indented(text: str, start: int, begin: int, end: int) -> bool:
    """Return whether all lines from `begin` to the one of `end` are further in than the line of `start`."""
    line = text[text.rfind("\n", 0, start) + 1 : start]
    depth = len(line) - len(line.lstrip(" \t"))
    lines = text[begin:end].split("\n")
    return all(len(one) - len(one.lstrip(" \t")) > depth for one in lines[:-1]) and len(lines[-1]) > depth


def _judge(name: str, match: re.Match[str], strict: bool) -> Assigned | None:
    value = match["value"].rstrip(".:?*") if not match.group("quote") else match["value"]
    quoted = "open" in match.re.groupindex and match["open"] != ""
    if not is_credential(name, value, quoted, strict) and not (kind_of(name) == "password" and is_entry(value)):
        return None
    start = match.start("value")
    return Assigned(kind_of(name), start, start + len(value))


def is_cell(text: str, end: int) -> bool:
    """Return whether what ends at `end` may be the head of a column, or begin it."""
    return bool(_CELL.match(text, end))


def find_columns(text: str, places: Sequence[int]) -> Iterator[Assigned]:
    """Yield the credentials in tables whose first line has a telling name at one of these places."""
    done = 0
    for place in sorted(places):
        if place >= done:
            found, done = _read_table(text, text.rfind("\n", 0, place) + 1, _find_line_end(text, place))
            yield from found


def _find_line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _read_table(text: str, begin: int, end: int) -> tuple[list[Assigned], int]:
    """Return the credentials of the table with this first line, and where it ends; a line that is none ends there."""
    separator = next((one for one in "|\t;," if one in text[begin:end]), None) if end - begin < _LONGEST_HEAD else None
    at = end + 1
    if separator is None:
        return [], at
    heads = [cell.strip(_MARKS) for cell in text[begin:end].split(separator)]
    if separator == "|":
        divider_end = _find_line_end(text, at)
        if not _DIVIDER.fullmatch(text, at, divider_end):
            return [], at
        at = divider_end + 1
    elif not all(map(_HEAD_CELL.fullmatch, heads)):
        return [], at
    named = {column: name for column, head in enumerate(heads) if (name := name_in(head))}
    found, has_user = [], any(map(is_user, heads))
    while named and at < len(text):
        row = text[at : (row_end := _find_line_end(text, at))]
        if separator not in row or (separator != "|" and row.count(separator) != len(heads) - 1):
            break
        for column, cell in enumerate(row.split(separator)):
            value = cell.strip(_MARKS)
            if (name := named.get(column)) and _is_in_column(name, value, has_user):
                start = at + cell.index(value)
                found.append(Assigned(kind_of(name), start, start + len(value)))
            at += len(cell) + 1
        at = row_end + 1
    return found, at


def _is_in_column(name: str, value: str, has_user: bool) -> bool:
    if len(value) < _MIN_CHARS or len(value.split()) != 1:
        return False
    entry = kind_of(name) == "password" and (has_user or not value.isalpha()) and is_entry(value)
    return entry or is_credential(name, value, quoted=False)

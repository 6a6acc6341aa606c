"""Add and remove members and elements in a JSON text, without changing any other byte of it.

The text is never re-encoded, since that would lose its formatting. The standard library's decoder finds the positions
of values; added values are indented like the text. Raises `NotJson` for a text that is not JSON.
"""

import json
import re
from typing import Any, NamedTuple

Path = tuple[str | int, ...]  # keys of objects, indexes in arrays

_BLANK = re.compile(r"[ \t\r\n]*")
_INDENT = re.compile(r"\n([ \t]+)\S")
_decode = json.JSONDecoder().raw_decode


class NotJson(Exception):
    """The text is not JSON or lacks the expected structure; the message gives the reason, without a full stop."""


class JsonItem(NamedTuple):
    """A member of an object or an element of an array: its start and end in the text, and the start of its value."""

    key: str
    start: int
    value_at: int
    end: int
    value: Any


def parse(text: str) -> Any:
    """Decode a text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        rest = text[error.pos :].lstrip(" \t\r\n,")
        line = text.count("\n", 0, len(text) - len(rest)) + 1
        is_comment = rest.startswith(("//", "/*"))  # not valid in JSON, but some agents allow comments
        raise NotJson(f"a comment in line {line}" if is_comment else str(error)) from None
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)) from None


def add_member(text: str, path: Path, key: str, value: Any) -> str:
    """Return the text with `key: value` added to the object at a path; missing objects are created."""
    found = _find(text, path)
    if found is None:
        return add_member(text, path[:-1], str(path[-1]), {key: value})
    if not isinstance(found.value, dict):
        raise NotJson(f"{_name(path)} is no object")
    return _put(text, found.value_at, f"{json.dumps(key)}: ", value)


def add_element(text: str, path: Path, value: Any) -> str:
    """Return the text with a value appended to the array at a path; a missing array is created."""
    found = _find(text, path)
    if found is None:
        return add_member(text, path[:-1], str(path[-1]), [value])
    if not isinstance(found.value, list):
        raise NotJson(f"{_name(path)} is no array")
    return _put(text, found.value_at, "", value)


def remove(text: str, path: Path) -> str:
    """Return the text without the member or element at a path."""
    around = _find(text, path[:-1])
    if around is None or not isinstance(around.value, dict | list):
        return text
    items = _parse_items(text, around.value_at)
    at = next((at for at in reversed(range(len(items))) if path[-1] in (at, items[at].key)), None)
    if at is None:
        return text
    start, end = _cut(text, around.value_at, items, at)
    return text[:start] + text[end:]


def value_at(text: str, path: Path) -> Any:
    """Return the value at a path, None if there is none."""
    found = _find(text, path)
    return None if found is None else found.value


def _cut(text: str, opened_at: int, items: list[JsonItem], at: int) -> tuple[int, int]:
    """Return the range to delete for an item, including one comma and the line break."""
    if len(items) == 1:
        return opened_at + 1, _skip(text, items[0].end)
    if at:
        return items[at - 1].end, items[at].end
    return items[0].start, items[1].start


# Positions -----------------------------------------------------------------------------------------------------------


def _find(text: str, path: Path) -> JsonItem | None:
    """Return the item at a path, None if there is none; of duplicate keys the last one, as in parsers.

    Raise `NotJson` if a value on the path is not an object or array.
    """
    start = _skip(text, 0)
    value, end = _decode(text, start)
    found = JsonItem("", start, start, end, value)
    for depth, key in enumerate(path):
        if not isinstance(found.value, list if isinstance(key, int) else dict):
            raise NotJson(f"{_name(path[:depth])} is no {'array' if isinstance(key, int) else 'object'}")
        items = _parse_items(text, found.value_at)
        named = items[key : key + 1] if isinstance(key, int) else [item for item in items if item.key == key]
        if not named:
            return None
        found = named[-1]
    return found


def _name(path: Path) -> str:
    return ".".join(map(str, path)) or "the whole"


def _parse_items(text: str, opened_at: int) -> list[JsonItem]:
    """Return the members or elements of the object or array that begins at `opened_at`."""
    is_object = text[opened_at] == "{"
    found: list[JsonItem] = []
    at = _skip(text, opened_at + 1)
    while text[at] not in "}]":
        start, key = at, ""
        if is_object:
            key, at = _decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        value, end = _decode(text, at)
        found.append(JsonItem(key, start, at, end, value))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def _skip(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at


# Formatting ----------------------------------------------------------------------------------------------------------


def _put(text: str, opened_at: int, label: str, value: Any) -> str:
    """Return the text with `label value` appended to the object or array that begins at `opened_at`."""
    items = _parse_items(text, opened_at)
    if items and "\n" not in text[opened_at : items[-1].start]:  # it is on one line and stays so
        at = items[-1].end
        return f"{text[:at]}, {label}{json.dumps(value, ensure_ascii=False)}{text[at:]}"
    newline = "\r\n" if "\r\n" in text else "\n"
    indented = _INDENT.search(text)
    unit = indented[1] if indented else "  "
    outer = _find_margin(text, opened_at)
    inner = _find_margin(text, items[-1].start) if items else outer + unit
    written = json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", newline + inner)
    if items:
        at = items[-1].end
        return f"{text[:at]},{newline}{inner}{label}{written}{text[at:]}"
    closed_at = _skip(text, opened_at + 1)
    return f"{text[: opened_at + 1]}{newline}{inner}{label}{written}{newline}{outer}{text[closed_at:]}"


def _find_margin(text: str, at: int) -> str:
    """Return the indentation of the line that contains a position."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]

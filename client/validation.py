"""Validation errors of msgspec in plain words, since msgspec's own have its types and its notation of paths.

The daemon explains errors in calls with it, the client errors in mappings. It is imported only after an error.
"""

import re
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

_END_CHARS = 500
_PLACE = re.compile(r"(?P<what>.*?)(?: - at `(?P<key>key` in `)?\$(?P<path>[^`]*)`)?", re.DOTALL)
_ITEM = re.compile(r"\[[^][]*\]")
_BOUND = re.compile(r"Expected `(?:int|float)` (>=|<=|>|<) (\S+)")
_LENGTH = re.compile(r"Expected `(\w+)` of length (>=|<=) (\d+)")
_KIND = re.compile(r"Expected `([^`]+)`, got `([^`]+)`")
_MISSING = re.compile(r"Object missing required field `([^`]+)`")
_UNKNOWN = re.compile(r"Object contains unknown field `([^`]*)`")
_CHOICE = re.compile(r"Invalid enum value (.+)", re.DOTALL)
_BOUNDS = {">=": "{} or more", "<=": "{} or less", ">": "more than {}", "<": "less than {}"}
_LENGTHS = {">=": "at least", "<=": "at most"}
_UNITS = {"str": "character", "bytes": "byte"}
_KINDS = {
    "array": "a list",
    "bool": "true or false",
    "bytes": "bytes",
    "float": "a number",
    "int": "a whole number",
    "null": "empty",
    "object": "an object with names and values",
    "str": "text",
}


def explain_misfit(error: msgspec.ValidationError, shape: Any = None) -> str:
    """Return the error as the beginning of a sentence, like "`limit` must be 1 or more".

    `shape` is the type that the value should have; with it the message lists the values that are permitted.
    """
    text = str(error)
    if len(text) > 2 * _END_CHARS:  # the message quotes the value, which may be as long as a frame
        text = f"{text[:_END_CHARS]} … {text[-_END_CHARS:]}"
    place = _PLACE.fullmatch(text)
    if place is None:
        return text
    path = (place["path"] or "").lstrip(".")
    name = f"`{path.replace('[...]', '[…]')}`" if path else "it"
    what = place["what"]
    if place["key"]:
        name = f"a name in {name}"
    if match := _BOUND.fullmatch(what):
        return f"{name} must be {_BOUNDS[match[1]].format(match[2].removesuffix('.0'))}"
    if match := _LENGTH.fullmatch(what):
        several = "" if match[3] == "1" else "s"
        return f"{name} must have {_LENGTHS[match[2]]} {match[3]} {_UNITS.get(match[1], 'item')}{several}"
    if match := _KIND.fullmatch(what):
        wanted = [kind for kind in match[1].split(" | ") if kind != "null"]
        but = "" if wanted == ["int"] and match[2] == "float" else f", not {_name_kind(match[2])}"
        return f"{name} must be {' or '.join(map(_name_kind, wanted))}{but}"
    if match := _MISSING.fullmatch(what):
        return f"`{path}.{match[1]}` is missing" if path else f"`{match[1]}` is missing"
    if match := _UNKNOWN.fullmatch(what):
        return f"{name} has no field `{match[1]}`" if path else f"there is no field `{match[1]}`"
    if match := _CHOICE.fullmatch(what):
        choices = list(map(str, _find_choices(shape, path)))
        return f"{name} must be one of {', '.join(choices)}, not {match[1]}" if choices else f"{name} is not {match[1]}"
    return f"{name}: {what}"


def _name_kind(kind: str) -> str:
    return _KINDS.get(kind, kind)


def _find_choices(shape: Any, path: str) -> list[Any]:
    """Return the values that the field at a path of a type may have; empty if they are not limited."""
    for name in filter(None, _ITEM.sub("", path).split(".")):
        owner = next((part for part in _list_parts(shape) if name in getattr(part, "__struct_fields__", ())), None)
        if owner is None:
            return []
        shape = get_type_hints(owner, include_extras=True)[name]
    return [choice for part in _list_parts(shape) if get_origin(part) is Literal for choice in get_args(part)]


def _list_parts(shape: Any) -> Iterator[Any]:
    """Yield a type and the types that it is made of; a `Literal` is not taken apart."""
    yield shape
    if get_origin(shape) is not Literal:
        for part in get_args(shape):
            yield from _list_parts(part)

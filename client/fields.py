"""Conversion of arguments that are easy to write (a word or a list, mappings, dates in any form) to fields of calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from memoryd.client import protocol
from memoryd.client.errors import Invalid
from memoryd.client.protocol import Call, NewMemory, SearchOptions
from memoryd.client.times import When, moment, seconds

Words = str | Sequence[str]
GivenMemory = str | NewMemory | Mapping[str, Any]
C = TypeVar("C", bound=Call[Any])
T = TypeVar("T")


def namespace_text(namespace: str | Sequence[str] | None) -> str:
    """Return the wire form of a namespace: `("acme", "api")` and `"acme/api"` are the same; `/` is the root."""
    if namespace is None or isinstance(namespace, str):
        return "" if namespace == "/" else namespace or ""
    if not isinstance(namespace, Iterable):
        raise Invalid(f"The namespace must be text or a tuple of its parts, not {namespace!r}.")
    if not all(isinstance(part, str) and part and "/" not in part for part in namespace):
        raise Invalid(f"The namespace {tuple(namespace)!r} has a part that is empty, has a slash or is not text.")
    return "/".join(namespace)


def to_list(name: str, value: Words | None) -> list[str]:
    """Return the list of words of the argument `name`, which may be one word."""
    if value is None:
        return []
    if not isinstance(value, Iterable):
        raise Invalid(f"`{name}` must be text or a list of texts, not {value!r}.")
    return [value] if isinstance(value, str) else list(value)


def to_moment(when: When | None) -> float | None:
    """Return UTC seconds for a time in any form; None stays None."""
    return None if when is None else moment(when)


def _to_dict(name: str, value: Mapping[str, Any] | None) -> dict[str, Any]:
    if not isinstance(value, Mapping | None):
        raise Invalid(f"`{name}` must be a mapping of names to values, not {value!r}.")
    return dict(value or {})


def new_memory(item: GivenMemory) -> NewMemory:
    """Return a `NewMemory` for a text or for a mapping of its fields; dates may be ISO text or datetimes."""
    if isinstance(item, NewMemory):
        return item
    fields = {"content": item} if isinstance(item, str) else item
    return _make(NewMemory, fields, "a memory", ("created_at", "expires_at"))


def convert_entry(item: protocol.KeyedEntry | Mapping[str, Any]) -> protocol.KeyedEntry:
    """Return a `KeyedEntry` for a mapping of its fields, whose memory may be a mapping too."""
    if isinstance(item, protocol.KeyedEntry):
        return item
    if isinstance(item, Mapping) and item.get("memory") is not None:
        item = {**item, "memory": new_memory(item["memory"])}
    return _make(protocol.KeyedEntry, item, "an entry", ())


def new_turn(item: protocol.NewTurn | Mapping[str, Any]) -> protocol.NewTurn:
    """Return a `NewTurn` for a mapping of its fields; the date may be ISO text or a datetime."""
    return item if isinstance(item, protocol.NewTurn) else _make(protocol.NewTurn, item, "a turn", ("created_at",))


def convert_each(name: str, convert: Callable[[Any], T], items: Iterable[Any]) -> Iterator[T]:
    """Yield each of `items` converted; an error names the item by its index in the argument `name`."""
    if isinstance(items, str | Mapping) or not isinstance(items, Iterable):
        raise Invalid(f"`{name}` must be a list, not one {type(items).__name__}.")
    for number, item in enumerate(items):
        try:
            yield convert(item)
        except Invalid as error:
            raise Invalid(f"{name}[{number}]: {error.message}", {"index": number}) from None


def _make(kind: type[T], item: Mapping[str, Any], name: str, dates: tuple[str, ...]) -> T:
    if not isinstance(item, Mapping):
        raise Invalid(f"Not {name}: it must be a mapping, not {type(item).__name__}.")
    fields = {field: value for field, value in item.items() if value is not None}
    try:
        return msgspec.convert({**fields, **{date: seconds(fields[date]) for date in dates if date in fields}}, kind)
    except msgspec.ValidationError as error:
        from memoryd.client.validation import explain_misfit  # seldom needed

        known: tuple[str, ...] = getattr(kind, "__struct_fields__", ())
        unknown = fields.keys() - set(known)
        listed = f"; the fields are {', '.join(known)}" if unknown else ""
        if "namespace" in unknown:
            listed += " (the namespace is the client's: Client(namespace=…))"
        raise Invalid(f"Not {name}: {explain_misfit(error, kind)}{listed}.") from None


def new_message(item: protocol.Message | Mapping[str, Any]) -> protocol.Message:
    """Return a `Message` for a mapping of its fields or for an object that has them as attributes."""
    return _convert(item, protocol.Message, "a message")


def to_summary(item: protocol.RunningSummary | Mapping[str, Any] | None) -> protocol.RunningSummary | None:
    """Return a `RunningSummary` for a mapping of its fields or for an object that has them as attributes."""
    return None if item is None else _convert(item, protocol.RunningSummary, "a running summary")


def _convert(item: Any, kind: type[T], name: str) -> T:
    try:
        return msgspec.convert(item, kind, from_attributes=True)
    except msgspec.ValidationError as error:
        from memoryd.client.validation import explain_misfit

        raise Invalid(f"Not {name}: {explain_misfit(error, kind)}.") from None


def to_options(options: SearchOptions | Mapping[str, Any]) -> SearchOptions:
    """Return `SearchOptions` for a mapping of options."""
    return options if isinstance(options, SearchOptions) else _make(SearchOptions, options, "options of a search", ())


# How filters and options are converted; other fields stay as they are.
_FILTERS: dict[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(("type", "source", "tier", "ids"), to_list),
    "where": _to_dict,
    **dict.fromkeys(("after", "before"), lambda _, when: to_moment(when)),
    "options": lambda _, options: to_options(options),
}


def query_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a call, with filters and options converted to the types of the protocol."""
    return {**fields, **{name: convert(name, fields[name]) for name, convert in _FILTERS.items() if name in fields}}


def build(call: type[C], **fields: Any) -> C:
    """Return the call with its fields' names checked, so that a mistake raises `Invalid` at the caller's line."""
    for name in sorted(fields.keys() - set(call.__struct_fields__)):
        if "options" in call.__struct_fields__ and name in SearchOptions.__struct_fields__:
            raise Invalid(f"`{name}` is one of the options: options={{{name!r}: {fields[name]!r}}}.")
        from difflib import get_close_matches  # seldom needed

        near = get_close_matches(name, call.__struct_fields__, 1)
        listed = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(call.__struct_fields__)}."
        raise Invalid(f"There is no parameter `{name}`; {listed}")
    return call(**fields)

"""The fields of calls, from what people find easy to write: words or lists, mappings, dates in any form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from memoryd.client import protocol
from memoryd.client.errors import Invalid
from memoryd.client.protocol import Call, NewMemory
from memoryd.client.times import When, moment, seconds

Words = str | Sequence[str]
C = TypeVar("C", bound=Call[Any])


def namespace_text(namespace: str | Sequence[str] | None) -> str:
    """Return the wire form of a namespace: `("acme", "api")` and `"acme/api"` are the same."""
    if namespace is None or isinstance(namespace, str):
        return namespace or ""
    if not all(isinstance(part, str) and part and "/" not in part for part in namespace):
        raise Invalid(f"The namespace {tuple(namespace)!r} has a part that is empty, has a slash or is not text.")
    return "/".join(namespace)


def to_list(value: Words | None) -> list[str]:
    """Return a list for one word or several."""
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)


def new_memory(item: NewMemory | Mapping[str, Any]) -> NewMemory:
    """Return a `NewMemory` for a mapping of its fields; dates may be ISO text or datetimes."""
    if isinstance(item, NewMemory):
        return item
    fields = {name: value for name, value in item.items() if value is not None}
    for name in ("created_at", "expires_at"):
        if name in fields:
            fields[name] = seconds(fields[name])
    try:
        return msgspec.convert(fields, NewMemory)
    except msgspec.ValidationError as error:
        raise Invalid(f"Not a memory: {error}.") from None


def _filters(
    type: Words | None = None,
    source: Words | None = None,
    tier: Words | None = None,
    metadata: Mapping[str, Any] | None = None,
    where: Mapping[str, Any] | None = None,
    after: When | None = None,
    before: When | None = None,
    path_prefix: str | None = None,
    ids: Sequence[str] = (),
    reach: str | None = None,
) -> dict[str, Any]:
    return {
        "type": to_list(type),
        "source": to_list(source),
        "tier": to_list(tier),
        "metadata": dict(metadata or {}),
        "where": dict(where or {}),
        "after": None if after is None else moment(after),
        "before": None if before is None else moment(before),
        "path_prefix": path_prefix,
        "ids": list(ids),
        "reach": reach,
    }


_FILTER_NAMES = frozenset(_filters())


def query_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields of a call with the filters among them as the wire has them."""
    filters = _filters(**{name: fields.pop(name) for name in _FILTER_NAMES & fields.keys()})
    return {**filters, **fields}


def new_turn(item: protocol.NewTurn | Mapping[str, Any]) -> protocol.NewTurn:
    """Return a `NewTurn` for a mapping of its fields; the date may be ISO text or a datetime."""
    if isinstance(item, protocol.NewTurn):
        return item
    fields = {name: value for name, value in item.items() if value is not None}
    if "created_at" in fields:
        fields["created_at"] = seconds(fields["created_at"])
    try:
        return msgspec.convert(fields, protocol.NewTurn)
    except msgspec.ValidationError as error:
        raise Invalid(f"Not a turn: {error}.") from None


def build(call: type[C], **fields: Any) -> C:
    """Return the call with its fields checked, so that a mistake is an `Invalid` at the caller's line."""
    unknown = fields.keys() - set(call.__struct_fields__)
    if unknown:
        raise Invalid(f"{call.__name__} has no parameter {', '.join(sorted(unknown))}.")
    return call(**fields)

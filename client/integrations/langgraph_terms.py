"""Convert LangGraph's labels, keys, values and filters to memoryd's namespaces, keys, texts and conditions."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from memoryd.client.integrations.values import encode, escape_name, restore
from memoryd.client.protocol import Memory

if TYPE_CHECKING:
    from langgraph.store.base import NamespacePath

_MOST_KEY_BYTES = 500  # the daemon allows 512, for which a text's number is added
_ESCAPED = re.compile(r"[%/\x00-\x1f\x7f\ud800-\udfff]")
_KEY = re.compile(r"[\w .:@+\-]{1,512}")


def join_labels(labels: Sequence[str]) -> str:
    """Convert labels to a namespace: `("users", "a/b")` becomes `users/a%2Fb`."""
    return "/".join(map(_escape, labels))


def split_labels(namespace: str) -> tuple[str, ...]:
    """Convert a namespace from `join_labels` back to labels."""
    return tuple(unquote(label, errors="surrogatepass") for label in namespace.split("/")) if namespace else ()


def _escape(label: str) -> str:
    """Convert a label to a part of a namespace, which is not blank and has no slashes or control characters."""
    return _quote(label) if not label.strip() else _ESCAPED.sub(lambda found: _quote(found[0]), label)


def _quote(text: str) -> str:
    return quote(text, "", errors="surrogatepass")


def build_key(key: str) -> str:
    """Return the key of an item's memory, which has no line break."""
    escaped = escape_name(key)
    if not 1 <= len(escaped.encode()) <= _MOST_KEY_BYTES:
        raise ValueError(f"The key {key[:40]!r} is not a text of 1 to {_MOST_KEY_BYTES} bytes.")
    return escaped


def build_part_key(key: str, number: str) -> str:
    """Return the key of a further text of an item; without a number, the prefix of all these keys."""
    return f"{key}\n{number}"


def find_item_key(memory: Memory) -> str:
    """Return the item's key for the key of a memory, which is the item or a further text of it."""
    return restore((memory.key or "").partition("\n")[0])


def list_leaves(value: Any) -> Iterator[str]:
    """Yield the texts and numbers in a value, in order."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from list_leaves(item)
    elif value is not None:
        yield str(value)


def is_match(labels: Sequence[str], kind: str, path: "NamespacePath") -> bool:
    """Return whether labels start, or end, with a path; `*` in the path matches any label."""
    part = labels[: len(path)] if kind == "prefix" else labels[-len(path) :]
    return len(part) == len(path) and all(want in ("*", label) for want, label in zip(path, part, strict=True))


def build_where(filter: Mapping[str, Any] | None, path: str = "metadata") -> dict[str, Any]:
    """Convert LangGraph's filter to memoryd's; an object without operators is compared key by key."""
    parts: dict[str, Any] = {}
    for key, wanted in (filter or {}).items():
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            raise ValueError(f"Invalid filter key: {key!r}")
        name = f"{path}.{key}"
        if isinstance(wanted, Mapping) and wanted and not any(str(inner).startswith("$") for inner in wanted):
            parts |= build_where(wanted, name)
        else:
            parts[name] = _convert_operators(wanted)
    return parts


def _convert_operators(wanted: Any) -> Any:
    """Convert operators for the daemon: NaN equals nothing, large integers become floats."""
    operators = dict(wanted) if isinstance(wanted, Mapping) and wanted else {"$eq": wanted}
    for name, value in operators.items():
        if isinstance(value, float) and math.isnan(value):
            return {"$in": []}
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            operators[name] = float(value)
    return {name: encode(value) for name, value in operators.items()}

"""LangGraph's labels, keys, values and filters as memoryd has them: namespaces, keys, texts, conditions."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from memoryd.client.integrations.values import encode, escape_name, restore
from memoryd.client.protocol import Memory

if TYPE_CHECKING:
    from langgraph.store.base import NamespacePath

_MOST_KEY_BYTES = 500  # the daemon takes 512: with the number of a part
_ESCAPED = re.compile(r"[%/\x00-\x1f\x7f\ud800-\udfff]")
_KEY = re.compile(r"[\w .:@+\-]{1,512}")


def join_labels(labels: Sequence[str]) -> str:
    """Return labels as a namespace: `("users", "a/b")` is `users/a%2Fb`."""
    return "/".join(map(_escape, labels))


def split_labels(namespace: str) -> tuple[str, ...]:
    """Return the labels of a namespace that `join_labels` made."""
    return tuple(unquote(label, errors="surrogatepass") for label in namespace.split("/")) if namespace else ()


def _escape(label: str) -> str:
    """Return a label as a part of a namespace: neither blank nor with a slash or a control character."""
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
    """Return the key of a further text of an item; without a number what those of all of them begin with."""
    return f"{key}\n{number}"


def find_item_key(memory: Memory) -> str:
    """Return the key of the item that a memory is, or is a further text of."""
    return restore((memory.key or "").partition("\n")[0])


def list_leaves(value: Any) -> Iterator[str]:
    """Yield the texts and numbers of a value, in order."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from list_leaves(item)
    elif value is not None:
        yield str(value)


def is_match(labels: Sequence[str], kind: str, path: "NamespacePath") -> bool:
    """Return whether labels begin, or end, as a path does; `*` in it is any label."""
    part = labels[: len(path)] if kind == "prefix" else labels[-len(path) :]
    return len(part) == len(path) and all(want in ("*", label) for want, label in zip(path, part, strict=True))


def build_where(filter: Mapping[str, Any] | None, path: str = "metadata") -> dict[str, Any]:
    """Return LangGraph's filter as one of memoryd: an object that has no operator compares the keys that it names."""
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
    """Return what a value is compared with as the daemon takes it: nothing equals NaN, large integers are floats."""
    operators = dict(wanted) if isinstance(wanted, Mapping) and wanted else {"$eq": wanted}
    for name, value in operators.items():
        if isinstance(value, float) and math.isnan(value):
            return {"$in": []}
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            operators[name] = float(value)
    return {name: encode(value) for name, value in operators.items()}

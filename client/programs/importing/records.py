"""What importers share: records with ids of their origin, times and namespaces as ours, an account of the rest.

The id of an imported memory follows from its system, its name there and the namespace of the import: the same import
again finds what it brought, and two projects with files of the same name do not take each other's.
"""

import hashlib
from collections import Counter
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct, field

from memoryd.client.errors import Invalid
from memoryd.client.protocol import MAX_CONTENT_BYTES, Record
from memoryd.client.times import seconds

# Types that memoryd knows, or that an importer gives; a category that is none of them becomes a tag of a fact.
TYPES = frozenset(
    "best-practice codebase-knowledge correction debugging decision fact lesson mistake-pattern note preference"
    " relation session-summary".split()
)
_PART_BYTES = 100
_WORD_BYTES = 128
_MILLISECONDS_FROM = 1e11  # a number of seconds above it would be after the year 5000
_LATEST = 253402300799.0  # the year 9999


class Unconfirmed(Invalid):
    """A source names folders elsewhere that nobody has confirmed; the message has them, one a line."""

    code = "unconfirmed"


class Account(Struct):
    """What is left out, by reason, and what is to be said of the source; `base` is the namespace of the import.

    `confirmed` says that folders which the source names may be read wherever they are. With `place` all memories are in
    this one namespace.
    """

    system: str
    base: str = ""
    skipped: Counter[str] = field(default_factory=Counter)
    notes: list[str] = []
    confirmed: bool = False
    place: str | None = None

    def skip(self, reason: str, number: int = 1) -> None:
        """Count something that is left out."""
        if number:
            self.skipped[reason] += number

    def namespace(self, *names: Any) -> str:
        """Return the namespace of these names below that of the import; empty ones are left out."""
        if self.place is not None:
            return self.place
        parts = [self.base, *(to_namespace_part(name) for name in names if name not in (None, ""))]
        return "/".join(name for name in parts if name)

    def stable_id(self, key: str) -> str:
        """Return the id of a memory by its name in the other system."""
        name = f"{self.system}\0{self.base}\0{key}"
        return hashlib.sha256(name.encode(errors="replace")).hexdigest()[:32]


def make_record(
    account: Account,
    key: str,
    content: str,
    *,
    namespace: str,
    type: Any = "fact",
    created_at: float,
    updated_at: float | None = None,
    **others: Any,
) -> Record | None:
    """Return a memory, None (and count it) when the content is none; `key` is its name in the system it comes from.

    A type that is none of `TYPES` becomes a tag of a memory of the type `otherwise`.
    """
    text = clean(content).strip()
    if not text:
        account.skip("without content")
        return None
    if len(text.encode()) > MAX_CONTENT_BYTES:
        account.skip("longer than 1 MiB")
        return None
    metadata = {name: value for name, value in others.pop("metadata", {}).items() if value not in (None, "", [], {})}
    kind, otherwise = to_type_word(type), others.pop("otherwise", "fact")
    if kind and kind.casefold() not in TYPES:
        tags = metadata.get("tags", [])
        metadata["tags"] = list(dict.fromkeys([kind, *(tags if isinstance(tags, list) else [tags])]))
    return Record(
        id=account.stable_id(key),
        namespace=namespace,
        type=kind.casefold() if kind.casefold() in TYPES else otherwise,
        content=text,
        summary=clean(others.pop("summary", "")),
        metadata=metadata,
        source=account.system,
        created_at=created_at,
        updated_at=max(created_at, created_at if updated_at is None else updated_at),
        **others,
    )


def clean(text: str) -> str:
    """Return a text without NUL bytes and halves of characters, which no memory has."""
    return text.replace("\0", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def clean_tree(value: Any) -> Any:
    """Return what JSON may hold with clean texts."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean_tree(name): clean_tree(held) for name, held in value.items()}
    return [clean_tree(held) for held in value] if isinstance(value, list | tuple) else value


def to_namespace_part(name: Any) -> str:
    """Return a name as one part of a namespace."""
    text = "".join(" " if ord(c) < 32 else c for c in str(name)).replace("/", "-").strip(" -")
    return text.encode(errors="replace")[:_PART_BYTES].decode(errors="ignore").strip()


def to_type_word(name: Any) -> str:
    """Return a type as a word that a memory may have."""
    text = " ".join(clean(str(name or "")).split())
    return text.encode()[:_WORD_BYTES].decode(errors="ignore")


def parse_time(value: Any, fallback: float) -> float:
    """Return UTC seconds for a time in seconds, milliseconds or as text; `fallback` for what is no time."""
    try:
        if isinstance(value, datetime):
            value = value.replace(tzinfo=value.tzinfo or UTC).timestamp()
        number = float(value) if isinstance(value, int | float) else seconds(str(value).strip())
    except (Invalid, ValueError, OverflowError):
        return fallback
    number = number / 1000 if number > _MILLISECONDS_FROM else number
    return number if 0.0 <= number <= _LATEST else fallback

"""Code shared by the importers: build records, convert times and namespaces, count skipped entries.

The id of an imported memory is a hash of its system, its name there and the namespace of the import. So a repeated
import finds the memories of the first, and two projects with files of the same name do not overwrite each other's.
"""

import hashlib
from collections import Counter
from typing import Any

from msgspec import Struct, field

from memoryd.client.errors import Invalid
from memoryd.client.protocol import MAX_CONTENT_BYTES, Record
from memoryd.client.times import parse_seconds

# Types that memoryd or an importer uses; any other category becomes a tag of a fact.
TYPES = frozenset(
    "best-practice codebase-knowledge correction debugging decision fact lesson mistake-pattern note preference"
    " relation session-summary".split()
)
_PART_BYTES = 100
_WORD_BYTES = 128


class Unconfirmed(Invalid):
    """The source refers to folders elsewhere without `--confirmed`; the message lists them, one per line."""

    code = "unconfirmed"


class Account(Struct):
    """Settings of an import, its skipped entries by reason, and notes for the user.

    `base` is the namespace of the import. `confirmed`: folders that the source refers to may be read wherever they are.
    `place`, if given, is the namespace of all memories.
    """

    system: str
    base: str = ""
    skipped: Counter[str] = field(default_factory=Counter)
    notes: list[str] = []
    confirmed: bool = False
    place: str | None = None

    def skip(self, reason: str, number: int = 1) -> None:
        """Count skipped entries."""
        if number:
            self.skipped[reason] += number

    def namespace(self, *names: Any) -> str:
        """Return the namespace with these names below that of the import; empty names are ignored."""
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
    """Build a record, or count it as skipped and return None if its content is empty or too long.

    `key` is its name in the other system. A type that is not in `TYPES` becomes a tag, and the type is then
    `otherwise`.
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
    """Remove NUL bytes from a text and replace lone surrogates; a memory may contain neither."""
    return text.replace("\0", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def clean_tree(value: Any) -> Any:
    """Return a JSON value with all texts cleaned."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean_tree(name): clean_tree(held) for name, held in value.items()}
    return [clean_tree(held) for held in value] if isinstance(value, list | tuple) else value


def to_namespace_part(name: Any) -> str:
    """Convert a name to one part of a namespace."""
    text = "".join(" " if ord(c) < 32 else c for c in str(name)).replace("/", "-").strip(" -")
    return text.encode(errors="replace")[:_PART_BYTES].decode(errors="ignore").strip()


def to_type_word(name: Any) -> str:
    """Convert a type to one that a memory may have: one line of limited length."""
    text = " ".join(clean(str(name or "")).split())
    return text.encode()[:_WORD_BYTES].decode(errors="ignore")


def parse_time(value: Any, fallback: float) -> float:
    """Return UTC seconds for a time in seconds, milliseconds or as text; `fallback` if it cannot be parsed."""
    found = parse_seconds(value)
    return fallback if found is None else found

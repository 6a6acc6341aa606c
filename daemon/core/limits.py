"""Validation of memories: each check raises `Invalid` with one sentence."""

import math
from typing import Any

import msgspec

from memoryd.client.credentials.private import WHOLE
from memoryd.client.errors import Conflict, Invalid
from memoryd.client.protocol import MAX_CONTENT_BYTES, MAX_METADATA_BYTES, MAX_METADATA_DEPTH, Metadata, NewMemory
from memoryd.daemon.store.hashes import content_hash as content_hash
from memoryd.daemon.store.tiers import DOCUMENTS

MAX_WORD_BYTES = 128
MAX_NEIGHBOURS = 8
MAX_PATH_BYTES = 4096
MAX_FILES, MAX_FILES_BYTES = 100, 16_384  # of a turn
_SHOWN = 80  # characters of the path to a value in metadata
_HEX = frozenset("0123456789abcdef")


def check_memory(memory: NewMemory) -> None:
    """Check every field of a memory to be added."""
    check_content(memory.content)
    check_text("summary", memory.summary)
    check_word("type", memory.type)
    check_word("source", memory.source)
    check_metadata(memory.metadata)
    if len(memory.neighbours) > MAX_NEIGHBOURS:
        raise Invalid(f"{len(memory.neighbours)} neighbours are given; the limit is {MAX_NEIGHBOURS}.")
    for neighbour in memory.neighbours:
        check_text("neighbour", neighbour)
    check_place(memory)
    if memory.id is not None:
        check_id(memory.id)


def check_nth(number: int, memory: NewMemory) -> None:
    """Check one of several memories; the error says which."""
    try:
        check_memory(memory)
    except Invalid as error:
        raise Invalid(f"Memory {number}: {error}", {"index": number}) from None


def check_id(id: str) -> None:
    """Check that an id is 32 lower-case hex digits."""
    if len(id) != 32 or not _HEX.issuperset(id):
        raise Invalid(f"The id {id[:80]!r} is not 32 lower-case hex digits.")


def check_place(memory: NewMemory) -> None:
    """Check the path of the file that a memory comes from, and its line numbers."""
    path, start, end = memory.path, memory.start_line, memory.end_line
    if path is None:
        if start is not None or end is not None:
            raise Invalid("Lines are given without the path of the file that they are in.")
        return
    check_text("path", path)
    if not path.strip() or len(path.encode()) > MAX_PATH_BYTES:
        raise Invalid(f"The path {path[:40]!r} is not one of 1 to {MAX_PATH_BYTES} bytes.")
    if end is not None and (start is None or end < start):
        raise Invalid(f"Line {end} cannot be the last: the first is {start or 'not given'}.")


def check_content(content: str) -> None:
    """Check that the content is a non-empty text of at most 1 MiB without NUL bytes, and not private as a whole."""
    if not content.strip():
        raise Invalid("The content is empty.")
    if content == WHOLE:
        raise Invalid("All of it is marked <private>, so nothing was stored.")
    check_text("content", content)


def check_text(name: str, text: str) -> None:
    """Check that a text has at most 1 MiB and no NUL bytes."""
    if "\0" in text:
        raise Invalid(f"The {name} has a NUL byte.")
    size = len(text.encode())
    if size > MAX_CONTENT_BYTES:
        raise Invalid(f"The {name} has {size} bytes; the limit is {MAX_CONTENT_BYTES}. Split it or keep it in a file.")


def check_word(name: str, word: str) -> None:
    """Check that a type or source is a short word."""
    if not word.strip() or len(word.encode()) > MAX_WORD_BYTES or any(ord(character) < 32 for character in word):
        raise Invalid(f"The {name} {word[:40]!r} is not a word of 1 to {MAX_WORD_BYTES} bytes.")


def check_files(files: list[str]) -> None:
    """Check that there are not too many files, and that each is a path on one line."""
    if len(files) > MAX_FILES or sum(len(path.encode()) for path in files) > MAX_FILES_BYTES:
        raise Invalid(f"More than {MAX_FILES} files are named, or their paths are longer than {MAX_FILES_BYTES} bytes.")
    for path in files:
        if not path.strip() or any(ord(character) < 32 for character in path) or path.splitlines() != [path]:
            raise Invalid(f"{path[:40]!r} is not the path of a file.")


def check_editable(memory: str, tier: str, path: str | None) -> None:
    """Refuse to change a memory that is part of a file: the file is to be changed instead."""
    if tier == DOCUMENTS:
        raise Conflict(
            f"Memory {memory[:8]} is a part of the file {path}; edit the file, or take its lines out with"
            f" `memctl forget {memory[:8]}`.",
            {"id": memory, "path": path},
        )


def check_metadata(metadata: Metadata, limit_bytes: int = MAX_METADATA_BYTES) -> None:
    """Check that metadata can be encoded as JSON, is at most 16 levels deep and has at most 64 KiB."""
    size = _json_size(metadata, "metadata", MAX_METADATA_DEPTH)
    if size > limit_bytes:
        raise Invalid(f"The metadata is about {size} bytes; the limit is {limit_bytes}.")


def check_depth(value: dict[str, Any] | list[Any], where: str = "metadata", depth: int = MAX_METADATA_DEPTH) -> None:
    """Raise `Invalid` for metadata that is nested too deeply; what passes may be traversed recursively."""
    if depth < 0:
        raise _refuse_depth(where)
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        if isinstance(item, dict | list):
            check_depth(item, _join_path(where, f".{key}"), depth - 1)


def _join_path(where: str, step: str) -> str:
    """Return the path of a value, shortened, so that a long key is not repeated for each of its values."""
    return (where + step)[:_SHOWN]


def metadata_text(metadata: Metadata, limit_bytes: int = MAX_METADATA_BYTES) -> str:
    """Encode metadata with sorted keys, so that equal objects are equal texts in a filter."""
    check_metadata(metadata, limit_bytes)
    return msgspec.json.encode(metadata, order="sorted").decode()


def _json_size(value: Any, where: str, depth: int) -> int:
    """Return the approximate size of a value as JSON; raise `Invalid` for values that JSON does not have."""
    if depth < 0:
        raise _refuse_depth(where)
    if isinstance(value, dict):
        return 2 + sum(
            _key_size(key, where) + _json_size(v, _join_path(where, f".{key}"), depth - 1) for key, v in value.items()
        )
    if isinstance(value, list):
        return 2 + sum(1 + _json_size(item, _join_path(where, f"[{n}]"), depth - 1) for n, item in enumerate(value))
    if isinstance(value, str):
        if "\0" in value:
            raise Invalid(f"The {where[:_SHOWN]} has a NUL byte.")
        return len(value.encode()) + 2
    if isinstance(value, float) and not math.isfinite(value):
        raise Invalid(f"{where[:_SHOWN]} is not a finite number.")
    if value is None or isinstance(value, bool | int | float):
        return 8
    raise Invalid(f"{where[:_SHOWN]} is a {type(value).__name__}, which JSON cannot hold.")


def _refuse_depth(where: str) -> Invalid:
    return Invalid(f"The metadata is nested deeper than {MAX_METADATA_DEPTH} at {where[:_SHOWN]}.")


def _key_size(key: Any, where: str) -> int:
    if not isinstance(key, str) or "\0" in key:
        raise Invalid(f"{where[:_SHOWN]} has a key that is not text: {key!r}.")
    return len(key.encode()) + 4

"""Exported memories as text: a JSON object per line, or a Markdown file with front matter. Both are lossless.

Front matter is `key: value` with JSON values, which is YAML that needs no YAML parser; fields with default values are
left out. The content follows unchanged, then one line end. Times are ISO 8601 with as many decimals as are needed.
"""

import re
import unicodedata
from typing import Any

import msgspec

from memoryd.client.errors import Invalid
from memoryd.client.programs.memctl.escapes import decode_json
from memoryd.client.programs.memctl.output import escape_controls
from memoryd.client.protocol import Record
from memoryd.client.times import exact_iso, seconds
from memoryd.client.validation import explain_misfit

FENCE = "---"
TIMES = ("created_at", "updated_at", "last_accessed_at", "expires_at", "confirmed_at")
FIELDS = frozenset(Record.__struct_fields__)
NAME_BYTES = 60
_DEFAULTS = msgspec.to_builtins(Record(id="", namespace="", type="", content="", created_at=0.0, updated_at=0.0))
_REQUIRED = frozenset(field.name for field in msgspec.structs.fields(Record) if field.required)
_ORIGINS = {"manual": "person", "mcp": "agent"}  # by source
# Characters that JSON does not escape, but that YAML, editors or terminals treat as line ends or control characters.
_UNSAFE = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")
_WORDS = re.compile(r"[^\w.]+")


def to_plain(record: Record) -> dict[str, Any]:
    """Return a record as plain values for JSON."""
    fields: dict[str, Any] = msgspec.to_builtins(record)
    for name in TIMES:
        fields[name] = exact_iso(fields[name])
    for link in fields["relations"]:
        link["created_at"] = exact_iso(link["created_at"])
    return fields


def format_json(record: Record) -> bytes:
    """Return a record as a line of JSON."""
    return escape_controls(msgspec.json.encode(to_plain(record))) + b"\n"


def format_markdown(record: Record) -> bytes:
    """Return a record as a Markdown file."""
    fields = to_plain(record)
    content = fields.pop("content")
    head = "\n".join(f"{name}: {_format_value(value)}" for name, value in fields.items() if _is_written(name, value))
    return f"{FENCE}\n{head}\n{FENCE}\n{content}\n".encode()


def _is_written(name: str, value: Any) -> bool:
    """Return whether a field is written; an empty, zero, false or null one is left out if that is its default."""
    return bool(value) or name in _REQUIRED or value != _DEFAULTS[name]


def _format_value(value: Any) -> str:
    text = msgspec.json.format(msgspec.json.encode(value), indent=0).decode()
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def parse_json(line: bytes | msgspec.Raw) -> Record:
    """Return the record of a line of JSON; raise `Invalid`."""
    try:
        return convert_record(decode_json(line, dict[str, Any]))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"Not a JSON object: {error}.") from None


def parse_markdown(data: bytes) -> Record | None:
    """Return the record of a Markdown file, None if the file is not an export; raise `Invalid` if it is damaged."""
    if not data.startswith((f"{FENCE}\n".encode(), f"{FENCE}\r\n".encode())):
        return None
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError as error:
        raise Invalid(f"Byte {error.start} is not UTF-8 text.") from None
    end = next((at for at, line in enumerate(lines[1:], start=1) if line.rstrip() == FENCE), None)
    if end is None or not any(line.startswith("id:") for line in lines[1:end]):
        return None
    content = "\n".join(lines[end + 1 :]).removesuffix("\n")
    return convert_record({**_parse_head(lines[1:end]), "content": content})


def _parse_head(lines: list[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for number, line in enumerate(lines, start=2):
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, text = line.partition(":")
        if not colon or name in fields or name == "content":
            raise Invalid(f"Line {number} is not a new `key: value` of the front matter.")
        fields[name] = _decode(name, text.strip(), number)
    return fields


def _decode(name: str, text: str, number: int) -> Any:
    try:
        return decode_json(text.encode(), object)
    except (msgspec.DecodeError, RecursionError):
        if text and text[0] not in "\"'[{&*!|>%@`" and name in FIELDS:
            return text  # a word without quotes, as a person writes it
        raise Invalid(f"Line {number}: the value of {name[:40]} is not JSON.") from None


def convert_record(fields: dict[str, Any]) -> Record:
    """Return the record of plain fields; raise `Invalid` for unknown fields, which would be lost silently."""
    if unknown := fields.keys() - FIELDS:
        raise Invalid(f"A memory has no field {', '.join(sorted(unknown))[:80]}.")
    values = dict(fields)
    if "origin" not in fields:  # an export of an older memoryd
        values["origin"] = "heard" if fields.get("turns") else _ORIGINS.get(str(fields.get("source")), "import")
    for name in TIMES:
        if isinstance(values.get(name), str):
            values[name] = seconds(values[name])
    try:
        values["relations"] = [_convert_link(link) for link in values.get("relations", [])]
        record = msgspec.convert(values, Record)
        msgspec.msgpack.encode(record)
    except (msgspec.ValidationError, TypeError, ValueError, OverflowError, RecursionError) as error:
        reason = explain_misfit(error, Record) if isinstance(error, msgspec.ValidationError) else error
        raise Invalid(f"Not a memory: {reason}.") from None
    return record


def _convert_link(fields: Any) -> dict[str, Any]:
    return {**fields, "created_at": seconds(fields["created_at"]) if "created_at" in fields else 0.0}


# Names of files ------------------------------------------------------------------------------------------------------


def folder_name(namespace: str) -> str:
    """Return the folder of a namespace as a relative path; the front matter has the namespace itself."""
    return "/".join(slug(part) for part in namespace.split("/")) if namespace else ""


def file_name(record: Record, digits: int = 8) -> str:
    """Return a readable name for the file of a record, distinguished by the first digits of its id."""
    words = slug(record.summary or record.content[:200])
    return f"{words}-{record.id[:digits]}.md"


def slug(text: str) -> str:
    """Return text as a file name: words joined by dashes, at most 60 bytes, never hidden and never `..`."""
    words = _WORDS.sub("-", unicodedata.normalize("NFC", text)).strip("-.").casefold()
    name = words.encode()[:NAME_BYTES].decode(errors="ignore").strip("-.")
    return name or "_"

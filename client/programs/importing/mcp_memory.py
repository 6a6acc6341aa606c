"""The memory server of the MCP reference servers: JSON lines with entities, their observations, and relations.

Each observation becomes a memory that begins with the name of its entity. Each relation becomes a memory that says it
in a sentence. The file has no times and no users: new memories get the time of the file, existing ones keep theirs.
"""

import json
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from memoryd.client.errors import Invalid
from memoryd.client.programs.importing.records import Account, make_record
from memoryd.client.programs.memctl.escapes import decode_json
from memoryd.client.programs.memctl.sending import Item, read_lines
from memoryd.client.protocol import Record

_OBJECT = re.compile(r'\{\s*"')
_DECODER = json.JSONDecoder()
FILE_NAMES = ("memory.jsonl", "memory.json")


def read(path: Path, account: Account) -> Iterator[Item]:
    """Yield observations and relations in the order of the file."""
    file = next((path / name for name in FILE_NAMES if (path / name).is_file()), path) if path.is_dir() else path
    if file.is_dir():
        raise Invalid(f"{path} has no {FILE_NAMES[0]}; name the file.")
    at = file.stat().st_mtime
    known = seen = 0
    with file.open("rb") as lines:
        for number, line in enumerate(read_lines(lines, str(file)), start=1):
            if not line.strip():
                continue
            seen += 1
            for entry in _parse_line(line.removeprefix(BOM_UTF8)):
                if entry is None:
                    account.skip("lines that are cut off, or neither an entity nor a relation")
                    account.notes.append(f"{file}, line {number}: not an entity or relation, left out.")
                    continue
                known += 1
                for made in _convert_entry(account, entry, at):
                    yield Item(f"{file}, line {number}", made, time="unknown")
    if seen and not known:
        raise Invalid(f"{file} is not a file of the MCP memory server: no line is an entity or a relation.")


def _parse_line(line: bytes) -> Iterator[dict[str, Any] | None]:
    """Yield the entities and relations of a line, and None for each part that is neither.

    If two servers write at once, a line may have several objects, some of them incomplete.
    """
    try:
        yield _check_entry(decode_json(line, object))
        return
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = line.decode(errors="replace")
    at, is_whole = 0, True  # whether everything before `at` was decoded
    while begin := _OBJECT.search(text, at):
        is_whole = is_whole and not text[at : begin.start()].strip(" \t\r\n,")
        try:
            entry, at = _DECODER.raw_decode(text, begin.start())
        except (ValueError, RecursionError):
            at, is_whole = begin.end(), False
            continue
        if not is_whole:
            yield None
        yield _check_entry(entry)
        is_whole = True
    if not is_whole or text[at:].strip(" \t\r\n,"):
        yield None


def _check_entry(entry: object) -> dict[str, Any] | None:
    if not isinstance(entry, dict):
        return None
    needed = {"entity": ("name", "entityType", "observations"), "relation": ("from", "to", "relationType")}
    names = needed.get(str(entry.get("type")))
    whole = names and all(name in entry for name in names)
    return entry if whole and (entry["type"] == "relation" or isinstance(entry["observations"], list)) else None


def _convert_entry(account: Account, entry: dict[str, Any], at: float) -> Iterator[Record | None]:
    if entry["type"] == "relation":
        origin, kind, target = str(entry["from"]), str(entry["relationType"]), str(entry["to"])
        yield make_record(
            account,
            f"relation\0{origin}\0{kind}\0{target}",
            f"{origin} {kind.replace('_', ' ')} {target}",
            namespace=account.namespace(),
            type="relation",
            created_at=at,
            metadata={"from": origin, "relation": kind, "to": target},
        )
        return
    name, kind = str(entry["name"]), str(entry["entityType"])
    observations = dict.fromkeys(map(str, entry["observations"]))
    observed = {f"observation\0{name}\0{text}": f"{name}: {text}" if text.strip() else "" for text in observations}
    for key, text in (observed or {f"entity\0{name}": f"{name} is a {kind}." if kind else name}).items():
        yield make_record(
            account,
            key,
            text,
            namespace=account.namespace(),
            created_at=at,
            metadata={"entity": name, "entity_type": kind},
        )

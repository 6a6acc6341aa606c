"""Front matter: YAML between `---` lines, or TOML between `+++` lines, at the very start of a file.

Its author is unknown, so it is checked before it is decoded: no aliases (a few can expand to gigabytes), no deep
nesting, a limited size. An error is reported as a problem of the file, and the lines are then treated as text.
"""

import math
import tomllib
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

import yaml
from msgspec import json

from memoryd.client.errors import Invalid
from memoryd.client.times import seconds
from memoryd.daemon.workspaces.documents.document import Front

MAX_LINES = 500
MAX_CHARS = 32 * 1024
MAX_DEPTH = 12  # metadata may have 16
MAX_EVENTS = 5_000
MAX_WORD_BYTES = 128  # in a type or tag
MAX_INTEGER = 2**63 - 1

_MARKS = ("---", "+++")  # of YAML and of TOML
_CREATED = ("created", "created_at", "date_created", "date")  # in the order of preference
_CHANGED = ("modified", "date_modified")

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NEVER = frozenset({"", "never", "no", "none", "false"})
_YES = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def parse_front_matter(lines: Sequence[str]) -> tuple[Front, str | None]:
    """Return the front matter of a file, by default an empty one, and what is wrong with it."""
    end = _end(lines)
    if not end:
        return Front(), None
    text = "\n".join(lines[1 : end - 1])
    try:
        if len(text) > MAX_CHARS:
            raise ValueError(f"it is longer than {MAX_CHARS} characters")
        values = _read_yaml(text) if lines[0].rstrip() == "---" else _read_toml(text)
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        return Front(), f"The front matter is indexed as text, because it cannot be read: {_reason(error)}."
    if values is None:
        return Front(), None
    problems = list[str]()
    front = Front(
        type=_type(values.pop("type", None), problems),
        tags=_read_tags(values.pop("tags", None), problems),
        pinned=_read_pinned(values.pop("pinned", None), problems),
        expires_at=_read_expires(values.pop("expires", None), problems),
        created_at=_find_time(values, _CREATED),
        changed_at=_find_time(values, _CHANGED),
        metadata=values,
        end_line=end,
    )
    return front, " ".join(problems) or None


def _end(lines: Sequence[str]) -> int:
    """Return the number of lines of the front matter, 0 if there is none."""
    mark = lines[0].rstrip() if lines else ""
    if mark not in _MARKS:
        return 0
    return next((number + 1 for number, line in enumerate(lines[1:MAX_LINES], 1) if line.rstrip() == mark), 0)


def _read_yaml(text: str) -> dict[str, Any] | None:
    """Return the values of YAML text, converted for JSON; None if it is not a mapping."""
    _check(text)
    mapping = yaml.load(text, Loader=_Loader)
    if not isinstance(mapping, dict | None):
        return None
    found: dict[str, Any] = _convert(mapping or {})
    return found


def _read_toml(text: str) -> dict[str, Any]:
    values = tomllib.loads(f"\n{text}")  # so that errors name the lines of the file
    _check_depth(values, MAX_DEPTH)
    found: dict[str, Any] = _convert(values)
    return found


def _check_depth(value: Any, left: int) -> None:
    if left < 0:
        raise ValueError(f"it is nested deeper than {MAX_DEPTH}")
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_depth(item, left - 1)


def _check(text: str) -> None:
    depth = 0
    events: Iterator[yaml.Event] = yaml.parse(text, Loader=_Loader)
    for number, event in enumerate(events):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if isinstance(event, yaml.AliasEvent):
            raise ValueError("it has an alias (`*name`)")
        if depth > MAX_DEPTH:
            raise ValueError(f"it is nested deeper than {MAX_DEPTH}")
        if number > MAX_EVENTS:
            raise ValueError("it has too many values")


def _reason(error: Exception) -> str:
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 2}: " if mark else ""
        return where + (error.problem or error.context or "it is not YAML")
    return " ".join(str(error).split())[:200] or "it is not YAML"


def _convert(value: Any) -> Any:
    """Return a value converted for JSON: dates as ISO 8601, values that JSON does not support as text."""
    if isinstance(value, dict):
        return {_key(key): _convert(item) for key, item in value.items()}
    if isinstance(value, set):
        return sorted(map(_key, value))
    if isinstance(value, list | tuple):
        return [_convert(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bool | None):
        return value
    if isinstance(value, int):
        return value if abs(value) <= MAX_INTEGER else str(value)
    return _key(value)


def _key(value: Any) -> str:
    if isinstance(value, date):  # or a datetime, which is a subclass
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
    text = json.encode(value).decode() if isinstance(value, bool | None) else str(value)
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()


# Keys with a meaning for memoryd --------------------------------------------------------------------------------------


def _read_word(value: Any) -> str | None:
    if isinstance(value, dict | list):
        return None
    word = _key(value).strip()
    return word if word and word.isprintable() and len(word.encode()) <= MAX_WORD_BYTES else None


def _type(value: Any, problems: list[str]) -> str:
    if value is None:
        return Front().type
    if (word := _read_word(value)) is None:
        problems.append("Front matter: `type` is not a word, so it is `note`.")
    return word or Front().type


def _read_tags(value: Any, problems: list[str]) -> list[str]:
    items = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
    items = [item.strip().removeprefix("#") if isinstance(item, str) else item for item in items]
    items = [item for item in items if item not in (None, "")]
    words = [word for item in items if (word := _read_word(item))]
    if len(words) < len(items):
        problems.append("Front matter: not all `tags` are words; the others are left out.")
    return list(dict.fromkeys(words))


def _find_time(values: dict[str, Any], names: Sequence[str]) -> float | None:
    """Return the time under the first key that has one; other values are ignored, since other tools use these keys."""
    said = {key.casefold().replace(" ", "_"): value for key, value in reversed(values.items())}
    for name in names:
        try:
            if isinstance(text := said.get(name), str):
                return seconds(text.strip().strip("[]"))
        except Invalid:
            continue
    return None


def _read_pinned(value: Any, problems: list[str]) -> bool:
    if value is None or isinstance(value, bool):
        return bool(value)
    known = _YES.get(str(value).strip().lower())
    if known is None:
        problems.append("Front matter: `pinned` is neither true nor false, so it is false.")
    return bool(known)


def _read_expires(value: Any, problems: list[str]) -> float | None:
    if value is None or value is False or (isinstance(value, str) and value.strip().lower() in _NEVER):
        return None
    text = value.isoformat() if isinstance(value, date) else value
    try:
        if isinstance(text, str):
            return seconds(text.strip())
    except Invalid:
        pass
    problems.append("Front matter: `expires` is not a date, so the file does not expire; write it like 2026-03-31.")
    return None

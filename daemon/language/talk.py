"""Recognise turns of a conversation with their speaker (`Nadia: sounds good`), and pasted logs. Pure functions."""

from collections.abc import Mapping
from typing import Any

import msgspec

from memoryd.client.patterns import compile_late
from memoryd.daemon.store.rows import Row

TYPES = frozenset({"turn", "conversation"})
ROLES = frozenset({"user", "assistant", "system", "tool", "human", "ai", "bot"})
_LABEL = compile_late(r"(?:\[[^\]\n]{1,40}\] )?[*_<]{0,2}([^\W\d_][^\n:*_<>]{0,39})[*_>]{0,2}: ")
_MOST_NAMES = 3
_LOG_LINES = 10  # a shorter log may be quoted for its content
_READ_LINES, _LINE_CHARS = 40, 200  # of a log, and of a line of it
# Most lines of a log have one of these: a time, a level, or a path outside a sentence.
_LOGGED = compile_late(
    r"\d\d:\d\d:\d\d|^\[?\d{4}-\d\d-\d\d\b|\b(?:ERROR|WARN(?:ING)?|INFO|DEBUG|TRACE|FATAL|CRITICAL)\b|\[(?:info|warn|error|debug)\]"
    r"|^[^\s:]*/[^\s:]+(?:$|[:\s])|\S/\S+:\d+"
)
# Words before a colon at the beginning of a note that are not names.
_HEADINGS = frozenset(
    """
    decision decided note correction update fact rule reminder todo warning important preference lesson deadline status
    entscheidung entschieden notiz korrektur regel
    """.split()
)


def is_talk(kind: str, metadata: Mapping[str, Any], text: str) -> bool:
    """Return whether memories of a type are turns of a conversation."""
    return kind in TYPES or "speaker" in metadata or metadata.get("role") in ROLES or bool(find_speaker(text))


def is_turn(row: Row) -> bool:
    """Return whether a memory is a turn of a conversation."""
    return is_talk(row.type, msgspec.json.decode(row.metadata), row.content)


def is_log(text: str) -> bool:
    """Return whether a text is a pasted log: many lines, most of them with a time, a level or a path."""
    if text.count("\n") < _LOG_LINES - 1:
        return False
    lines = [line for one in text.split("\n", _READ_LINES)[:_READ_LINES] if (line := one.strip())]
    logged = sum(bool(_LOGGED.search(line[:_LINE_CHARS])) for line in lines)
    return len(lines) >= _LOG_LINES and 2 * logged > len(lines)


def find_speaker(text: str) -> str:
    """Return the name or role at the beginning of a text, empty if there is none."""
    match = _LABEL.match(text)
    names = match[1].split() if match else []
    if not match or len(names) > _MOST_NAMES or names[0].casefold() in _HEADINGS:
        return ""
    # Parts of a name are `Nadia`, `O'Brien`, `李雷`, not `HX711` or `SQL`.
    may_be_name = all(
        (word.istitle() and not any(map(str.isdigit, word))) or word.lower() == word.upper() for word in names
    )
    return match[1] if may_be_name or match[1].casefold() in ROLES else ""

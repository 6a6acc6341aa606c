"""The kinds of evaluation data: one row each, with the ways to store it. A file is known by what is in it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from memoryd.client.bench import conversations, questions, team
from memoryd.client.bench.material import Material, Selection, read_lines
from memoryd.client.errors import Invalid


class Kind(NamedTuple):
    """A kind of data: whether a path holds it, its ways, and what reads it by one way."""

    holds: Callable[[Path], bool]
    ways: tuple[str, ...]
    materials: Callable[[Path, str, Selection], Iterator[Material]]


class _ConversationLine(msgspec.Struct):
    """How a conversation is recognised among other lines."""

    speakers: list[str] = []


def _has_speakers(path: Path) -> bool:
    try:
        first = next(read_lines(path, _ConversationLine, "JSON"), None)
    except Invalid:
        return False  # its own reader says what is wrong
    return first is not None and bool(first.speakers)


# The first that holds counts.
KINDS: dict[str, Kind] = {
    "team": Kind(Path.is_dir, team.WAYS, team.make_materials),
    "conversations": Kind(_has_speakers, tuple(conversations.WAYS), conversations.make_materials),
    "questions": Kind(lambda path: True, tuple(questions.WAYS), questions.make_materials),
}

# What a way does, for people.
WAYS: dict[str, str] = {
    "session": "one memory per session",
    "turn": "one memory per turn",
    "add": "each turn added",
    "neighbours": "each turn added with neighbours, date and speaker",
    "observe": "each turn observed, sessions ended, consolidated",
    "team": "memories added, sessions observed and ended, consolidated",
}


def kind_of(path: Path) -> str:
    """Return the kind of data that a path holds."""
    return next(name for name, kind in KINDS.items() if kind.holds(path))

"""The sets about what holds now: `projects`, `changes` and `hostile` in `tests/data`, each in two halves.

The README beside each set describes its fields. Times are all of one form and compared as texts.
"""

from pathlib import Path
from typing import Any, Literal

import msgspec
from sets import read_lines

DATA = Path(__file__).parents[1] / "data"
HALVES = ("seen", "unseen")


class Never(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    why: Literal["private", "superseded", "refuted"]
    by: str = ""  # a memory, or a turn: SESSION:NUMBER


class Place(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Where memories are told: a start, or beside a prompt."""

    needs: list[str] = []
    helps: list[str] = []
    never: list[Never] = []


class Turn(Place):
    role: Literal["user", "assistant"]
    content: str
    expects: Literal["direct", "inference", "nothing", "statement", ""] = ""


class Project(msgspec.Struct, forbid_unknown_fields=True, tag_field="kind", tag="project"):
    name: str
    about: str


class Saved(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, tag_field="kind", tag="memory"):
    id: str = ""
    namespace: str = ""
    type: str
    importance: float
    saved_at: str
    saved_by: Literal["person", "agent"] = "person"
    supersedes: str = ""
    content: str


class Session(msgspec.Struct, forbid_unknown_fields=True, tag_field="kind", tag="session"):
    id: str
    project: str
    started_at: str
    start: Place
    turns: list[Turn]


class Change(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A saved memory, and a later session whose turn number `statement` changes it, or only sounds as if it did."""

    id: str
    label: Literal["changes", "holds"]
    kind: str
    topic: str
    language: str
    said_in: str
    saved: Saved
    started_at: str
    turns: list[Turn]
    statement: int
    also: list[int] = []
    question: str


KINDS: dict[str, Any] = {"projects": Project | Saved | Session, "changes": Change, "hostile": dict[str, Any]}


def read_half(name: str, half: str) -> list[Any]:
    return list(read_lines(DATA / name / f"{half}.jsonl", KINDS[name], f"a row of {name}"))

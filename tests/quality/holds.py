"""The sets about what holds now: `projects`, `changes` and `hostile` in `tests/data`, each in two halves.

The README beside each set describes its fields. `find_faults` names rows by their ids and repeats no text, so that the
unseen half can be checked and stay unseen. Times are all of one form and compared as texts.
"""

from collections import Counter
from collections.abc import Iterator
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


def find_faults(half: str) -> Iterator[str]:
    rows = [row for row in read_half("projects", half) if not isinstance(row, Project)]
    changes = read_half("changes", half)
    ids = Counter([*(row.id for row in [*rows, *changes]), *(row["id"] for row in read_half("hostile", half))])
    yield from (f"{id} is there twice" for id, times in ids.items() if times > 1)
    saved = {row.id: row for row in rows if isinstance(row, Saved)}
    for session in (row for row in rows if isinstance(row, Session)):
        yield from (f"{session.id} {fault}" for fault in _check_session(session, saved))
    for row in changes:
        if not max(row.statement, *row.also, 1) < len(row.turns) <= 6 or row.saved.saved_at >= row.started_at:
            yield f"{row.id} has no such turn, or is saved too late"


def _check_session(session: Session, saved: dict[str, Saved]) -> Iterator[str]:
    in_reach = ("/", session.project)
    known = {id for id, one in saved.items() if one.namespace in in_reach and one.saved_at < session.started_at}
    replaced: dict[str, str] = {}
    prompts = [turn for turn in session.turns if turn.role == "user"]
    for place in (session.start, *session.turns):
        replaced |= {one.id: one.by for one in place.never}
        for id in {*place.needs, *place.helps}:
            if id not in known or (id in replaced and ":" not in replaced[id]):
                yield f"wants {id}, which is not there, is private, or was replaced by a saved memory"
    yield from (f"forbids {id}, which is nowhere" for id in replaced if id not in saved)
    if set(session.start.needs) != {id for turn in prompts for id in turn.needs}:
        yield "has a start whose needs are not those of its prompts"
    if any(bool(turn.needs) != (turn.expects in ("direct", "inference")) for turn in prompts):
        yield "has a prompt that needs something else than it says"

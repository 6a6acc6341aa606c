"""Decide the outcome of similar notes by rules. Notes are sorted by date; the newest is examined first.

An item is kept unless a newer note says the same or contradicts it. If two notes say the same, the one in MEMORY.md is
kept. A note of a daily file is added only if it replaces an item; whether others are worth adding only a language model
can decide. Texts are never rewritten.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memoryd.daemon.agreement.statements import Rule, find_contradiction, is_same

_BREATH_S = 0.0005  # after each note, to let other threads have the GIL

_REASONS: dict[Rule, str] = {
    "polarity": "one of the two is denied",
    "value": "a newer note gives another value",
    "quantity": "a newer note says it of more or fewer",
    "change": "a newer note says that it changed",
}

Judgement = Literal["keep", "passing", "repeats", "outdated"]


class DreamNote(NamedTuple):
    """A note. `stands`: it is an item of MEMORY.md; otherwise it is from a daily file."""

    text: str
    date: str
    stands: bool


class NoteFate(NamedTuple):
    """The outcome of a note; `by` is the note that is kept instead."""

    judgement: Judgement
    by: int | None = None
    reason: str = ""


class Likeness(NamedTuple):
    """The cosines of notes, shape (n, n), and the floors for the same subject and for saying the same."""

    cosines: NDArray[np.float32]
    subject: float
    same: float


def find_fates(notes: Sequence[DreamNote], likeness: Likeness) -> list[NoteFate]:
    """Return the outcome of each note."""
    if not any(note.stands for note in notes):
        return [NoteFate("passing")] * len(notes)
    fates = [NoteFate("keep")] * len(notes)
    newest: dict[str, int] = {}
    for number in range(len(notes) - 1, -1, -1):
        time.sleep(_BREATH_S)
        text = simplify(notes[number].text)
        if (same := newest.get(text)) is not None:
            fate = NoteFate("repeats", same)
        else:
            newest[text] = number
            near = np.flatnonzero(likeness.cosines[number, number + 1 :] >= likeness.subject)[::-1] + number + 1
            fate = _find_fate(notes, number, near.tolist(), likeness)
        fates[number] = _follow_chain(fate, fates)
    return _pass_over(notes, settle(notes, fates))


def _pass_over(notes: Sequence[DreamNote], fates: Sequence[NoteFate]) -> list[NoteFate]:
    """Mark as passing the notes that are neither items nor kept instead of an item."""
    kept = {number if fate.by is None else fate.by for number, fate in enumerate(fates) if notes[number].stands}
    return [
        fate if (number if fate.by is None else fate.by) in kept else NoteFate("passing")
        for number, fate in enumerate(fates)
    ]


def _find_fate(notes: Sequence[DreamNote], number: int, near: Sequence[int], likeness: Likeness) -> NoteFate:
    """Compare a note with similar newer ones, the newest first."""
    text = notes[number].text
    for other in near:
        is_near = likeness.cosines[number, other] >= likeness.same
        if is_near and is_same(text, notes[other].text):
            return NoteFate("repeats", other)
    for other in near:
        if rule := find_contradiction(text, notes[other].text):
            return NoteFate("outdated", other, _REASONS[rule])
    return NoteFate("keep")


def _follow_chain(fate: NoteFate, fates: Sequence[NoteFate]) -> NoteFate:
    """Follow a chain to the note that is kept; a note that repeats an outdated one is outdated as well."""
    while fate.by is not None and fates[fate.by].by is not None:
        behind = fates[fate.by]
        is_repeat = fate.judgement == behind.judgement == "repeats"
        fate = NoteFate("repeats" if is_repeat else "outdated", behind.by, behind.reason or fate.reason)
    return fate


def simplify(text: str) -> str:
    """Return a normalised text for exact comparison."""
    return " ".join(text.split()).casefold().rstrip(".")


def find_distinct(notes: Sequence[DreamNote]) -> list[int]:
    """Return the newest note of each distinct text, sorted."""
    return sorted({simplify(note.text): number for number, note in enumerate(notes)}.values())


def spread(notes: Sequence[DreamNote], found: Mapping[int, NoteFate]) -> list[NoteFate]:
    """Return the outcome of all notes, given those of the newest note of each text."""
    newest = {simplify(notes[number].text): number for number in found}
    fates = list[NoteFate]()
    for number, note in enumerate(notes):
        fate = found[newest[simplify(note.text)]]
        if number not in found and fate.judgement == "keep":
            fate = NoteFate("repeats", newest[simplify(note.text)])
        fates.append(fate)
    return settle(notes, fates)


def settle(notes: Sequence[DreamNote], fates: list[NoteFate]) -> list[NoteFate]:
    """Keep an item rather than a new note that only repeats it."""
    for number, fate in enumerate(fates):
        if fate.judgement != "repeats" or fate.by is None or not notes[number].stands or notes[fate.by].stands:
            continue
        new = fate.by
        if fates[new].judgement == "keep":
            fates = [NoteFate(f.judgement, number, f.reason) if f.by == new else f for f in fates]
            fates[number], fates[new] = NoteFate("keep"), NoteFate("repeats", number)
    return fates


def group_notes(cosines: NDArray[np.float32], floor: float) -> Iterator[list[int]]:
    """Yield the connected groups of notes by cosines of at least `floor`, in order."""
    waiting = np.ones(len(cosines), bool)
    for first in range(len(cosines)):
        if not waiting[first]:
            continue
        waiting[first] = False
        group, edge = [first], [first]
        while edge:
            near = np.flatnonzero(waiting & (cosines[edge.pop()] >= floor)).tolist()
            waiting[near] = False
            group += near
            edge += near
        yield sorted(group)

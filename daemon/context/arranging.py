"""The order of a context: groups by type; in a group the best subject first, of one subject the newest first."""

from typing import NamedTuple

from memoryd.daemon.store.tiers import L0
from memoryd.daemon.store.vectors import Vector

ALWAYS, RECENT = "Always", "Recent turns"
# Heading → the types under it; what has another type is a fact.
GROUPS: dict[str, frozenset[str]] = {
    ALWAYS: frozenset(),
    "Decisions": frozenset({"decision"}),
    "Preferences": frozenset({"preference", "goal", "behavior"}),
    "Facts": frozenset(),
    "Lessons": frozenset({"lesson", "mistake-pattern", "best-practice", "debugging"}),
    "Notes": frozenset({"note"}),
    RECENT: frozenset(),
}


class Note(NamedTuple):
    """One line of a context: a memory as it is shown."""

    id: str
    row: int  # 0 for a turn of L0
    key: bytes  # SHA-256 of its content: what a session was given
    group: str
    created_at: float
    score: float
    line: str
    below: "tuple[Note, ...]" = ()  # older ones that it disagrees with
    related: tuple[str, ...] = ()  # ids of its question and its answers, which are in the line


def group_of(kind: str, tier: str) -> str:
    """Return the heading for a memory of a type in a tier."""
    if tier == L0:
        return RECENT
    return next((heading for heading, kinds in GROUPS.items() if kind in kinds), "Facts")


def arrange(notes: list[Note], vectors: dict[int, Vector], floor: float) -> list[Note]:
    """Return the notes of one group in order; those of one subject have a cosine of at least `floor`."""
    if notes and notes[0].group in (ALWAYS, RECENT):
        return sorted(notes, key=lambda note: (note.created_at, note.id))
    best = sorted(notes, key=lambda note: (-note.score, -note.created_at, note.id))
    subjects: list[list[Note]] = []
    for note in best:
        same = next(
            (subject for subject in subjects if any(_is_alike(note, one, vectors, floor) for one in subject)), None
        )
        if same is None:
            subjects.append([note])
        else:
            same.append(note)
    return [note for subject in subjects for note in sorted(subject, key=lambda note: (-note.created_at, note.id))]


def _is_alike(one: Note, other: Note, vectors: dict[int, Vector], floor: float) -> bool:
    if one.row not in vectors or other.row not in vectors:
        return False
    return float(vectors[one.row] @ vectors[other.row]) >= floor

"""A context as text, strictly within its budget.

What fits is chosen by adding up the tokens of each line; then the whole text is counted, and as long as it is too long
the last line is left out: tokens of a whole need not be the sum of those of its lines. Standing notes have
`STANDING_SHARE` of the budget to themselves; what they leave is for the others. Notes are in groups by type; in a group
the best subject comes first, of one subject the newest first.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from memoryd.client.inert import FRAME
from memoryd.daemon.context.counting import Counter
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
STANDING_SHARE = 0.3
_BARE = ("", "")
_FRAMED_FROM = 100  # tokens; a smaller budget is for memories alone


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


class Fitted(NamedTuple):
    """A text, how many tokens it has, the notes in it in order, and how long the part is that stays the same."""

    text: str
    tokens: int
    notes: list[Note]
    stable_chars: int


class Layout(NamedTuple):
    """What arranging needs to know: the vectors of rows, and from which cosine they are of one subject."""

    vectors: dict[int, Vector]
    subject: float
    compact: bool


def fit(standing: Sequence[Note], relevant: Sequence[Note], max_tokens: int, layout: Layout, by: Counter) -> Fitted:
    """Return the text of the notes that fit, of both kinds the first ones first."""
    frame = _BARE if layout.compact or max_tokens < _FRAMED_FROM else FRAME
    chosen = _select_affordable(standing, int(max_tokens * STANDING_SHARE), by, set())
    spent = by.count(frame[0]) + by.count(frame[1]) + sum(_cost(note, by) for note in chosen)
    headings = {note.group for note in chosen}
    spent += sum(_count_heading(heading, by) for heading in headings)
    chosen += _select_affordable(relevant, max_tokens - spent, by, headings)
    while chosen:
        text, stable = _text(chosen, frame, layout)
        tokens = by.count(text)
        if tokens <= max_tokens:
            return Fitted(text, tokens, _order(chosen, layout), stable)
        chosen.pop()
    return Fitted("", 0, [], 0)


def _select_affordable(notes: Iterable[Note], budget: int, by: Counter, headings: set[str]) -> list[Note]:
    """Return the notes that a budget pays for, with the headings that are new."""
    known, chosen = set(headings), []
    for note in notes:
        if _least_cost(note) > budget:  # counting tokens takes longer than counting words
            continue
        cost = _cost(note, by) + (0 if note.group in known else _count_heading(note.group, by))
        if cost <= budget:
            budget -= cost
            known.add(note.group)
            chosen.append(note)
    return chosen


def _cost(note: Note, by: Counter) -> int:
    return sum(by.count(line) for line in _lines(note))


def _least_cost(note: Note) -> int:
    """Return how many tokens a note has at least: one for each word."""
    return sum(len(line.split()) for line in _lines(note))


def _count_heading(heading: str, by: Counter) -> int:
    return by.count(_write_heading(heading))


def _text(notes: Sequence[Note], frame: tuple[str, str], layout: Layout) -> tuple[str, int]:
    """Return the text of some notes, and how many characters of it the standing ones take."""
    opening, closing = frame
    text, stable = opening, len(opening)
    for heading, part in _group(notes, layout).items():
        text += _write_heading(heading) + "".join(line for note in part for line in _lines(note))
        if heading == ALWAYS:
            stable = len(text)
    return text + closing, stable


def _order(notes: Sequence[Note], layout: Layout) -> list[Note]:
    return [one for part in _group(notes, layout).values() for note in part for one in (note, *note.below)]


def _group(notes: Sequence[Note], layout: Layout) -> dict[str, list[Note]]:
    found = {heading: [note for note in notes if note.group == heading] for heading in GROUPS}
    return {heading: arrange(part, layout.vectors, layout.subject) for heading, part in found.items() if part}


def _write_heading(heading: str) -> str:
    return f"{heading}:\n"


def _lines(note: Note) -> list[str]:
    return [f"- {note.line}\n", *(f"  - disagrees with {older.line}\n" for older in note.below)]


# The order ------------------------------------------------------------------------------------------------------------


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
        for subject in subjects:
            if any(_is_alike(note, one, vectors, floor) for one in subject):
                subject.append(note)
                break
        else:
            subjects.append([note])
    return [note for subject in subjects for note in sorted(subject, key=lambda note: (-note.created_at, note.id))]


def _is_alike(one: Note, other: Note, vectors: dict[int, Vector], floor: float) -> bool:
    if one.row not in vectors or other.row not in vectors:
        return False
    return float(vectors[one.row] @ vectors[other.row]) >= floor

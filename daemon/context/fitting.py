"""Lay out a context as text, strictly within its budget of tokens.

Notes are selected by the sum of their tokens; then the whole text is counted, and while it is too long the last note is
dropped, since a text may have more tokens than the sum of its lines. Standing notes get up to `STANDING_SHARE` of the
budget, the others the rest.

Notes are grouped by type, the group with the best note first. In a group the best subject comes first, and within a
subject the newest note. Turns of conversations are in chronological order within a day, the day with the best note
first. A date is written once above the lines of a day, and its month and year only if they differ from the date before.
Each line names its speaker, abbreviated after the first time if that saves tokens; lines without a speaker begin with a
dash. A single group has no heading, unless it is the standing one.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from memoryd.client.prompt_text import FRAME
from memoryd.daemon.context.counting import Counter
from memoryd.daemon.store import turns
from memoryd.daemon.store.tiers import L0
from memoryd.daemon.store.vectors import Vector

ALWAYS, SAID = "Always", "Said in conversations"
# Heading → the types under it; what has another type is a fact.
GROUPS: dict[str, frozenset[str]] = {
    ALWAYS: frozenset(),
    "Decisions": frozenset({"decision"}),
    "Preferences": frozenset({"preference", "goal", "behavior"}),
    "Facts": frozenset(),
    "Lessons": frozenset({"lesson", "mistake-pattern", "best-practice", "debugging"}),
    "Notes": frozenset({"note"}),
    SAID: frozenset({turns.TYPE}),
}
STANDING_SHARE = 0.3
_WHOLE_SHARE = 0.4  # the notes in this first part of the budget get their spare lines at once
DISAGREES = "disagrees with what was known on"
_BARE = ("", "")
_FRAMED_FROM = 100  # tokens; with a smaller budget the frame is left out


class Quote(NamedTuple):
    """The text of a turn with its speaker, or of another memory (no speaker), with the memory's id.

    A `spare` line of a note may be left out: it is shown with the best notes, with the others if there is room left.
    """

    speaker: str
    text: str
    id: str = ""
    spare: bool = False


class ContextNote(NamedTuple):
    """A memory in a context, with the question or answers that belong to it."""

    id: str
    row: int  # 0 for a turn of L0
    key: bytes  # SHA-256 of its content
    group: str
    created_at: float
    score: float
    day: str
    lines: tuple[Quote, ...]
    below: "tuple[ContextNote, ...]" = ()  # older notes that it contradicts

    @property
    def related(self) -> list[str]:
        """The ids of the question and the answers in its lines."""
        return [line.id for line in self.lines if line.id != self.id]


class FittedNotes(NamedTuple):
    """A text, its tokens, the notes in it in order, and the length of its stable beginning."""

    text: str
    tokens: int
    notes: list[ContextNote]
    stable_chars: int


class Layout(NamedTuple):
    """Parameters of the layout: vectors by row, and the lowest cosine of notes on one subject."""

    vectors: dict[int, Vector]
    subject: float


def fit(
    standing: Sequence[ContextNote], relevant: Sequence[ContextNote], max_tokens: int, layout: Layout, by: Counter
) -> FittedNotes:
    """Return the text of the notes that fit, both kinds tried in order."""
    frame = _BARE if max_tokens < _FRAMED_FROM else FRAME
    chosen = _select_affordable(standing, int(max_tokens * STANDING_SHARE), by)
    spent = by.count(frame[0]) + by.count(frame[1]) + by.count(_write(chosen, {}))
    spent += sum(by.count(f"{heading}:\n") for heading in {note.group for note in chosen})
    chosen += _select_affordable(relevant, max_tokens - spent, by, chosen)
    while chosen:
        fitted = _lay_out(chosen, frame, layout, by)
        if fitted.tokens <= max_tokens:
            for add in (_add_notes, _add_spare):
                more = add(chosen, relevant, max_tokens - fitted.tokens, by)
                fuller = fitted if more == chosen else _lay_out(more, frame, layout, by)
                if fuller.tokens <= max_tokens:
                    chosen, fitted = more, fuller
            return fitted
        chosen.pop()
    return FittedNotes("", 0, [], 0)


def _add_notes(
    chosen: Sequence[ContextNote], relevant: Iterable[ContextNote], budget: int, by: Counter
) -> list[ContextNote]:
    """Add notes that fit into the budget that is left, since a text may have fewer tokens than the sum of its lines."""
    ids = {note.id for note in chosen}
    left = [note for note in relevant if note.id not in ids]
    return [*chosen, *_select_affordable(left, budget, by, chosen)]


def _add_spare(
    chosen: Sequence[ContextNote], relevant: Iterable[ContextNote], budget: int, by: Counter
) -> list[ContextNote]:
    """Add the spare lines of chosen notes that fit into a budget, the best notes first."""
    fuller = {note.id: note for note in chosen}
    for note in relevant:
        if note.id in fuller and len(note.lines) > len(fuller[note.id].lines):
            cost = by.count(_write([note], {})) - by.count(_write([fuller[note.id]], {}))
            if cost <= budget:
                budget -= cost
                fuller[note.id] = note
    return list(fuller.values())


def _select_affordable(
    notes: Iterable[ContextNote], budget: int, by: Counter, beside: Sequence[ContextNote] = ()
) -> list[ContextNote]:
    """Return the notes that fit into a budget `beside` others, including the headings and dates that they add."""
    all_headings = {note.group for note in beside}
    dates = {(note.group, part) for note in beside for part in (note.day, _year(note.day))}
    chosen: list[ContextNote] = []
    least_for_whole = budget * (1 - _WHOLE_SHARE)
    for note in notes:
        bare = note._replace(lines=tuple(line for line in note.lines if not line.spare))
        for form in (note, bare) if bare != note and budget >= least_for_whole else (bare,):
            words = sum(len(line.text.split()) for one in (form, *form.below) for line in one.lines)
            if words > budget:  # a lower bound for the tokens, which take longer to count
                continue
            year = (form.group, _year(form.day))
            cost = by.count(_write([form], {}))
            if (form.group, form.day) in dates:
                cost -= by.count(f"{form.day}\n")
            elif year in dates:
                cost -= by.count(year[1])
            if all_headings and form.group not in all_headings:
                # Its own heading, and that of the group that was alone so far.
                new = [form.group, *(all_headings - {ALWAYS} if len(all_headings) == 1 else ())]
                cost += sum(by.count(f"{heading}:\n") for heading in new)
            if cost <= budget:
                budget -= cost
                all_headings.add(form.group)
                dates |= {(form.group, form.day), year}
                chosen.append(form)
                break
    return chosen


def _lay_out(notes: Sequence[ContextNote], frame: tuple[str, str], layout: Layout, by: Counter) -> FittedNotes:
    """Write notes as text: the standing ones first, then the group with the best note."""
    opening, closing = frame
    text, stable = opening, len(opening)
    grouped: dict[str, list[ContextNote]] = {}
    for note in sorted(notes, key=lambda note: (note.group != ALWAYS, -note.score)):
        grouped.setdefault(note.group, []).append(note)
    groups = {heading: arrange(part, layout.vectors, layout.subject) for heading, part in grouped.items()}
    short = _shorten_names(notes, by)
    for heading, part in groups.items():
        text += (f"{heading}:\n" if heading == ALWAYS or len(groups) > 1 else "") + _write(part, short)
        if heading == ALWAYS:
            stable = len(text)
    text += closing
    notes_below = [one for part in groups.values() for note in part for one in (note, *note.below)]
    return FittedNotes(text, by.count(text), notes_below, stable)


def _write(notes: Iterable[ContextNote], short: Mapping[str, str]) -> str:
    """Write the lines of a group; a speaker who was named before is abbreviated by `short`."""
    lines: list[str] = []
    named, years = set[str](), dict[str, str]()
    day = ""
    for note in notes:
        if note.day != day:
            lines.append(_write_day(note.day, day, years))
            day = note.day
        for line in note.lines:
            speaker = line.speaker
            lines.append(_write_line(line, short.get(speaker, speaker) if speaker in named else speaker))
            named.add(speaker)
        for older in note.below:
            texts = " ".join(_write_line(line, line.speaker).removeprefix("- ") for line in older.lines)
            lines.append(f"  - {DISAGREES} {older.day}: {texts}")
    return "".join(f"{line}\n" for line in lines)


def _write_line(line: Quote, speaker: str) -> str:
    return f"{speaker}: {line.text}" if speaker else f"- {line.text}"


def _write_day(day: str, before: str, years: dict[str, str]) -> str:
    """Write a date, without a month and year that are those of the date before, or a year that is known of its month.

    `years` has the latest year of each month; for other months the year of the date before counts as known.
    """
    number, month, year = day.split(" ")
    known = years.get(month, _year(before))
    years[month] = year
    if before.partition(" ")[2] == f"{month} {year}":
        suffix = "th" if 10 < int(number) < 20 else {"1": "st", "2": "nd", "3": "rd"}.get(number[-1], "th")
        return f"{number}{suffix}"
    return f"{number} {month}" if known == year else day


def _year(day: str) -> str:
    return day.rpartition(" ")[2]


def _shorten_names(notes: Iterable[ContextNote], by: Counter) -> dict[str, str]:
    """Return abbreviations that are unique among the speakers, for those names where they save tokens."""
    names = sorted({line.speaker for note in notes for line in note.lines if line.speaker})
    for length in range(1, max(map(len, names), default=0)):
        short = {name: name[:length].rstrip() for name in names}
        if len({*short.values(), *names}) == 2 * len(names):
            return {name: begin for name, begin in short.items() if by.count(begin) < by.count(name)}
    return {}


# The order ------------------------------------------------------------------------------------------------------------


def group_of(kind: str, tier: str) -> str:
    """Return the heading for a memory by its type and tier."""
    if tier == L0:
        return SAID
    return next((heading for heading, kinds in GROUPS.items() if kind in kinds), "Facts")


def arrange(notes: list[ContextNote], vectors: dict[int, Vector], floor: float) -> list[ContextNote]:
    """Return the notes of one group in order; notes on one subject have a cosine of at least `floor`."""

    def are_on_one_subject(one: ContextNote, other: ContextNote) -> bool:
        is_known = one.row in vectors and other.row in vectors
        return is_known and float(vectors[one.row] @ vectors[other.row]) >= floor

    if notes and notes[0].group == ALWAYS:
        return sorted(notes, key=lambda note: (note.created_at, note.row, note.id))
    best = sorted(notes, key=lambda note: (-note.score, -note.created_at, note.row, note.id))
    if notes and notes[0].group == SAID:
        days: dict[str, list[ContextNote]] = {}
        for note in best:
            days.setdefault(note.day, []).append(note)
        return [
            note for day in days.values() for note in sorted(day, key=lambda note: (note.created_at, note.row, note.id))
        ]
    subjects: list[list[ContextNote]] = []
    for note in best:
        for subject in subjects:
            if any(are_on_one_subject(note, one) for one in subject):
                subject.append(note)
                break
        else:
            subjects.append([note])
    return [
        note for subject in subjects for note in sorted(subject, key=lambda note: (-note.created_at, note.row, note.id))
    ]

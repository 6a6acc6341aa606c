"""Ask a language model for the outcome of notes: which to keep, never how to reword them."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from memoryd.daemon.dreams.fates import DreamNote, Judgement, NoteFate
from memoryd.daemon.llm.chat import Chat
from memoryd.daemon.llm.llm import DATA, cut

_DREAM = (
    "You put the notes of an assistant in order. The numbered notes are about like things, the oldest first; those "
    "that `stand` are in its memory already. Say for each what becomes of it: `keep` what holds and lasts, `repeats` "
    "with `by` the number of a kept note that says the same or more, `outdated` with `by` the number of a newer kept "
    "note that makes it untrue, `passing` what matters for its day only (never for one that stands). In doubt keep. "
    f"{DATA}"
)


class JudgedNote(Struct):
    """The outcome of one note: keep, repeats, outdated, passing; `by` is the note that is kept for it."""

    number: int
    fate: Judgement
    by: int | None = None


class JudgedNotes(Struct):
    """The outcome of each note."""

    notes: list[JudgedNote]


def ask_model(chat: Chat, notes: Sequence[DreamNote]) -> list[NoteFate]:
    """Ask for the outcome of notes, oldest first; raise `ChatFailed` if the answer is unusable."""
    listed = [
        {"number": number, "date": note.date or "undated", "stands": note.stands, "text": cut(note.text)}
        for number, note in enumerate(notes, 1)
    ]
    by_number = {judged.number - 1: judged for judged in chat.ask(_DREAM, {"notes": listed}, JudgedNotes).notes}
    if by_number.keys() != set(range(len(notes))):
        raise chat.reject(f"The model judged other notes than the {len(notes)} it was given.")
    for number, judged in by_number.items():
        if problem := _find_fault(number, judged, notes, by_number):
            raise chat.reject(f"The model's judgement of a note cannot be used: {problem}.")
    judgements = [by_number[number] for number in range(len(notes))]
    return [NoteFate(one.fate, None if one.by is None else one.by - 1) for one in judgements]


def _find_fault(
    number: int, judged: JudgedNote, notes: Sequence[DreamNote], by_number: Mapping[int, JudgedNote]
) -> str:
    if judged.fate in ("keep", "passing"):
        if judged.by is not None:
            return "a note that stands for itself has another that stands for it"
        return "a note that stands already is not of a day" if judged.fate == "passing" and notes[number].stands else ""
    by = -1 if judged.by is None else judged.by - 1
    if by == number or by not in by_number or by_number[by].fate != "keep":
        return "what is kept for it is not kept"
    return "what outdates it is older" if judged.fate == "outdated" and by < number else ""

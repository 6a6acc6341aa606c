"""Draft the new MEMORY.md of a workspace from its items and the notes in daily files (`memory/YYYY-MM-DD.md`).

Notes that no dream has processed are compared with the items of MEMORY.md (`fates`); `memory_file` writes the draft.
Daily files are only read; those in sub-folders of `memory/`, which belong to other namespaces, are ignored. Processed
notes are recorded by hash. An item of MEMORY.md without a date counts as older than all notes in the first dream; later
its date is that of the dream that first saw it.
"""

import hashlib
import logging
import re
import time
from collections.abc import Callable, Container, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from memoryd.client.errors import Invalid, ModelUnavailable, NotFound
from memoryd.client.protocol.dreams import DreamStep
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.limits import content_hash
from memoryd.daemon.dreams.fates import (
    DreamNote,
    Likeness,
    NoteFate,
    find_distinct,
    find_fates,
    group_notes,
    simplify,
    spread,
)
from memoryd.daemon.dreams.items import MAX_CHARS, ItemEdit, ListItem, change_items, list_items, strip_time
from memoryd.daemon.dreams.reviewing import ask_model
from memoryd.daemon.dreams.tables import dreams
from memoryd.daemon.language.condensing import list_telling
from memoryd.daemon.llm.provider import RULES, Provider, ask
from memoryd.daemon.workspaces.documents.lines import REPLACEMENT
from memoryd.daemon.workspaces.editing import decode
from memoryd.daemon.workspaces.replacing import read_file
from memoryd.daemon.workspaces.tables import workspaces
from memoryd.daemon.workspaces.tables.workspaces import StoredWorkspace

MEMORY = "MEMORY.md"
HEADING = "## Learned"  # new notes are added below it if MEMORY.md has no item on the subject
DAILY = re.compile(r"memory/(\d{4}-\d\d-\d\d)\.md")
MAX_FILES = 90  # the latest daily files
MAX_NOTES = 3000  # of daily files, the latest
MAX_BYTES = 1024 * 1024  # of a file, since the parser is slow
_EMBEDDED = 8  # texts per batch
_ASKED = 40  # notes in one request to a model; rules decide larger groups
_MODEL_S = 300.0  # total time for requests to a model in one dream; then rules decide
_KEY_BYTES = 12
_NEVER = "9999-99-99"

log = logging.getLogger(__name__)


class DreamTerms(NamedTuple):
    """Options: whether to include processed notes, the date limit of daily files, and a callback that may raise."""

    force: bool = False
    before: str = _NEVER
    report: Callable[[str, int, int], None] = lambda stage, done, total: None


class DreamInput(NamedTuple):
    """The input of a dream: MEMORY.md (None if missing) and the daily files (path, date, bytes), oldest first."""

    memory: bytes | None
    dailies: list[tuple[str, str, bytes]]

    def digest(self, memory: bytes | None) -> bytes:
        """Return a hash of the input with `memory` as MEMORY.md."""
        parts = [(MEMORY, memory or b""), *((path, data) for path, _, data in self.dailies)]
        listed = b"".join(path.encode() + b"\0" + hashlib.sha256(data).digest() for path, data in parts)
        return hashlib.sha256(listed).digest()


class NoteSource(NamedTuple):
    """A note from a daily file, or an item of MEMORY.md."""

    note: DreamNote
    path: str
    item: ListItem | None


class DreamDraft(NamedTuple):
    """The new MEMORY.md, the steps that lead to it, and the processed notes."""

    new: bytes
    steps: list[DreamStep]
    passing: int
    by: str
    seen: dict[bytes, str]


def list_daily_files(core: Core, workspace: StoredWorkspace, before: str = _NEVER) -> list[tuple[str, str]]:
    """Return the paths and dates of the indexed daily files, oldest first."""
    with core.store.reading() as connection:
        known = workspaces.stats(connection, workspace.id)
    found = [(path, day[1]) for path in known if (day := DAILY.fullmatch(path)) and day[1] < before]
    return sorted(found, key=lambda entry: entry[1])[-MAX_FILES:]


def read(core: Core, workspace: StoredWorkspace, before: str = _NEVER) -> DreamInput:
    """Read the input of a dream."""
    dailies = []
    for path, day in list_daily_files(core, workspace, before):
        if (data := _read(workspace, path)) is not None and len(data) <= MAX_BYTES:
            dailies.append((path, day, data))
    memory = _read(workspace, MEMORY)
    if memory is not None and len(memory) > MAX_BYTES:
        raise Invalid(f"{workspace.root}/{MEMORY} has {len(memory)} bytes; one of more than {MAX_BYTES} is left alone.")
    return DreamInput(memory, dailies)


def _read(workspace: StoredWorkspace, path: str) -> bytes | None:
    try:
        return read_file(workspace.root, path)
    except NotFound:
        return None


def is_dreamt(core: Core, workspace: StoredWorkspace, reading: DreamInput) -> bool:
    """Return whether a former dream had this input or output."""
    with core.store.reading() as connection:
        return dreams.is_known(connection, workspace.id, reading.digest(reading.memory))


def day_of(core: Core, now: float) -> datetime:
    """Return a time in the zone that names of daily files use."""
    return datetime.fromtimestamp(now) if core.config.workspaces.local_dates else datetime.fromtimestamp(now, UTC)


# Drafting ------------------------------------------------------------------------------------------------------------


def make_draft(core: Core, workspace: StoredWorkspace, reading: DreamInput, terms: DreamTerms) -> DreamDraft:
    """Return the draft of MEMORY.md; raise `ModelUnavailable` if vectors are needed and there is no model."""
    text = decode(reading.memory or b"", MEMORY)
    with core.store.reading() as connection:
        seen = dreams.read_seen(connection, workspace.id)
    today = f"{day_of(core, core.clock()):%Y-%m-%d}"
    daily = _read_daily(core, reading, () if terms.force else seen or ())
    found = _list_sources(text, daily, seen or {}, today)
    marked = {_key(source.note.text): source.note.date for source in found}
    is_new = any(source.item is None for source in found) or not (seen or {}).keys() >= marked.keys()
    if not is_new and not terms.force:
        return DreamDraft(reading.memory or b"", [], 0, "rules", {})
    fates, likeness, by = judge(core, [source.note for source in found], terms)
    # Items that cannot be removed are kept, whatever their fate.
    pairs = zip(found, fates, strict=True)
    fates = [NoteFate("keep") if source.item and not source.item.is_free else fate for source, fate in pairs]
    new = _write(text, found, fates, likeness)
    passing = sum(fate.judgement == "passing" for fate in fates)
    return DreamDraft(new.encode("utf-8", "surrogateescape"), _build_steps(found, fates), passing, by, marked)


def _list_sources(text: str, daily: Sequence[NoteSource], seen: dict[bytes, str], today: str) -> list[NoteSource]:
    undated = today if seen else ""  # items added since the last dream count as new
    own = [
        NoteSource(DreamNote(item.text, item.date or seen.get(_key(item.text), undated), True), MEMORY, item)
        for item in list_items(text)
    ]
    # The sort is stable, so items of MEMORY.md come before notes of the same day.
    return sorted([*own, *daily], key=lambda source: source.note.date)


def _read_daily(core: Core, reading: DreamInput, skip: Container[bytes]) -> list[NoteSource]:
    sources = list[NoteSource]()
    for path, day, data in reading.dailies:
        began = time.perf_counter()
        notes = [note for note in _split_notes(data.decode("utf-8", "replace")) if _key(note) not in skip]
        sources += [NoteSource(DreamNote(note, day, False), path, None) for note in notes]
        core.rest(time.perf_counter() - began)
    return sources[-MAX_NOTES:]


def _split_notes(text: str) -> list[str]:
    """Return the notes of a daily file: its list items, and important sentences of longer texts."""
    found = list[str]()
    for item in list_items(text):
        note = strip_time(item.text)
        found += [note] if item.marker and len(note) <= MAX_CHARS else list_telling(note)
    # Notes with undecodable bytes are skipped, since they could not be written back correctly.
    return [note for note in found if len(note) <= MAX_CHARS and REPLACEMENT not in note]


def _key(text: str) -> bytes:
    return content_hash(text)[:_KEY_BYTES]


def judge(core: Core, notes: Sequence[DreamNote], terms: DreamTerms) -> tuple[list[NoteFate], Likeness, str]:
    """Return the outcome of notes, which are sorted by date; similar notes are judged together, each text once."""
    chosen = find_distinct(notes)
    standing = {simplify(note.text) for note in notes if note.stands}
    asked = [note._replace(stands=simplify(note.text) in standing) for note in notes]
    likeness = measure_likeness(core, [notes[number].text for number in chosen], terms)
    fates, by, done = {number: NoteFate("keep") for number in chosen}, set[str](), 0
    give_up_at = time.monotonic() + _MODEL_S
    for group in _group_questions(core, asked, chosen, likeness):
        terms.report("compare", done, len(chosen))
        done += len(group)
        provider = core.cognition.provider if time.monotonic() < give_up_at else RULES
        numbers = [chosen[at] for at in group]
        part = likeness._replace(cosines=likeness.cosines[np.ix_(group, group)])
        name, made = _ask(provider, [asked[number] for number in numbers], part)
        by.add(name)
        for number, fate in zip(numbers, made, strict=True):
            fates[number] = fate if fate.by is None else fate._replace(by=numbers[fate.by])
    place = {simplify(notes[number].text): at for at, number in enumerate(chosen)}
    whole = [place[simplify(note.text)] for note in notes]
    everywhere = likeness._replace(cosines=likeness.cosines[np.ix_(whole, whole)])
    return spread(notes, fates), everywhere, " and ".join(sorted(by)) or RULES.name


def _group_questions(
    core: Core, notes: Sequence[DreamNote], chosen: Sequence[int], likeness: Likeness
) -> Iterator[list[int]]:
    """Yield groups of notes to judge together, as indexes in `chosen`; small groups share a request to a model."""
    together = list[int]()
    for group in group_notes(likeness.cosines, likeness.subject):
        if len(group) == 1 and notes[chosen[group[0]]].stands:
            continue  # an item without similar notes is kept
        if core.cognition.provider is RULES or len(group) > _ASKED:
            yield group
            continue
        if len(together) + len(group) > _ASKED:
            yield sorted(together)
            together = []
        together += group
    if together:
        yield sorted(together)


def _ask(provider: Provider, notes: Sequence[DreamNote], likeness: Likeness) -> tuple[str, list[NoteFate]]:
    """Return the name of the judge and the outcomes: a provider, or rules if it fails or there are too many notes."""
    chosen = provider if len(notes) <= _ASKED else RULES
    return ask(
        log, chosen, "dream", lambda by: find_fates(notes, likeness) if by.chat is None else ask_model(by.chat, notes)
    )


def measure_likeness(core: Core, texts: Sequence[str], terms: DreamTerms) -> Likeness:
    """Return the similarities of texts; raise `ModelUnavailable` without a model."""
    generation = core.embedding.active
    if generation is None:
        raise ModelUnavailable("Dreaming compares notes by meaning, and no model is loaded (yet).")
    made = np.zeros((len(texts), generation.embedder.dimensions), np.float32)
    for start in range(0, len(texts), _EMBEDDED):
        terms.report("embed", start, len(texts))
        began = time.perf_counter()
        part = core.embedding.embed_texts(texts[start : start + _EMBEDDED])
        for row, given in enumerate(part, start):
            if given is not None and given[0] is generation:
                made[row] = given[1]  # a text without a vector is similar to no other
        core.rest(time.perf_counter() - began)
    floors = generation.embedder.floors
    return Likeness(made @ made.T, floors.join, floors.duplicate)


# The new text --------------------------------------------------------------------------------------------------------


def _write(text: str, sources: Sequence[NoteSource], fates: Sequence[NoteFate], likeness: Likeness) -> str:
    gone = [s.item for s, fate in zip(sources, fates, strict=True) if s.item and fate.judgement != "keep"]
    standing = [at for at, source in enumerate(sources) if source.item is not None]
    added = []
    for number, (source, fate) in enumerate(zip(sources, fates, strict=True)):
        if source.item is None and fate.judgement == "keep":
            beside = _find_place(number, standing, sources, fates, likeness)
            place = None if beside is None else (beside.start if beside in gone else beside.end - 1)
            line = f"{source.note.text} ({source.note.date})"
            added.append((place, "" if beside is None else beside.marker, line))
    return change_items(text, ItemEdit(gone, added), HEADING) if gone or added else text


def _find_place(
    number: int, standing: Sequence[int], sources: Sequence[NoteSource], fates: Sequence[NoteFate], likeness: Likeness
) -> ListItem | None:
    """Return the item next to which a note is inserted: the first that it replaces, else the nearest."""
    replaced = next((at for at in standing if fates[at].by == number), None)
    if replaced is not None:
        return sources[replaced].item
    near = [
        (float(likeness.cosines[number, at]), -at)
        for at in standing
        if likeness.cosines[number, at] >= likeness.subject and (item := sources[at].item) and item.is_free
    ]
    return sources[-max(near)[1]].item if near else None


def _build_steps(sources: Sequence[NoteSource], fates: Sequence[NoteFate]) -> list[DreamStep]:
    steps = []
    for source, fate in zip(sources, fates, strict=True):
        kept = "" if fate.by is None else sources[fate.by].note.text
        fields = {"text": source.note.text, "source": source.path, "date": source.note.date, "kept": kept}
        if fate.judgement == "keep" and source.item is None:
            steps.append(DreamStep(action="take", **fields))
        elif fate.judgement == "repeats":
            steps.append(DreamStep(action="repeat", reason=fate.reason or "it says the same", **fields))
        elif fate.judgement == "outdated":
            steps.append(DreamStep(action="outdated", reason=fate.reason, **fields))
    return steps

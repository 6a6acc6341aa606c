"""The call `context`: select memories, build their lines, and fit them into the budget."""

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple

from memoryd.client.errors import Invalid
from memoryd.client.prompt_text import describe_origin, make_inert, say_later
from memoryd.client.protocol import ContextText, GetContext, LaterStatement
from memoryd.daemon.context import choosing, given
from memoryd.daemon.context.counting import Counter, build_counter
from memoryd.daemon.context.fitting import ALWAYS, ContextNote, FittedNotes, Layout, Quote, fit, group_of
from memoryd.daemon.context.unasked_lines import choose_sentences
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.limits import check_text
from memoryd.daemon.language import condensing
from memoryd.daemon.language.questions import only_asks
from memoryd.daemon.language.sentences import split_sentences
from memoryd.daemon.registry import handles
from memoryd.daemon.search.effects import Mark
from memoryd.daemon.search.related import list_shown_ids
from memoryd.daemon.search.retrieval import Retrieval, Sources
from memoryd.daemon.store import later, rows, turns
from memoryd.daemon.store.filters import select_living
from memoryd.daemon.store.namespaces import condition
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.vectors import Vector

_SHARE, _STANDING_SHARE = 3, 4  # one memory takes at most 1 / _SHARE of the budget, a standing one 1 / _STANDING_SHARE
_MIN_TOKENS = 24  # a memory may have so many with any budget
_MIN_ALONE, _MAX_ALONE = 40, 300  # characters of a turn that is understood without its question or answers
_CHARS_PER_TOKEN = 16  # tokens are hardly ever longer
_READ_CHARS = 16_000  # of a memory
_SHORTER = 0.7
_LEADING_SIGNS = re.compile(r"^[\W_]+")
_CLAUSE_END = re.compile(r"[,;:](?=\s)|[，、；：]|\s[–—-](?=\s)|\n")
_NEVER = 2.0  # an impossible cosine


@handles(GetContext)
def context(core: Core, sources: Sources, call: GetContext) -> "Future[ContextText]":
    """Return the context for a task, after recording on disk what the session is given."""
    began = time.perf_counter()
    if not call.task.strip():
        raise Invalid("The task is empty; describe what the context is for.")
    check_text("session", call.session)
    had = {} if call.fresh else given.read(core, call)
    notes = choosing.find(sources, call)
    always = choosing.find_standing(core, call)
    present = _read_present(core, notes, "" if call.fresh else call.session)
    by, has_names = build_counter(core), choosing.are_named(present.values())
    # Standing lines are built without the task, so that contexts for all tasks begin with the same characters.
    retrieval = notes.retrieval
    with core.store.reading() as connection:
        ids, reached = [row.id for row in (*always, *present.values())], condition(retrieval.chosen.reached)
        statements = later.read(connection, ids, reached, retrieval.passed)
    writer = _NoteBuilder(by, max(_MIN_TOKENS, call.max_tokens // _STANDING_SHARE), has_names, "", statements)
    standing = [note for row in always if (note := writer.note(row, ALWAYS)).lines]
    writer = _NoteBuilder(by, max(_MIN_TOKENS, call.max_tokens // _SHARE), has_names, call.task, statements)
    relevant = _select_relevant(notes, present, {row.id for row in always}, writer)
    new = [[note for note in part if had.get(note.id) != note.key] for part in (standing, relevant)]
    fitted = fit(new[0], new[1], call.max_tokens, _build_layout(core, retrieval, relevant), by)
    if call.touch:
        core.effects.note(_mark(call, notes, fitted))
    fitted_ids = {note.id for note in fitted.notes}
    omitted_ids = [note.id for part in new for note in part if note.id not in fitted_ids]
    result = ContextText(
        text=fitted.text,
        tokens=fitted.tokens,
        tokenizer=by.name,
        ids=[id for note in fitted.notes for id in (note.id, *note.related)],
        stable_chars=fitted.stable_chars,
        omitted=len(omitted_ids),
        omitted_ids=omitted_ids,
        repeated=len(standing) + len(relevant) - sum(map(len, new)),
        degraded=retrieval.degraded,
        trace=notes.trace.id,
        took_ms=(time.perf_counter() - began) * 1000,
    )
    notes.trace.given = result.ids
    _explain_omissions(call, retrieval, present, {row.row: row.id for row in always}, result)
    return given.keep(core, call, [(note.id, note.key) for note in fitted.notes], result)


class _NoteBuilder:
    """Builds the lines of memories, each at most `size` tokens long, reduced to the sentences nearest to the task."""

    def __init__(
        self, by: Counter, size: int, has_names: bool, task: str, statements: Mapping[str, LaterStatement]
    ) -> None:
        self._by, self._size, self._named, self._task = by, size, has_names, task
        self._later = statements  # later statements by the id of the memory that they seem to change

    def note(
        self,
        row: Row,
        group: str,
        score: float = 0.0,
        below: Iterable[ContextNote] = (),
        beside: Iterable[Row] = (),
    ) -> ContextNote:
        """Return a memory as a note, with the question or answers `beside` it.

        These are spare lines if the memory is a turn that can be understood alone.
        """
        date = datetime.fromtimestamp(row.created_at, UTC)
        spoken = sorted((row, *beside), key=turns.sort_key)
        stands_alone = _MIN_ALONE <= len(row.content) <= _MAX_ALONE and not only_asks(row.content)
        lines = (self._say(one, one is row, one is not row and stands_alone) for one in spoken)
        return ContextNote(
            id=row.id,
            row=max(0, row.row),
            key=row.content_hash,
            group=group,
            created_at=row.created_at,
            score=score,
            day=f"{date.day} {date:%B %Y}",
            lines=tuple(line for line in lines if line.text),
            below=tuple(below),
        )

    def _say(self, row: Row, is_hit: bool, spare: bool) -> Quote:
        speaker, statement = choosing.read_said(row, self._named)
        text = self._text(row, speaker, statement)
        if is_hit and not text:  # a single sentence that is too long
            text = self._fit(lambda chars: _cut(statement[:_READ_CHARS], chars, self._task))
        if row.path is not None:
            text += f" ({describe_origin(row)})"
        if text and row.id in self._later:
            text += f" ({say_later(self._later[row.id])})"
        # It begins a line, where leading punctuation could start a Markdown heading or list.
        speaker = _LEADING_SIGNS.sub("", make_inert(speaker))
        return Quote(speaker, text, row.id, spare)

    def _text(self, row: Row, speaker: str, statement: str) -> str:
        """Return the text of a memory or, if too long, its summary or the sentences nearest to the task."""
        text = make_inert(statement[:_READ_CHARS])
        if self._is_short_enough(text):
            return text
        summary = make_inert(row.summary.removeprefix(f"{speaker}: "))
        if summary and self._is_short_enough(summary):
            return summary
        sentences = split_sentences(statement[:_READ_CHARS])
        return self._fit(lambda chars: choose_sentences(sentences, chars, self._task))

    def _fit(self, shorten: Callable[[int], str]) -> str:
        """Call `shorten` with decreasing numbers of characters until the text has at most `size` tokens."""
        chars = _CHARS_PER_TOKEN * self._size
        while chars > 1:
            text = make_inert(shorten(chars))
            if self._is_short_enough(text):
                return text
            chars = int(chars * _SHORTER)
        return ""

    def _is_short_enough(self, text: str) -> bool:
        """Return whether a text has at most `size` tokens, without counting them if its length decides."""
        if len(text.encode("utf-8", "replace")) <= self._size:
            return True
        return len(text) <= _CHARS_PER_TOKEN * self._size and self._by.count(text) <= self._size


def _cut(text: str, most_chars: int, task: str) -> str:
    """Return the part of a text that starts at the clause with most words of a task and ends at a clause or word."""
    task_words = condensing.find_words(task)
    begins = [0, *(match.end() for match in _CLAUSE_END.finditer(text))]
    counts = [len(task_words & condensing.find_words(text[begin:end])) for begin, end in pairwise([*begins, len(text)])]
    begin = begins[counts.index(max(counts))]
    part = text[begin : begin + most_chars].strip()
    if begin + most_chars < len(text):
        ends = [match.end() for match in _CLAUSE_END.finditer(part, len(part) // 2)] or [
            part.rfind(" ", len(part) // 2)
        ]
        part = part[: ends[-1]].rstrip(" ,;:，、；：") if ends[-1] > 0 else part
        part += "…"
    return f"…{part}" if begin else part


class _Head(NamedTuple):
    """A hit, with the older memories that it contradicts."""

    row: Row
    score: float
    older: list[Row]


def _select_relevant(
    relevant: choosing.RelevantNotes, present: dict[str, Row], always: set[str], lines: _NoteBuilder
) -> list[ContextNote]:
    """Return the relevant hits as notes, best first, none twice.

    Of memories that contradict each other the newest is the note, with the others below it.
    """
    scores = {hit.id: hit.score for hit in relevant.hits}
    linked = {hit.id: set(hit.contradicts) for hit in relevant.hits}
    related = {hit.id: list_shown_ids(hit.related) for hit in relevant.hits}
    placed: set[str] = set()
    heads: list[_Head] = []
    for row in sorted(present.values(), key=lambda row: (-row.created_at, -row.row)):
        if row.id in placed or (row.id not in scores and not any(row.id in ids for ids in linked.values())):
            continue
        against = {id for id, ids in linked.items() if row.id in ids} | linked.get(row.id, set())
        others = [present[id] for id in against if id in present and id not in placed and id != row.id]
        older = sorted(others, key=lambda one: (one.row, one.id))
        placed |= {row.id, *(one.id for one in older)}
        heads.append(_Head(row, max(scores.get(one.id, 0.0) for one in (row, *older)), older))
    shown_ids = set(always)
    notes: list[ContextNote] = []
    for head in sorted(heads, key=lambda head: (-head.score, -head.row.created_at, head.row.row, head.row.id)):
        if head.row.id in shown_ids:
            continue
        beside = [present[id] for id in related.get(head.row.id, ()) if id in present and id not in shown_ids]
        below = [lines.note(one, "", scores.get(one.id, 0.0)) for one in head.older if one.id not in shown_ids]
        group = group_of(head.row.type, head.row.tier)
        note = lines.note(head.row, group, head.score, below, beside)
        shown_ids |= {head.row.id, *note.related, *(one.id for one in below)}
        if not all(line.spare for line in note.lines):
            notes.append(note)
    return notes


def _read_present(core: Core, notes: choosing.RelevantNotes, own: str) -> dict[str, Row]:
    """Return by id the hits, the memories they contradict and those shown with them, if alive and within reach.

    Memories from the session `own` are left out, since it has them.
    """
    retrieval = notes.retrieval
    ids = {id for hit in notes.hits for id in (hit.id, *hit.contradicts, *list_shown_ids(hit.related))}
    with core.store.reading() as connection:
        living = select_living(connection, rows.read_ids(connection, sorted(ids)).values(), retrieval.passed)
    reached = retrieval.chosen.reached
    recent = {row.id: row for row in retrieval.recent.values() if row.id in ids}
    present = recent | {row.id: row for row in living if reached is None or row.namespace in reached}
    return {id: row for id, row in present.items() if not own or choosing.session_of(row) != own}


def _explain_omissions(
    call: GetContext, retrieval: Retrieval, present: dict[str, Row], always: dict[int, str], made: ContextText
) -> None:
    """Record in the trace why hits are not in the context.

    `present` are the hits that could be, by id; `always` are the ids of standing memories, by row.
    """
    ids = {row.row: row.id for row in present.values()} | always
    for candidate in retrieval.ranked:
        id = ids.get(candidate.row)
        if id in made.ids:
            continue
        if candidate.row not in always and not retrieval.is_relevant(candidate.similarity, candidate.bm25):
            candidate.lost = "not near enough to the task"
        elif id is None:
            candidate.lost = "it is from this session"
        elif id in made.omitted_ids:
            candidate.lost = f"cut by the budget of {call.max_tokens} tokens"
        else:
            candidate.lost = "the session has it already"
        candidate.lost_in = "context"


def _build_layout(core: Core, retrieval: Retrieval, notes: Sequence[ContextNote]) -> Layout:
    generation = retrieval.generation
    if generation is None:
        return Layout({}, _NEVER)
    with core.store.reading() as connection:
        numbers, matrix = generation.read_exact(connection, [note.row for note in notes if note.row])
    vectors: dict[int, Vector] = dict(zip(numbers, matrix, strict=True))
    return Layout(vectors, generation.embedder.floors.join)


def _mark(call: GetContext, notes: choosing.RelevantNotes, fitted: FittedNotes) -> Mark:
    relevant = {hit.id for hit in notes.hits}
    return Mark(
        namespace=call.namespace,
        session=call.session,
        at=notes.retrieval.now,
        rows=tuple(note.row for note in fitted.notes if note.row),
        met=tuple(note.row for note in fitted.notes if note.row and note.group != ALWAYS),
        accessed=tuple(note.row for note in fitted.notes if note.row and note.id in relevant),
    )

"""Preparing a context: what is standing, what a search finds, what the session does not have yet, what fits."""

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime

from memoryd.client.errors import Invalid
from memoryd.client.inert import make_inert, origin
from memoryd.client.protocol import ContextText, GetContext, Related
from memoryd.daemon.context import given
from memoryd.daemon.context import notes as chosen
from memoryd.daemon.context.counting import Counter, build_counter
from memoryd.daemon.context.fitting import ALWAYS, Fitted, Layout, Note, fit, group_of
from memoryd.daemon.core.checks import check_text
from memoryd.daemon.core.core import Core
from memoryd.daemon.registry import handles
from memoryd.daemon.search.effects import Mark
from memoryd.daemon.search.related import list_shown_ids
from memoryd.daemon.search.retrieval import Retrieval, Sources
from memoryd.daemon.store import rows
from memoryd.daemon.store.filters import select_living
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.vectors import Vector

_LONGEST_SHARE = 3  # one memory takes at most a third of the budget
_TOGETHER = 1.5  # times as much, with its question and its answers
_SHORTEST = 24  # tokens that a memory may have in any case
_CHARS_PER_TOKEN = 16  # no longer beginning is looked at
_ASKED_CHARS = 200  # of the question before its answer
_NEVER = 2.0  # a cosine that no two texts have


@handles(GetContext)
def context(core: Core, sources: Sources, call: GetContext) -> "Future[ContextText]":
    """Return the context for a task; what a session is given is noted on disk before it is returned."""
    began = time.perf_counter()
    if not call.task.strip():
        raise Invalid("The task is empty; say what the context is for.")
    check_text("session", call.session)
    had = {} if call.fresh else given.read(core, call)
    found = chosen.find(sources, call)
    always = chosen.find_standing(core, call)
    writer = _Lines(build_counter(core), max(_SHORTEST, call.max_tokens // _LONGEST_SHARE), call.compact)
    standing = [writer.note(row, ALWAYS) for row in always]
    own = "" if call.fresh else call.session
    relevant = _select_relevant(core, found, {row.id for row in always}, writer, own)
    new = [[note for note in part if had.get(note.id) != note.key] for part in (standing, relevant)]
    made = fit(new[0], new[1], call.max_tokens, _build_layout(core, found.retrieval, relevant, call.compact), writer.by)
    if call.touch:
        core.effects.note(_mark(call, found, made))
    shown = {note.id for note in made.notes}
    result = ContextText(
        text=made.text,
        tokens=made.tokens,
        tokenizer=writer.by.name,
        ids=[id for note in made.notes for id in (note.id, *note.related)],
        stable_chars=made.stable_chars,
        omitted=sum(note.id not in shown for part in new for note in part),
        repeated=len(standing) + len(relevant) - sum(map(len, new)),
        degraded=found.retrieval.degraded,
        trace=found.trace.id,
        took_ms=(time.perf_counter() - began) * 1000,
    )
    found.trace.given = result.ids
    return given.keep(core, call, [(note.id, note.key) for note in made.notes], result)


class _Lines:
    """Makes the line of a memory."""

    def __init__(self, by: Counter, size: int, compact: bool) -> None:
        self.by, self._size, self._compact = by, size, compact

    def note(
        self, row: Row, group: str, score: float = 0.0, below: Iterable[Note] = (), related: Sequence[Related] = ()
    ) -> Note:
        """Return a memory as a note, with its question and its answers; it is cut to the size that one may have."""
        date = datetime.fromtimestamp(row.created_at, UTC).date().isoformat()
        about = row.id[:8] if self._compact else f"{row.id[:8]}, {origin(row)}"
        if speaker := make_inert(chosen.find_speaker(row)):
            about += f", {speaker}"
        line = f"{date} [{about}] {self._text(row, related)}"
        ids = tuple(list_shown_ids(related))
        return Note(row.id, max(0, row.row), row.content_hash, group, row.created_at, score, line, tuple(below), ids)

    def _text(self, row: Row, related: Sequence[Related]) -> str:
        most = _CHARS_PER_TOKEN * self._size
        asked = [f"Asked: {one.content[:_ASKED_CHARS]}" for one in related if one.kind == "question" and one.content]
        told = [f"Answer: {one.content}" for one in related if one.kind == "answer"]
        whole = " ".join([*asked, row.content, *told])
        text = make_inert(whole[: 2 * most])  # blanks may be many
        if self._is_short_enough(text, _TOGETHER if related else 1.0):
            return text
        summary = make_inert(row.summary[: 2 * most])
        return summary if summary and self._is_short_enough(summary) else self._cut(text)

    def _is_short_enough(self, text: str, times: float = 1.0) -> bool:
        """Return whether a text may be shown whole; no token is shorter than a byte, and counting takes long."""
        size = int(times * self._size)
        if len(text.encode("utf-8", "replace")) <= size:
            return True
        return len(text) <= _CHARS_PER_TOKEN * size and self.by.count(text) <= size

    def _cut(self, text: str) -> str:
        """Return as much of a text's beginning as may be shown, up to a word's end where there is one."""
        low, high = 0, min(len(text), _CHARS_PER_TOKEN * self._size)
        while low < high:
            middle = (low + high + 1) // 2
            fits = self.by.count(text[:middle]) < self._size
            low, high = (middle, high) if fits else (low, middle - 1)
        kept = text[:low]
        return (kept.rsplit(" ", 1)[0] if " " in kept and low < len(text) else kept) + " …"


def _select_relevant(core: Core, found: chosen.Found, always: set[str], lines: _Lines, own: str) -> list[Note]:
    """Return the relevant hits as notes, best first; of those that disagree the newest, with the others below it.

    What comes out of the session `own` itself is left out: it has that.
    """
    scores = {hit.id: hit.score for hit in found.hits}
    linked = {hit.id: set(hit.contradicts) for hit in found.hits}
    related = {hit.id: hit.related for hit in found.hits}
    present = _read_rows(core, found.retrieval, {*linked, *(id for ids in linked.values() for id in ids)})
    present = {id: row for id, row in present.items() if not own or chosen.session_of(row) != own}
    placed: set[str] = set()
    heads: list[Note] = []
    for row in sorted(present.values(), key=lambda row: (-row.created_at, -row.row)):
        if row.id in placed:
            continue
        against = {id for id, ids in linked.items() if row.id in ids} | linked.get(row.id, set())
        older = [present[id] for id in sorted(against) if id in present and id not in placed and id != row.id]
        placed |= {row.id, *(one.id for one in older)}
        score = max(scores.get(one.id, 0.0) for one in (row, *older))
        below = [lines.note(one, "", scores.get(one.id, 0.0)) for one in older]
        heads.append(lines.note(row, group_of(row.type, row.tier), score, below, related.get(row.id, ())))
    heads = [note for note in heads if note.id not in always]
    return sorted(heads, key=lambda note: (-note.score, -note.created_at, note.id))


def _read_rows(core: Core, retrieval: Retrieval, ids: set[str]) -> dict[str, Row]:
    """Return turns of L0 and memories by id, as far as they are alive and within reach."""
    with core.store.reading() as connection:
        found = select_living(connection, rows.read_ids(connection, sorted(ids)).values(), retrieval.passed)
    reached = retrieval.chosen.reached
    recent = {row.id: row for row in retrieval.recent.values() if row.id in ids}
    return recent | {row.id: row for row in found if reached is None or row.namespace in reached}


def _build_layout(core: Core, retrieval: Retrieval, notes: Sequence[Note], compact: bool) -> Layout:
    generation = retrieval.generation
    if generation is None:
        return Layout({}, _NEVER, compact)
    with core.store.reading() as connection:
        known, matrix = generation.read_exact(connection, [note.row for note in notes if note.row])
    vectors: dict[int, Vector] = dict(zip(known, matrix, strict=True))
    return Layout(vectors, generation.embedder.floors.join, compact)


def _mark(call: GetContext, found: chosen.Found, made: Fitted) -> Mark:
    relevant = {hit.id for hit in found.hits}
    return Mark(
        namespace=call.namespace,
        session=call.session,
        at=found.retrieval.now,
        rows=tuple(note.row for note in made.notes if note.row),
        met=tuple(note.row for note in made.notes if note.row and note.group != ALWAYS),
        accessed=tuple(note.row for note in made.notes if note.row and note.id in relevant),
    )

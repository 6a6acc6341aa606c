"""Which hits give way to others: questions to their answers, tool output to people, the former state to what holds now.

A turn that only asks is shown by what answers it, at its place. Asked again by the same person in other words, and not
answered again, it is named there. A question that nobody answered, what only says that somebody does not know, what a
tool printed and a summary that quotes turns keep a share of their score: they come after what is said about the thing.
A log that a person pasted was printed by a tool. Of two memories that surely contradict each other the newer stands
directly before the older, unless the question asks for what was before. Among the best hits a newer statement also
stands before an older one when it tells in other words what became of it. Nothing is left out, only shown elsewhere.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from memoryd.daemon.agreement.statements import shares_answer, tells_change
from memoryd.daemon.language.names import Names, find_names, is_named
from memoryd.daemon.language.questions import knows_nothing, only_asks
from memoryd.daemon.language.talk import is_log, is_turn
from memoryd.daemon.search.candidates import cosines
from memoryd.daemon.search.cues import read_said
from memoryd.daemon.search.related import attach, links_of, read_answers
from memoryd.daemon.search.retrieval import Retrieval, Sources
from memoryd.daemon.search.traces import Candidate
from memoryd.daemon.store import rows, vectors
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.links import find_versions
from memoryd.daemon.store.queries import SUMMARY
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import DOCUMENTS
from memoryd.daemon.store.vectors import Vector

ASKS, UNKNOWN, TOOL, QUOTES = "asks", "unknown", "tool", "quotes"  # as the trace names why something gives way
RETOLD = 5  # of the best hits: of these a newer one may tell that an older one has changed
SHARES = {ASKS: 0.15, UNKNOWN: 0.15, TOOL: 0.4, QUOTES: 0.7}  # of the score that it keeps
_PARTS = {  # as the score names what that takes
    ASKS: "a question without an answer",
    UNKNOWN: "it says that it does not know",
    TOOL: "the output of a tool",
    QUOTES: "it quotes turns",
}


class _Asked(NamedTuple):
    """A question that was looked at, and the candidate that shows it: its answer, or itself."""

    row: Row
    shown_by: Candidate
    vector: Vector | None


class Precedence:
    """The candidates of a retrieval that were looked at so far. `waiting` is the ranking from there on."""

    def __init__(self, retrieval: Retrieval, sources: Sources) -> None:
        self._retrieval, self._sources = retrieval, sources
        self._settled: set[int] = set()
        self._asked: list[_Asked] = []

    def is_settled(self, candidate: Candidate) -> bool:
        """Return whether a candidate was looked at."""
        return candidate.row in self._settled

    def settle(self, part: Iterable[Candidate], waiting: list[Candidate]) -> None:
        """Move those of `part` that give way: down in `waiting`, or into what they are shown with."""
        statements: list[Candidate] = []
        for candidate in part:
            if not self.is_settled(candidate):
                self._settled.add(candidate.row)
                if candidate.record is not None and candidate.record.turns == 1:
                    statements.append(candidate)
                elif candidate.record is not None and _quotes_turns(candidate.record):
                    self._set_back(candidate, QUOTES, waiting)
        asking = [(one, one.record) for one in statements if one.record and only_asks(one.record.content)]
        if asking:
            self._settle_questions(asking, waiting)
        for candidate in statements:
            if candidate.record and _is_printed(candidate.record):
                self._set_back(candidate, TOOL, waiting)
            elif candidate.record and knows_nothing(candidate.record.content):
                self._set_back(candidate, UNKNOWN, waiting)

    def _settle_questions(self, asking: Sequence[tuple[Candidate, Row]], waiting: list[Candidate]) -> None:
        answers_by_id = read_answers(self._retrieval, self._sources, [row.id for _, row in asking])
        vectors_by_id = self._read_vectors([row for _, row in asking])
        # First those that have an answer, which may be that of the others as well.
        for candidate, row in sorted(asking, key=lambda pair: pair[1].id not in answers_by_id):
            answers = answers_by_id.get(row.id, [])
            question = _Asked(row, self._choose_answer(answers) or candidate, vectors_by_id.get(row.id))
            again = self._find_again(question) if self._retrieval.call.options.distinct else None
            if question.shown_by is not candidate:
                self._show(candidate, question.shown_by, waiting)
                for answer in answers:
                    if links_of(answer).answers:
                        attach(question.shown_by, answer)
                if again and again.shown_by.record is again.row and _find(waiting, again.shown_by) is not None:
                    self._show(again.shown_by, question.shown_by, waiting)
            elif again and not answers:
                if again.shown_by.record is again.row:  # nobody answered that one either
                    self._set_back(candidate, ASKS, waiting)
                self._show(candidate, again.shown_by, waiting)
                continue
            elif not answers:
                self._set_back(candidate, ASKS, waiting)
            self._asked.append(question)

    def _choose_answer(self, answers: Sequence[Row]) -> Candidate | None:
        """Return the best of the answers that were found, or else the latest; None where filters leave out all."""
        candidates = self._retrieval.candidates
        allowed = [row for row in answers if self._is_allowed(row)]
        there = [(one, row) for row in allowed if (one := candidates.get(row.row)) and (not one.lost or one.lost_in)]
        there = there or [(Candidate(row.row), row) for row in allowed[-1:] if row.row not in candidates]
        if not there:
            return None
        best, record = max(there, key=lambda pair: pair[0].score)
        candidates[best.row] = best
        best.record, best.lost, best.lost_in = record, "", ""
        return best

    def _is_allowed(self, row: Row) -> bool:
        """Return whether the call may return a turn."""
        retrieval = self._retrieval
        if row.row > 0:
            return bool(retrieval.allowed.select(np.array([row.row], np.int64))[0])
        return row.row in retrieval.recent or not retrieval.chosen.condition

    def _find_again(self, question: _Asked) -> _Asked | None:
        """Return the question that the same person asked before in other words."""
        generation = self._retrieval.generation
        if generation is None or question.vector is None:
            return None
        least, names = generation.embedder.floors.merge, find_names(question.row.content)
        asker = _read_asker(question.row)
        for other in self._asked:
            is_near = other.vector is not None and float(question.vector @ other.vector) >= least
            if is_near and _read_asker(other.row) == asker and find_names(other.row.content) == names:
                return other
        return None

    def _read_vectors(self, questions: Sequence[Row]) -> dict[str, Vector]:
        """Return by id the vectors of the texts alone, where they exist."""
        generation = self._retrieval.generation
        if generation is None:
            return {}
        keys = {row.id: vectors.text_hash(row.content) for row in questions}
        with self._sources.store.reading() as connection:
            by_hash = vectors.find(connection, generation.model, list(keys.values()))
        return {id: by_hash[key] for id, key in keys.items() if key in by_hash}

    def _show(self, question: Candidate, head: Candidate, waiting: list[Candidate]) -> None:
        """Show a question with another candidate, which takes its place, unless it stands above it."""
        assert question.record is not None
        assert head.record is not None
        attach(head, question.record)
        question.shown_with = head.record.id
        question.lost = f"it is shown as the question of {head.record.id[:8]}"
        at, there = _find(waiting, question), _find(waiting, head)
        if at is None:
            return
        is_higher = head.row in self._settled if there is None else there < at
        if is_higher:
            del waiting[at]
            return
        waiting[at] = head
        if there is not None:
            del waiting[there]
        self._settled.add(head.row)
        if question.score > head.score:
            head.rescore(question.score, f"the place of its question {question.record.id[:8]}")
        head.similarity = max(head.similarity or 0.0, question.similarity) if question.similarity else head.similarity
        head.origins = head.origins or question.origins

    def _set_back(self, candidate: Candidate, cue: str, waiting: list[Candidate]) -> None:
        """Have a candidate keep a share of its score."""
        at = _find(waiting, candidate)
        if at is None or not self._retrieval.profile.cues:
            return
        del waiting[at]
        candidate.rescore(candidate.score * SHARES[cue], _PARTS[cue])
        candidate.cues += (cue,)
        later = (place for place in range(at, len(waiting)) if waiting[place].score < candidate.score)
        waiting.insert(next(later, len(waiting)), candidate)


def _is_printed(row: Row) -> bool:
    """Return whether a tool printed a turn, or a log that a person pasted."""
    return '"role":"tool"' in row.metadata or ('"role":"user"' in row.metadata and is_log(row.content))


def _quotes_turns(row: Row) -> bool:
    """Return whether it is the summary of a session that was made without a language model."""
    return row.source == SUMMARY and '"by":"rules"' in row.metadata


def _find(waiting: Sequence[Candidate], candidate: Candidate) -> int | None:
    return next((place for place, one in enumerate(waiting) if one is candidate), None)


def _read_asker(row: Row) -> tuple[int, str, str]:
    statement = read_said(row)
    return row.namespace, statement.speaker, statement.role


def place_versions(retrieval: Retrieval, sources: Sources, hits: list[Candidate]) -> list[Candidate]:
    """Return the ranking; of two that contradict each other the one that is asked for stands before the other."""
    state = retrieval.hints.state
    if not state or not retrieval.profile.cues:
        return hits
    first: dict[int, list[int]] = {}  # what stands before a row
    with sources.store.reading() as connection:
        for newer, older in find_versions(connection, [one.record.id for one in hits if one.record]):
            one, other = (newer, older) if state == "present" else (older, newer)
            first.setdefault(other, []).append(one)
        if state == "present":
            for newer, older in _find_retold(retrieval, connection, hits[:RETOLD]):
                first.setdefault(older, []).append(newer)
        _bring(retrieval, connection, [row for rows in first.values() for row in rows])
    placed: dict[int, Candidate] = {}
    for candidate in hits:
        _place(candidate, first, retrieval.candidates, placed)
    return list(placed.values()) if first else hits


def _find_retold(retrieval: Retrieval, connection: Connection, best: Sequence[Candidate]) -> Iterator[tuple[int, int]]:
    """Yield (newer, older) rows of the best hits of which the newer, ranked lower, tells that the older has changed.

    Both were saved as statements, and the newer lacks no name that the question has of the older. They are about one
    subject; where they are less near, the newer names what it replaces.
    """
    statements = [row for one in best if (row := one.record) and row.tier != DOCUMENTS and not is_turn(row)]
    pairs = [
        (lower, upper)
        for at, upper in enumerate(statements)
        for lower in statements[at + 1 :]
        if lower.created_at > upper.created_at and lower.namespace == upper.namespace
        if tells_change(upper.content, lower.content)
        if _names_as_much(retrieval.hints.named, upper.content, lower.content)
    ]
    generation = retrieval.generation
    if not pairs or generation is None:
        return
    floors = generation.embedder.floors
    numbers, matrix = generation.read_exact(connection, sorted({row.row for pair in pairs for row in pair}))
    vector_of = dict(zip(numbers, matrix, strict=True))
    for lower, upper in pairs:
        if lower.row in vector_of and upper.row in vector_of:
            is_about = shares_answer(retrieval.call.query, upper.content, lower.content)
            if float(vector_of[lower.row] @ vector_of[upper.row]) >= (floors.related if is_about else floors.join):
                yield lower.row, upper.row


def _names_as_much(names: Names, upper: str, lower: str) -> bool:
    """Return whether `lower` has every name of a question that `upper` has."""
    upper, lower = upper.casefold(), lower.casefold()
    return all(is_named(name, lower) or not is_named(name, upper) for name in (*names.identifiers, *names.proper))


def _bring(retrieval: Retrieval, connection: Connection, numbers: Sequence[int]) -> None:
    """Make candidates of rows that the call may return, and read those that were not read."""
    new = np.array([row for row in numbers if row not in retrieval.candidates], np.int64)
    allowed = new[retrieval.allowed.select(new)].tolist()
    generation, vector = retrieval.generation, retrieval.vector
    similarities: dict[int, float] = {}
    if generation is not None and isinstance(vector, np.ndarray):
        similarities = cosines(generation.read_exact(connection, allowed), vector)
    for row in allowed:
        candidate = retrieval.ensure_candidate(row, "graph")
        candidate.similarity = similarities.get(row)
        candidate.bm25_rank, candidate.bm25 = retrieval.words.get(row, (None, None))
    unread = [row for row in numbers if (one := retrieval.candidates.get(row)) and one.record is None]
    for row, record in rows.read_rows(connection, unread).items():
        retrieval.candidates[row].record = record


def _place(
    candidate: Candidate,
    first: Mapping[int, list[int]],
    by_number: Mapping[int, Candidate],
    placed: dict[int, Candidate],
) -> None:
    """Place a candidate, and directly before it what stands before it."""
    if candidate.row in placed:
        return
    placed[candidate.row] = candidate  # two that are linked both ways end here
    for row in first.get(candidate.row, ()):
        other = by_number.get(row)
        if other is None or other.record is None or other.lost:
            continue
        other.formers += (candidate, *candidate.formers)
        if row not in placed:
            if candidate.record is not None and candidate.score > other.score:
                other.rescore(candidate.score, f"the place of {candidate.record.id[:8]}")
            _place(other, first, by_number, placed)
    placed[candidate.row] = placed.pop(candidate.row)

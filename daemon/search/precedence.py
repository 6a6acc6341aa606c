"""Reorder hits: answers replace their questions, tool output moves down, newer statements come before older ones.

- A question is shown with its answer, at the higher of their ranks. If the same person asked it again in other words
  and got no further answer, the repetition is shown there as well.
- Unanswered questions, "I don't know", tool output (also a log that a person pasted) and summaries that quote turns
  keep only a share of their score.
- Of two memories that contradict each other, the newer one is placed directly before the older, unless the query asks
  about the past. Among the best hits the same is done if the newer one says in other words that the older has changed.

Nothing is dropped.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from memoryd.daemon.agreement.statements import shares_answer, tells_change
from memoryd.daemon.language.names import find_names, is_named
from memoryd.daemon.language.questions import knows_nothing, only_asks
from memoryd.daemon.language.talk import is_log, is_turn
from memoryd.daemon.search.apart import Contradictions
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

ASKS, UNKNOWN, TOOL, QUOTES = "asks", "unknown", "tool", "quotes"  # reasons for moving a hit down, in the trace
RETOLD = 5  # among this many best hits, newer ones are checked for whether they change older ones
SHARES = {ASKS: 0.15, UNKNOWN: 0.15, TOOL: 0.4, QUOTES: 0.7}  # of its score that such a hit keeps
_PARTS = {  # names of these differences among the parts of a score
    ASKS: "a question without an answer",
    UNKNOWN: "it says that it does not know",
    TOOL: "the output of a tool",
    QUOTES: "it quotes turns",
}


class _Question(NamedTuple):
    """A question, and the candidate that it is shown with: its answer, or itself."""

    row: Row
    shown_by: Candidate
    vector: Vector | None


class Precedence:
    """Applies the rules part by part. `waiting` is the rest of the ranking, which the methods change in place."""

    def __init__(self, retrieval: Retrieval, sources: Sources) -> None:
        self._retrieval, self._sources = retrieval, sources
        self._settled: set[int] = set()
        self._asked: list[_Question] = []

    def is_settled(self, candidate: Candidate) -> bool:
        """Return whether the rules were applied to a candidate."""
        return candidate.row in self._settled

    def settle(self, part: Iterable[Candidate], waiting: list[Candidate]) -> None:
        """Apply the rules to `part`: move candidates down in `waiting`, or show them with another one."""
        statements: list[Candidate] = []
        for candidate in part:
            if not self.is_settled(candidate):
                self._settled.add(candidate.row)
                if candidate.record is not None and candidate.record.turns == 1:
                    statements.append(candidate)
                elif candidate.record is not None and _quotes_turns(candidate.record):
                    self._move_down(candidate, QUOTES, waiting)
        asking = [(one, one.record) for one in statements if one.record and only_asks(one.record.content)]
        if asking:
            self._settle_questions(asking, waiting)
        for candidate in statements:
            if candidate.record and _is_printed(candidate.record):
                self._move_down(candidate, TOOL, waiting)
            elif candidate.record and knows_nothing(candidate.record.content):
                self._move_down(candidate, UNKNOWN, waiting)

    def _settle_questions(self, asking: Sequence[tuple[Candidate, Row]], waiting: list[Candidate]) -> None:
        answers_by_id = read_answers(self._retrieval, self._sources, [row.id for _, row in asking])
        vectors_by_id: dict[str, Vector] = {}  # of the texts without context
        if (generation := self._retrieval.generation) is not None:
            keys = {row.id: vectors.text_hash(row.content) for _, row in asking}
            with self._sources.store.reading() as connection:
                by_hash = vectors.find(connection, generation.model, list(keys.values()))
            vectors_by_id = {id: by_hash[key] for id, key in keys.items() if key in by_hash}
        # Answered questions first: their answers may also serve repetitions without one.
        for candidate, row in sorted(asking, key=lambda pair: pair[1].id not in answers_by_id):
            answers = answers_by_id.get(row.id, [])
            question = _Question(row, self._choose_answer(answers) or candidate, vectors_by_id.get(row.id))
            again = self._find_again(question) if self._retrieval.call.options.distinct else None
            if question.shown_by is not candidate:
                self._show(candidate, question.shown_by, waiting)
                for answer in answers:
                    if links_of(answer).answers:
                        attach(question.shown_by, answer)
                if again and again.shown_by.record is again.row and _find(waiting, again.shown_by) is not None:
                    self._show(again.shown_by, question.shown_by, waiting)
            elif again and not answers:
                if again.shown_by.record is again.row:  # the other question has no answer either
                    self._move_down(candidate, ASKS, waiting)
                self._show(candidate, again.shown_by, waiting)
                continue
            elif not answers:
                self._move_down(candidate, ASKS, waiting)
            self._asked.append(question)

    def _choose_answer(self, answers: Sequence[Row]) -> Candidate | None:
        """Return the best answer that the search found, else the latest one; None if filters exclude all."""
        candidates = self._retrieval.candidates
        allowed = [row for row in answers if self._is_allowed(row)]
        found = [(one, row) for row in allowed if (one := candidates.get(row.row)) and (not one.lost or one.lost_in)]
        found = found or [(Candidate(row.row), row) for row in allowed[-1:] if row.row not in candidates]
        if not found:
            return None
        best, record = max(found, key=lambda pair: pair[0].score)
        candidates[best.row] = best
        best.record, best.lost, best.lost_in = record, "", ""
        return best

    def _is_allowed(self, row: Row) -> bool:
        """Return whether a turn passes the filters of the call."""
        retrieval = self._retrieval
        if row.row > 0:
            return bool(retrieval.allowed.select(np.array([row.row], np.int64))[0])
        return row.row in retrieval.recent or not retrieval.chosen.condition

    def _find_again(self, question: _Question) -> _Question | None:
        """Return an earlier question of the same person with the same meaning."""
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

    def _show(self, question: Candidate, head: Candidate, waiting: list[Candidate]) -> None:
        """Show a question with `head`, which takes its rank unless it ranks higher already."""
        assert question.record is not None
        assert head.record is not None
        attach(head, question.record)
        question.shown_with = head.record.id
        question.lost = f"it is shown as the question of {head.record.id[:8]}"
        at, head_at = _find(waiting, question), _find(waiting, head)
        if at is None:
            return
        is_higher = head.row in self._settled if head_at is None else head_at < at
        if is_higher:
            del waiting[at]
            return
        waiting[at] = head
        if head_at is not None:
            del waiting[head_at]
        self._settled.add(head.row)
        if question.score > head.score:
            head.rescore(question.score, f"the place of its question {question.record.id[:8]}")
        head.similarity = max(head.similarity or 0.0, question.similarity) if question.similarity else head.similarity
        head.origins = head.origins or question.origins

    def _move_down(self, candidate: Candidate, cue: str, waiting: list[Candidate]) -> None:
        """Reduce the score of a candidate by the factor of `SHARES`, and move it down."""
        at = _find(waiting, candidate)
        if at is None or not self._retrieval.profile.cues:
            return
        del waiting[at]
        candidate.rescore(candidate.score * SHARES[cue], _PARTS[cue])
        candidate.cues += (cue,)
        later = (place for place in range(at, len(waiting)) if waiting[place].score < candidate.score)
        waiting.insert(next(later, len(waiting)), candidate)


def _is_printed(row: Row) -> bool:
    """Return whether a turn is the output of a tool, or a log that a person pasted."""
    return '"role":"tool"' in row.metadata or ('"role":"user"' in row.metadata and is_log(row.content))


def _quotes_turns(row: Row) -> bool:
    """Return whether a memory is a summary that was made without a language model, which quotes turns."""
    return row.source == SUMMARY and '"by":"rules"' in row.metadata


def _find(waiting: Sequence[Candidate], candidate: Candidate) -> int | None:
    return next((place for place, one in enumerate(waiting) if one is candidate), None)


def _read_asker(row: Row) -> tuple[int, str, str]:
    statement = read_said(row)
    return row.namespace, statement.speaker, statement.role


def place_versions(retrieval: Retrieval, sources: Sources, hits: list[Candidate]) -> list[Candidate]:
    """Return the ranking with the newer of two contradicting hits first, or the older if the query asks about it."""
    state = retrieval.hints.state
    if not state or not retrieval.profile.cues:
        return hits
    first: dict[int, list[int]] = {}  # row -> the rows to place before it
    records = [one.record for one in hits if one.record]
    with sources.store.reading() as connection:
        versions = find_versions(connection, [row.id for row in records])
        for newer, older in (*versions, *find_apart(retrieval, sources, connection, records)):
            one, other = (newer, older) if state == "present" else (older, newer)
            first.setdefault(other, []).append(one)
        if state == "present":
            for newer, older in _find_retold(retrieval, connection, hits[:RETOLD]):
                first.setdefault(older, []).append(newer)
        _add_candidates(retrieval, connection, [row for rows in first.values() for row in rows])
    placed: dict[int, Candidate] = {}
    for candidate in hits:
        _place(candidate, first, retrieval.candidates, placed)
    return list(placed.values()) if first else hits


def find_apart(
    retrieval: Retrieval, sources: Sources, connection: Connection, heads: Sequence[Row]
) -> list[tuple[int, int]]:
    """Return (newer, older) candidates that contradict each other, one of a shared root, and one among `heads`."""
    if not retrieval.elsewhere or retrieval.generation is None:
        return []
    contradictions: Contradictions = sources.state(Contradictions)
    records = [row for one in retrieval.candidates.values() if (row := one.record)]
    vectors_by_row = retrieval.read_vectors(connection, [row.row for row in records])
    floors = retrieval.generation.embedder.floors
    return contradictions.find(records, vectors_by_row, floors, {row.row for row in heads})


def _find_retold(retrieval: Retrieval, connection: Connection, best: Sequence[Candidate]) -> Iterator[tuple[int, int]]:
    """Yield (newer, older) rows of the best hits where the newer, ranked lower, says that the older has changed.

    Both are statements, and the newer one has every name that the older one shares with the query. Their vectors must
    be near; a lower floor applies if the newer one also shares the older one's answer to the query.
    """
    statements = [row for one in best if (row := one.record) and row.tier != DOCUMENTS and not is_turn(row)]
    pairs = [
        (lower, upper)
        for at, upper in enumerate(statements)
        for lower in statements[at + 1 :]
        if lower.created_at > upper.created_at and lower.namespace == upper.namespace
        if tells_change(upper.content, lower.content)
    ]
    names = (*retrieval.hints.named.identifiers, *retrieval.hints.named.proper)
    pairs = [
        (lower, upper)
        for lower, upper in pairs
        if all(is_named(one, lower.content.casefold()) or not is_named(one, upper.content.casefold()) for one in names)
    ]
    generation = retrieval.generation
    if not pairs or generation is None:
        return
    floors = generation.embedder.floors
    vector_of = retrieval.read_vectors(connection, sorted({row.row for pair in pairs for row in pair}))
    for lower, upper in pairs:
        if lower.row in vector_of and upper.row in vector_of:
            is_about = shares_answer(retrieval.call.query, upper.content, lower.content)
            if float(vector_of[lower.row] @ vector_of[upper.row]) >= (floors.related if is_about else floors.join):
                yield lower.row, upper.row


def _add_candidates(retrieval: Retrieval, connection: Connection, numbers: Sequence[int]) -> None:
    """Add rows within the mask as candidates, and read the records that are missing."""
    new = np.array([row for row in numbers if row not in retrieval.candidates], np.int64)
    allowed = new[retrieval.allowed.select(new)].tolist()
    generation, vector = retrieval.generation, retrieval.vector
    similarities: dict[int, float] = {}
    if generation is not None and isinstance(vector, np.ndarray):
        similarities = cosines(generation.read_exact(connection, allowed), vector)
    for row in allowed:
        retrieval.ensure_candidate(row, "graph").similarity = similarities.get(row)
    unread = [row for row in numbers if (one := retrieval.candidates.get(row)) and one.record is None]
    for row, record in rows.read_rows(connection, unread).items():
        retrieval.candidates[row].record = record


def _place(
    candidate: Candidate,
    first: Mapping[int, list[int]],
    by_number: Mapping[int, Candidate],
    placed: dict[int, Candidate],
) -> None:
    """Append a candidate to `placed`, and directly before it the rows of `first`."""
    if candidate.row in placed:
        return
    placed[candidate.row] = candidate  # set first, so that a cycle ends here
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

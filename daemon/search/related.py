"""Merge linked memories into one hit: a question with its answers, a fact with the turns that it was extracted from.

The links are ids in metadata: `answers` of a turn names its question, `turns` of a fact its sources. The better one of
two linked candidates becomes the hit and names the other; for questions see `precedence`. Questions and answers are
added to a hit by their links, even if the search did not find them.

`links_of` has the rules for replies. A reply is shown with the question or prompt that it replies to. It counts as the
answer if it is by an agent or by a person with a name; the next turn of an unnamed person is a separate hit. A turn
that only asks, or says "I don't know", is no reply.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from memoryd.client.protocol import Related
from memoryd.daemon.language.questions import answers_nothing, asks, only_asks
from memoryd.daemon.language.sentences import ends_with_question
from memoryd.daemon.language.talk import find_speaker
from memoryd.daemon.search.retrieval import Retrieval, Sources
from memoryd.daemon.search.traces import Candidate
from memoryd.daemon.store import queries, turns
from memoryd.daemon.store.namespaces import condition
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import L3

_MAX_CHARS = 4000  # of a question or an answer that is shown with a hit
_MAX_ANSWERS = 3  # of one question, the latest

_Kind = Literal["question", "prompt", "answer", "fact", "turn"]
_SHOWN_AS: dict[_Kind, str] = {
    "question": "as the question of",
    "prompt": "as the prompt of",
    "answer": "as an answer to",
    "fact": "as a fact of",
    "turn": "as a source of",
}

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class RelatedLinks(NamedTuple):
    """The links of a memory: the turn that it replies to (`question`), and the turns that a fact was extracted from.

    `answers`: the reply is also shown with that turn, as its answer.
    """

    question: str | None
    said: list[str]
    answers: bool = False


def links_of(row: Row) -> RelatedLinks:
    """Return the links of a memory or a turn; what a shared root says of other memories counts for nothing."""
    if row.tier == L3 or ('"answers"' not in row.metadata and '"turns"' not in row.metadata):
        return RelatedLinks(None, [])
    about = _decode(row.metadata)
    question, turns = about.get("answers"), about.get("turns")
    is_fact = row.turns == 0 and isinstance(turns, list)
    is_reply = row.turns == 1 and isinstance(question, str) and not answers_nothing(row.content)
    return RelatedLinks(
        question if is_reply else None,
        [id for id in turns if isinstance(id, str)] if is_fact else [],  # type: ignore[union-attr]
        is_reply and (about.get("role") != "user" or bool(about.get("speaker") or find_speaker(row.content))),
    )


class Shown:
    """The hits so far, best first, and the memories that are shown with each."""

    def __init__(self) -> None:
        self._by_id: dict[str, Candidate] = {}  # the hit that shows the text of a memory
        self._asked: dict[str, Candidate] = {}  # the hit that is a question, or is shown in its place
        self._naming: dict[str, Candidate] = {}  # the hit that is linked to a memory

    def join(self, candidate: Candidate, row: Row, links: RelatedLinks) -> bool:
        """Attach a candidate to a better hit that it is linked to; return whether there is one."""
        linked = (self._by_id[id] for id in links.said if id in self._by_id)
        asked = self._asked.get(links.question or "") if links.answers else None
        head = self._naming.get(row.id) or asked or next(linked, None)
        if head is None or head.record is None:
            return False
        for one in (row, *candidate.related):
            attach(head, one)
        kind = _kind(head.record, links_of(head.record), row)
        candidate.shown_with = head.record.id
        candidate.lost = f"it is shown {_SHOWN_AS[kind]} {head.record.id[:8]}"
        if kind in ("question", "prompt", "answer"):
            self._by_id[row.id] = head
        return True

    def add(self, candidate: Candidate, row: Row, links: RelatedLinks) -> None:
        """Add a candidate as a hit."""
        self._by_id[row.id] = self._asked[row.id] = candidate
        self._asked |= {one.id: candidate for one in candidate.related if one.id == links.question}
        for id in (links.question if links.answers else None, *links.said):
            if id is not None:
                self._naming.setdefault(id, candidate)


def complete(retrieval: Retrieval, sources: Sources) -> None:
    """Attach questions and answers to the hits that are turns, whether or not the search found them."""
    heads = {row.id: one for one in retrieval.ranked if (row := one.record) is not None and row.turns == 1}
    if not heads:
        return
    questions = {id: links_of(one.record).question for id, one in heads.items() if one.record}
    question_ids = {question for question in questions.values() if question}
    reached = retrieval.chosen.reached
    recent = [turns.to_row(turn) for turn in sources.active.find_linked(heads.keys(), question_ids, reached)]
    with sources.store.reading() as connection:
        where = condition(reached)
        stored_rows = queries.find_answers(connection, list(heads), where, retrieval.passed)
        stored_rows += queries.find_alive(connection, sorted(question_ids), where, retrieval.passed)
    shown_ids = {*heads, *(row.id for one in retrieval.ranked for row in one.related)}
    rows = {row.id: row for row in (*stored_rows, *recent) if row.id not in shown_ids}
    answers: dict[str, list[str]] = {}
    for row in sorted(rows.values(), key=lambda row: row.created_at):
        links = links_of(row)
        if links.question and links.answers:
            answers.setdefault(links.question, []).append(row.id)
    for id, head in heads.items():
        # A question gets its answers, any other turn the question that it answers.
        own_answers, answered = answers.get(id, []), [one for one in [questions[id]] if one in rows]
        is_asking = head.record is not None and ends_with_question(head.record.content)
        for other in (own_answers or answered) if is_asking else (answered or own_answers):
            if other in rows:
                attach(head, rows.pop(other))


def read_answers(retrieval: Retrieval, sources: Sources, ids: Sequence[str]) -> dict[str, list[Row]]:
    """Return the answers to turns by the turn's id, the oldest first; turns without one within reach are left out."""
    reached = retrieval.chosen.reached
    answers = [turns.to_row(turn) for turn in sources.active.find_linked(ids, (), reached)]
    with sources.store.reading() as connection:
        answers += queries.find_answers(connection, ids, condition(reached), retrieval.passed)
    by_question: dict[str, list[Row]] = {}
    for row in sorted(answers, key=lambda row: row.created_at):
        if (question := links_of(row).question) and question != row.id:
            by_question.setdefault(question, []).append(row)
    return by_question


def attach(head: Candidate, row: Row) -> None:
    """Show a memory with a hit."""
    if head.record is not None and row.id != head.record.id and all(row.id != other.id for other in head.related):
        head.related += (row,)


def find_shown(candidate: Candidate) -> list[Related]:
    """Return the memories shown with a hit: the one it replies to, its latest answers, then facts or turns."""
    head = candidate.record
    if head is None or not candidate.related:
        return []
    links = links_of(head)
    by_kind: dict[_Kind, list[Row]] = {kind: [] for kind in _SHOWN_AS}
    for row in sorted(candidate.related, key=lambda row: row.created_at):
        by_kind[_kind(head, links, row)].append(row)
    by_kind["answer"] = by_kind["answer"][-_MAX_ANSWERS:]
    return [
        # Facts, turns and other wordings of the question are given by id only.
        Related(
            id=one.id,
            kind=kind,
            content=one.content[:_MAX_CHARS] if kind == "answer" or one.id == links.question else "",
        )
        for kind in by_kind
        for one in by_kind[kind]
    ]


def _kind(head: Row, links: RelatedLinks, row: Row) -> _Kind:
    """Return the relation of a memory to the hit that shows it; `links` are those of the hit."""
    if row.id in links.said:
        return "turn"
    if row.id == links.question:
        return "question" if asks(row.content) else "prompt"
    if row.turns == 0 and head.id in links_of(row).said:
        return "fact"
    return "question" if only_asks(row.content) else "answer"


def list_shown_ids(related: Iterable[Related]) -> list[str]:
    """Return the ids of the memories that are shown with their text."""
    return [one.id for one in related if one.content]

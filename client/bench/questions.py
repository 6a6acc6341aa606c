"""Questions of long chats (LongMemEval): each line has a question and the sessions that are searched for it.

One JSON object a line: `id`, `type`, `question`, `question_date`, `gold_sessions`, and `sessions` of `id`, `date`
(`2023/05/20 (Sat) 02:21`) and `turns` (`role`, `content`, `has_answer` on the turns that hold the answer). Each
question has a namespace of its own. A question with no gold among what is stored is left out.
"""

import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import islice
from operator import attrgetter
from pathlib import Path

import msgspec

from memoryd.client.bench import material
from memoryd.client.bench.material import EvalItem, GoldQuestion, Material, Selection, Session, read_lines
from memoryd.client.protocol import NewMemory, NewTurn

# A turn is stored with its speaker in front: without it, who said a thing is lost and retrieval is 5 points worse.
SPEAKER = "{role}: {content}"
TURN_S = 30.0  # between two observed turns: a session has one date


class ChatMessage(msgspec.Struct):
    """One message of a conversation."""

    role: str
    content: str
    has_answer: bool = False


class Question(msgspec.Struct):
    """A question, the conversations to search, and which of them hold the answer."""

    id: str
    type: str
    question: str
    gold_sessions: list[str]
    sessions: list[Session[ChatMessage]]


def read_questions(path: Path) -> Iterator[Question]:
    """Yield the questions of a file."""
    return read_lines(path, Question, "a question")


def make_materials(path: Path, way: str, choice: Selection) -> Iterator[Material]:
    """Yield what is stored and asked by one way, a namespace per question."""
    for question in islice(read_questions(path), choice.limit):
        made = WAYS[way](question)
        if made.items and made.questions[0].gold:
            yield made


def make_by_session(question: Question) -> Material:
    """Return one memory per session: what the user said, joined by line ends."""
    items = []
    for session in question.sessions:
        content = "\n".join(turn.content for turn in session.turns if turn.role == "user")
        if content.strip():
            items.append(EvalItem((question.id, session.id), _make_memory(content, session, {"session": session.id})))
    return _make_material(question, "session", items, [(question.id, session) for session in question.gold_sessions])


def make_by_turn(question: Question) -> Material:
    """Return one memory per turn of either speaker."""

    def make(session: Session[ChatMessage], number: int) -> NewMemory:
        turn = session.turns[number]
        about = {"session": session.id, "turn": number, "role": turn.role}
        near = session.neighbours(number, attrgetter("content"))
        return _make_memory(SPEAKER.format(role=turn.role, content=turn.content), session, about, near)

    return _make_of_turns(question, "turn", make)


def make_observed(question: Question) -> Material:
    """Return the turns to observe, of the oldest session first."""

    def make(session: Session[ChatMessage], number: int) -> NewTurn:
        turn = session.turns[number]
        return NewTurn(role=turn.role, content=turn.content, created_at=seconds_of(session.date) + TURN_S * number)

    question.sessions.sort(key=lambda session: seconds_of(session.date))
    return _make_of_turns(question, "observe", make)


WAYS: dict[str, Callable[[Question], Material]] = {
    "session": make_by_session,
    "turn": make_by_turn,
    "observe": make_observed,
}


def _make_of_turns(
    question: Question, way: str, make: Callable[[Session[ChatMessage], int], NewMemory | NewTurn]
) -> Material:
    items, gold = [], []
    for place, session in enumerate(question.sessions):
        for number, turn in enumerate(session.turns):
            if not turn.content.strip():
                continue
            key = (question.id, place, number)
            items.append(EvalItem(key, make(session, number), session.id, turn.content))
            if turn.has_answer:
                gold.append(key)
    return _make_material(question, way, items, gold)


def _make_material(question: Question, way: str, items: list[EvalItem], gold: Sequence[Hashable]) -> Material:
    asked = GoldQuestion(question.id, question.type, question.question, tuple(frozenset([key]) for key in gold))
    return Material(question.id, way, items, [asked], dedup=False)


def _make_memory(
    content: str, session: Session[ChatMessage], about: dict[str, object], neighbours: Sequence[str] = ()
) -> NewMemory:
    return NewMemory(
        content=content,
        type="conversation",
        metadata=about,
        created_at=seconds_of(session.date),
        neighbours=list(neighbours),
    )


def seconds_of(date: str) -> float:
    """Return UTC seconds for `2023/05/20 (Sat) 02:21`; the day's name is not read, it depends on the language."""
    return material.seconds_of(re.sub(r" \(\w+\)", "", date), "%Y/%m/%d %H:%M", "2023/05/20 (Sat) 02:21")

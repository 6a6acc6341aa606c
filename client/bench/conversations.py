"""Long conversations of two people or with an assistant (LoCoMo; REALTALK and BEAM in its format), many questions each.

One JSON object a line: `id`, `speakers`, `sessions` (`id`, `date` as `1:56 pm on 8 May, 2023`, `turns` of `id`,
`speaker`, `text`) and `questions` (`id`, `category`, `question`, `gold_turns`). Each conversation has a namespace of
its own. An adversarial question names somebody or something that was never spoken of: nothing answers it, whatever
turns it was made from. A question of another category without gold is left out.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from memoryd.client.bench.material import EvalItem, GoldQuestion, Material, Selection, Session, read_lines, seconds_of
from memoryd.client.protocol import NewMemory, NewTurn

ADVERSARIAL = "adversarial"
TURN_S = 30.0  # between two turns: a session has one date


class ConversationTurn(msgspec.Struct):
    """What somebody said."""

    id: str
    speaker: str
    text: str


class ConversationQuestion(msgspec.Struct):
    """A question and the turns that hold its answer."""

    id: str
    category: str
    question: str
    gold_turns: list[str]


class BenchConversation(msgspec.Struct):
    """A line of the file."""

    id: str
    speakers: list[str]
    sessions: list[Session[ConversationTurn]]
    questions: list[ConversationQuestion]


class _Said(NamedTuple):
    """A turn with its place in the conversation."""

    conversation: BenchConversation
    session: Session[ConversationTurn]
    number: int

    @property
    def turn(self) -> ConversationTurn:
        return self.session.turns[self.number]

    @property
    def at(self) -> float:
        return seconds_of(self.session.date, "%I:%M %p on %d %B, %Y", "1:56 pm on 8 May, 2023") + TURN_S * self.number


def make_materials(path: Path, way: str, choice: Selection) -> Iterator[Material]:
    """Yield what is stored and asked by one way, conversation by conversation, as long as questions are wanted."""
    left = choice.limit
    for conversation in read_lines(path, BenchConversation, "a conversation"):
        asked = [_make_asked(question) for question in conversation.questions]
        asked = [one for one in asked if one.gold or one.type == ADVERSARIAL][:left]
        if asked:
            yield Material(conversation.id, way, _make_items(conversation, WAYS[way]), asked)
        left = None if left is None else left - len(asked)


def _make_asked(question: ConversationQuestion) -> GoldQuestion:
    gold = () if question.category == ADVERSARIAL else question.gold_turns
    return GoldQuestion(question.id, question.category, question.question, tuple(frozenset([turn]) for turn in gold))


def _make_items(conversation: BenchConversation, make: "Make") -> list[EvalItem]:
    return [
        EvalItem(turn.id, make(_Said(conversation, session, number)), session.id, turn.text)
        for session in conversation.sessions
        for number, turn in enumerate(session.turns)
        if turn.text.strip()
    ]


def _make_with_neighbours(said: _Said) -> NewMemory:
    return NewMemory(
        content=_turn_text(said.turn),
        type="conversation",
        metadata={"session": said.session.id, "speaker": said.turn.speaker},
        created_at=said.at,
        neighbours=said.session.neighbours(said.number, _turn_text),
    )


def _make_turn(said: _Said) -> NewTurn:
    role = "user" if said.turn.speaker == said.conversation.speakers[0] else "assistant"
    return NewTurn(role=role, content=_turn_text(said.turn), created_at=said.at)


def _turn_text(turn: ConversationTurn) -> str:
    return f"{turn.speaker}: {turn.text}"


Make = Callable[[_Said], NewMemory | NewTurn]
WAYS: dict[str, Make] = {
    "add": lambda said: NewMemory(content=_turn_text(said.turn)),
    "neighbours": _make_with_neighbours,
    "observe": _make_turn,
}

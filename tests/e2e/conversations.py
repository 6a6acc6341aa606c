"""Scripted conversations with planted facts, and questions that need them."""

from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent.parent / "data" / "conversations"


class Planted(NamedTuple):
    """A turn that states a fact, and words that a memory of it has."""

    turn: int
    words: list[str]


class Question(NamedTuple):
    """A question, and a word of the fact that answers it."""

    text: str
    needs: str


class Conversation(NamedTuple):
    """Turns as (role, content), what is planted in them, what is asked later."""

    turns: list[tuple[str, str]]
    planted: list[Planted]
    questions: list[Question]


def read(name: str) -> Conversation:
    """Read one: `* words :: role: text` is a planted turn, `? text :: word` a question, `#` a remark."""
    made = Conversation([], [], [])
    for line in (FOLDER / f"{name}.txt").read_text().splitlines():
        if line.startswith("? "):
            made.questions.append(Question(*line[2:].split(" :: ")))
        elif line and not line.startswith("#"):
            words, _, said = line.rpartition(" :: ")
            if words:
                made.planted.append(Planted(len(made.turns), words.removeprefix("* ").split("|")))
            role, text = said.split(": ", 1)
            made.turns.append((role, text))
    return made

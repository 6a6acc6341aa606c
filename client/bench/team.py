"""The set of a software team: a folder of memories, turns, and questions in two halves.

`memories.jsonl` (`id`, `type`, `created_at`, `content`), `turns.jsonl` (`id`, `session`, `role`, `speaker`,
`created_at`, `content`), `questions-HALF.jsonl` (`id`, `question`, `asked_at`, `language`, `category`, `gold`,
`alternatives`, `context`). Memories are added and sessions observed in the order of time. A question with one gold item
is answered by an alternative as well; one with two needs both. Finding the `context`, to which the gold item replies,
is neither right nor wrong.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec

from memoryd.client.bench.material import EvalItem, GoldQuestion, Material, Selection, read_lines, seconds_of
from memoryd.client.protocol import NewMemory, NewTurn

WAYS = ("team",)
HALVES = ("seen", "unseen")


class TeamMemory(msgspec.Struct):
    """What somebody saved on purpose."""

    id: str
    type: str
    created_at: str
    content: str


class TeamTurn(msgspec.Struct):
    """What was said in a session; an agent has no `speaker`."""

    id: str
    session: str
    role: str
    created_at: str
    content: str
    speaker: str = ""


class TeamQuestion(msgspec.Struct):
    """A question and the items that answer it."""

    id: str
    question: str
    asked_at: str
    language: str
    category: str
    gold: list[str]
    alternatives: list[str] = []
    context: list[str] = []


def make_materials(folder: Path, way: str, choice: Selection) -> Iterator[Material]:
    """Yield the whole set with one half of its questions."""
    memories = [
        EvalItem(one.id, NewMemory(content=one.content, type=one.type, created_at=_parse_seconds(one.created_at)))
        for one in read_lines(folder / "memories.jsonl", TeamMemory, "a memory")
    ]
    turns = [_make_turn(one) for one in read_lines(folder / "turns.jsonl", TeamTurn, "a turn")]
    asked = read_lines(folder / f"questions-{choice.half}.jsonl", TeamQuestion, "a question")
    items = sorted([*memories, *turns], key=lambda item: item.what.created_at or 0.0)
    yield Material(folder.name, way, items, [_make_asked(one) for one in islice(asked, choice.limit)])


def _make_turn(one: TeamTurn) -> EvalItem:
    content = f"{one.speaker}: {one.content}" if one.speaker else one.content
    turn = NewTurn(role=one.role, content=content, created_at=_parse_seconds(one.created_at))
    return EvalItem(one.id, turn, one.session, one.content)


def _make_asked(one: TeamQuestion) -> GoldQuestion:
    gold = tuple(frozenset([key, *one.alternatives]) for key in one.gold)
    at = _parse_seconds(one.asked_at)
    return GoldQuestion(one.id, one.category, one.question, gold, one.language, at, frozenset(one.context))


def _parse_seconds(date: str) -> float:
    return seconds_of(date, "%Y-%m-%dT%H:%M:%SZ", "2026-05-29T07:01:00Z")

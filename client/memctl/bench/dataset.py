"""The format of the evaluation data, and a question as memories to store.

One JSON object a line: `id`, `type`, `question`, `question_date`, `gold_sessions`, and `sessions` of `id`, `date`
(`2023/05/20 (Sat) 02:21`) and `turns` (`role`, `content`, `has_answer` on the turns that hold the answer).
"""

import gzip
from collections.abc import Hashable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from memoryd.client.errors import Invalid
from memoryd.client.protocol import NewMemory

# A turn is stored with its speaker in front: without it, who said a thing is lost and retrieval is 5 points worse.
SPEAKER = "{role}: {content}"


class Turn(msgspec.Struct):
    """One message of a conversation."""

    role: str
    content: str
    has_answer: bool = False


class Session(msgspec.Struct):
    """One dated conversation."""

    id: str
    date: str
    turns: list[Turn]


class Question(msgspec.Struct):
    """A question, the conversations to search, and which of them hold the answer."""

    id: str
    type: str
    question: str
    gold_sessions: list[str]
    sessions: list[Session]


class Item(NamedTuple):
    """A memory to store, and the key that says which answer it is."""

    key: Hashable
    memory: NewMemory


class Material(NamedTuple):
    """What is stored for a question, and the keys of the right answers."""

    items: list[Item]
    gold: frozenset[Hashable]


def questions(path: Path) -> Iterator[Question]:
    """Yield the questions of a `.jsonl` or `.jsonl.gz` file; raise `Invalid` at a line that is none."""
    decoder = msgspec.json.Decoder(Question)
    for number, line in enumerate(_lines(path), 1):
        try:
            if line.strip():
                yield decoder.decode(line)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise Invalid(f"{path}, line {number} is not a question: {error}.") from None


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
            yield from lines
    except (gzip.BadGzipFile, EOFError) as error:
        raise Invalid(f"{path} is not a whole gzip file: {error}.") from None


def by_session(question: Question) -> Material:
    """Return one memory per session: what the user said, joined by line ends."""
    items = []
    for session in question.sessions:
        content = "\n".join(turn.content for turn in session.turns if turn.role == "user")
        if content.strip():
            items.append(Item(session.id, _memory(content, session, {"session": session.id})))
    return Material(items, frozenset(question.gold_sessions))


def by_turn(question: Question) -> Material:
    """Return one memory per turn of either speaker."""
    items, gold = [], set()
    for place, session in enumerate(question.sessions):
        for number, turn in enumerate(session.turns):
            if not turn.content.strip():
                continue
            content = SPEAKER.format(role=turn.role, content=turn.content)
            about = {"session": session.id, "turn": number, "role": turn.role}
            around = [
                session.turns[near].content for near in (number - 1, number + 1) if 0 <= near < len(session.turns)
            ]
            items.append(Item((place, number), _memory(content, session, about, around)))
            if turn.has_answer:
                gold.add((place, number))
    return Material(items, frozenset(gold))


WAYS = {"session": by_session, "turn": by_turn}


def _memory(content: str, session: Session, about: dict[str, object], around: Sequence[str] = ()) -> NewMemory:
    return NewMemory(
        content=content,
        type="conversation",
        metadata=about,
        created_at=seconds_of(session.date),
        neighbours=list(around),
    )


def seconds_of(date: str) -> float:
    """Return UTC seconds for `2023/05/20 (Sat) 02:21`; the day's name is not read, it depends on the language."""
    try:
        day, clock = date.split()[0], date.split()[-1]
        return datetime.strptime(f"{day} {clock}", "%Y/%m/%d %H:%M").replace(tzinfo=UTC).timestamp()
    except (ValueError, IndexError):
        raise Invalid(f"{date!r} is not a date like 2023/05/20 (Sat) 02:21.") from None

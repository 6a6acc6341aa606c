"""What an evaluation stores and asks, whatever kind of file it comes from; and reading JSON lines.

A *key* names one thing that was said (a turn, a memory, a session); gold is given in keys.
"""

import gzip
from collections.abc import Callable, Hashable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import msgspec

from memoryd.client.errors import Invalid
from memoryd.client.protocol import NewMemory, NewTurn

T = TypeVar("T")


class EvalItem(NamedTuple):
    """A memory to add, or a turn to observe in its session, and the key that gold names it by.

    `said` is its text where it is stored with its speaker in front. What was said in a session stands in order.
    """

    key: Hashable
    what: NewMemory | NewTurn
    session: str = ""
    said: str = ""

    @property
    def text(self) -> str:
        """Its text without the speaker."""
        return self.said or self.what.content


class GoldQuestion(NamedTuple):
    """A question. Each part of `gold` is one right answer: any of its keys gives it. Without gold nothing answers it.

    `at` is when it is asked (UTC seconds), None: at any time. A hit that gives nothing but `neutral` keys is neither
    right nor wrong: it takes no place in the ranking.
    """

    id: str
    type: str
    question: str
    gold: tuple[frozenset[Hashable], ...]
    language: str = ""
    at: float | None = None
    neutral: frozenset[Hashable] = frozenset()


class Material(NamedTuple):
    """What is stored together, in order, and what is asked about it; `dedup`: memories are compared as `add` does."""

    name: str
    way: str
    items: list[EvalItem]
    questions: list[GoldQuestion]
    dedup: bool = True


class Session(msgspec.Struct, Generic[T]):
    """One dated conversation, or a part of a long one."""

    id: str
    date: str
    turns: list[T]

    def neighbours(self, number: int, text_of: Callable[[T], str]) -> list[str]:
        """Return the texts of the turns before and after one."""
        return [text_of(self.turns[near]) for near in (number - 1, number + 1) if 0 <= near < len(self.turns)]


class Selection(NamedTuple):
    """What of a file is wanted: the first `limit` questions (None: all), and the half of a set that has two."""

    limit: int | None = None
    half: str = "seen"


def read_lines(path: Path, kind: type[T], noun: str) -> Iterator[T]:
    """Yield the lines of a `.jsonl` or `.jsonl.gz` file; raise `Invalid` at one that is not `noun`."""
    decoder = msgspec.json.Decoder(kind)
    for number, line in enumerate(_open_lines(path), 1):
        try:
            if line.strip():
                yield decoder.decode(line)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise Invalid(f"{path}, line {number} is not {noun}: {error}.") from None


def _open_lines(path: Path) -> Iterator[bytes]:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
            yield from lines
    except (gzip.BadGzipFile, EOFError) as error:
        raise Invalid(f"{path} is not a whole gzip file: {error}.") from None


def seconds_of(date: str, form: str, example: str) -> float:
    """Return UTC seconds for a date of a form of `strptime`; raise `Invalid` naming an example."""
    try:
        return datetime.strptime(date, form).replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise Invalid(f"{date!r} is not a date like {example}.") from None

"""What is known of the turns of a session by themselves: what the gate says, importance, neighbours, what answers what.

As `conversations/observing` decides it turn by turn; here the whole session is there. Pure functions.
"""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from memoryd.client.protocol import NewTurn
from memoryd.daemon.conversations import gate
from memoryd.daemon.conversations.observing import PAIR_WITHIN_S
from memoryd.daemon.core.checks import content_hash
from memoryd.daemon.language import asking, rating
from memoryd.daemon.memories.adding import NEIGHBOURS, SHORT_CHARS


class PastTurn(NamedTuple):
    """A turn of a past session: why the gate refuses it (None: it does not), and the id of the turn that it answers.

    `asked`: it answers a question in few words, which say something only there.
    """

    turn: NewTurn
    key: bytes
    importance: float
    refused: str | None
    neighbours: str
    answers: str | None
    asked: bool


def plan(turns: Sequence[NewTurn]) -> list[PastTurn]:
    """Return what is known of each turn of a session, in the order in which they were said."""
    planned: list[PastTurn] = []
    last: NewTurn | None = None  # the one before that is kept
    for turn in turns:
        refused = gate.check(turn.content)
        asked = last is not None and _is_short_answer(last, turn)
        if asked and refused in gate.QUIET:
            refused = None
        answers = last.id if last is not None and (asked or _answers(last, turn)) else None
        importance = 0.0 if refused else rating.importance(turn.content)
        planned.append(PastTurn(turn, content_hash(turn.content), importance, refused, "", answers, asked))
        last = last if refused else turn
    return _add_neighbours(planned)


def _is_short_answer(said: NewTurn, turn: NewTurn) -> bool:
    is_asked = said.role != turn.role and asking.is_question(said.content) and gate.is_short_answer(turn.content)
    return is_asked and _is_recent(said, turn)


def _answers(said: NewTurn, turn: NewTurn) -> bool:
    """Return whether a turn answers the one before it: a question, or to the assistant whatever was said."""
    if said.role == turn.role or asking.only_asks(turn.content):
        return False
    return (turn.role == "assistant" or asking.is_question(said.content)) and _is_recent(said, turn)


def _is_recent(said: NewTurn, turn: NewTurn) -> bool:
    return 0 <= (turn.created_at or 0.0) - (said.created_at or 0.0) <= PAIR_WITHIN_S


def _add_neighbours(planned: Sequence[PastTurn]) -> list[PastTurn]:
    """Give short turns the short ones around them, by which they are found as well."""
    kept = [one for one in planned if not one.refused]
    texts = [one.turn.content for one in kept]
    near = {id(one): "\n".join(_list_near(texts, at)) for at, one in enumerate(kept)}
    return [one._replace(neighbours=near.get(id(one), "")) for one in planned]


def _list_near(texts: Sequence[str], at: int) -> Iterator[str]:
    if len(texts[at]) > SHORT_CHARS:
        return
    before = takewhile(_is_short, texts[max(0, at - NEIGHBOURS) : at][::-1])
    yield from list(before)[::-1]
    yield from takewhile(_is_short, texts[at + 1 : at + 1 + NEIGHBOURS])


def _is_short(text: str) -> bool:
    return len(text) <= SHORT_CHARS

"""What is known of the turns of a session by themselves: what the gate says, importance, neighbours, what answers what.

As `conversations/observing` decides it turn by turn; here the whole session is there. Pure functions.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from memoryd.client.credentials.private import WHOLE
from memoryd.client.protocol.backfill import PastTurn
from memoryd.daemon.conversations import gate, pairing
from memoryd.daemon.conversations.observing import PAUSED, PRIVATE
from memoryd.daemon.core.checks import content_hash
from memoryd.daemon.language import rating
from memoryd.daemon.store.contexts import NEIGHBOURS, SHORT_CHARS
from memoryd.daemon.store.turns import RecentTurn


class PlannedTurn(NamedTuple):
    """A turn of a past session: why it is refused (None: it is not), and the id of the turn that it answers.

    `asked`: it answers a question in few words, which say something only there.
    """

    turn: PastTurn
    key: bytes
    importance: float
    refused: str | None
    neighbours: str
    answers: str | None
    asked: bool


def plan(turns: Iterable[PastTurn], is_paused: Callable[[str, float], bool]) -> list[PlannedTurn]:
    """Return what is known of each turn of a session, in the order in which they were said.

    `is_paused` says whether what was said in a folder at a time is not observed.
    """
    planned: list[PlannedTurn] = []
    said = _SaidBefore()
    unheard: str | None = None  # why the last prompt was not heard: its answer is left out, too
    for turn in turns:
        at = turn.created_at or 0.0
        own = PAUSED if is_paused(turn.folder, at) else PRIVATE if turn.content == WHOLE else None
        unheard = own if turn.role == "user" else unheard
        refused = own or unheard or gate.check(turn.content)
        asked = None if turn.to_program else pairing.find_asked(said.turns[-1] if said.turns else None, turn, at)
        if asked and refused in gate.QUIET:
            refused = None
        if refused:
            said.skip(turn.role)
            planned.append(PlannedTurn(turn, b"", 0.0, refused, "", None, False))
            continue
        answered = asked or said.find_answered(turn, at)
        key, importance = content_hash(turn.content), rating.importance(turn.content)
        if turn.to_program:
            importance = min(importance, rating.SMALL_TALK)
        planned.append(PlannedTurn(turn, key, importance, None, "", answered and answered.key, asked is not None))
        said.keep(turn, at, answered)
    return _add_neighbours(planned)


class _SaidBefore:
    """What was said in a session up to a turn."""

    def __init__(self) -> None:
        self.turns: list[RecentTurn] = []
        self._request: RecentTurn | None = None  # what the user said last, until it is answered
        self._skips: dict[str, int] = {}  # by role: how many turns were said before the last one that was refused

    def keep(self, turn: PastTurn, at: float, answered: RecentTurn | None) -> None:
        """Note a turn that is kept."""
        text = turn.content
        own = RecentTurn(str(turn.id), at, turn.role, turn.speaker, text[:60], text[-100:])
        self.turns.append(own)
        if turn.role == "user":
            self._request = own
        elif answered is self._request:
            self._request = None

    def skip(self, role: str) -> None:
        """Note that a turn of a role is not kept: what follows may answer it."""
        self._skips[role] = len(self.turns)

    def find_answered(self, turn: PastTurn, at: float) -> RecentTurn | None:
        """Return the turn that another one answers: a question, else for the assistant what the user said last."""
        if turn.to_program:
            return None
        asked = pairing.find_question(self.turns[: -pairing.LOOK_BACK - 1 : -1], turn, at)
        if asked is not None and self._is_last_heard(asked):
            return asked
        request = self._request
        if turn.role != "assistant" or request is None or not pairing.can_answer(turn):
            return None
        return request if pairing.is_recent(request, at) and self._is_last_heard(request) else None

    def _is_last_heard(self, asked: RecentTurn) -> bool:
        """Return whether nothing that its speaker said after a turn was refused."""
        skipped = self._skips.get(asked.role)
        return skipped is None or asked not in self.turns[:skipped]


def _add_neighbours(planned: Sequence[PlannedTurn]) -> list[PlannedTurn]:
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

"""Plan a session's turns as far as that needs no database: gate, importance, neighbours, answers.

The rules are those of `conversations/observing`, which sees one turn at a time. Pure functions.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from memoryd.client.credentials.private import WHOLE
from memoryd.client.protocol.backfill import PastTurn
from memoryd.daemon.conversations import gate, pairing
from memoryd.daemon.conversations.observing import PAUSED, PRIVATE
from memoryd.daemon.core.limits import content_hash
from memoryd.daemon.language import rating
from memoryd.daemon.store.contexts import NEIGHBOURS, SHORT_CHARS
from memoryd.daemon.store.turns import RecentTurn


class PlannedTurn(NamedTuple):
    """A turn of a past session, the reason if it is refused (None: it is accepted), and the id of the turn it answers.

    `asked`: it is the short answer to the question just before it.
    """

    turn: PastTurn
    key: bytes
    importance: float
    refused: str | None
    neighbours: str
    answers: str | None
    asked: bool


def plan(turns: Iterable[PastTurn], is_paused: Callable[[str, float], bool]) -> list[PlannedTurn]:
    """Return the plan for each turn of a session, in the order of the session.

    `is_paused` returns whether recording was paused in a folder at a time.
    """
    planned: list[PlannedTurn] = []
    before = _EarlierTurns()
    prompt_ignored: str | None = None  # why the last prompt is ignored: its answer is ignored as well
    for turn in turns:
        at = turn.created_at or 0.0
        own = PAUSED if is_paused(turn.folder, at) else PRIVATE if turn.content == WHOLE else None
        prompt_ignored = own if turn.role == "user" else prompt_ignored
        refused = own or prompt_ignored or gate.check(turn.content)
        asked = None if turn.to_program else pairing.find_asked(before.turns[-1] if before.turns else None, turn, at)
        if asked and refused in gate.QUIET:
            refused = None
        if refused:
            before.skip(turn.role)
            planned.append(PlannedTurn(turn, b"", 0.0, refused, "", None, False))
            continue
        answered = asked or before.find_answered(turn, at)
        key, importance = content_hash(turn.content), rating.importance(turn.content)
        if turn.to_program:
            importance = min(importance, rating.SMALL_TALK)
        planned.append(PlannedTurn(turn, key, importance, None, "", answered and answered.key, asked is not None))
        before.keep(turn, at, answered)
    # Short turns get the text of the short turns around them, so that searches find them by it.
    kept = [one for one in planned if not one.refused]
    texts = [one.turn.content for one in kept]
    near = {id(one): "\n".join(_list_near(texts, at)) for at, one in enumerate(kept)}
    return [one._replace(neighbours=near.get(id(one), "")) for one in planned]


class _EarlierTurns:
    """The turns of a session before the current one."""

    def __init__(self) -> None:
        self.turns: list[RecentTurn] = []
        self._prompt: RecentTurn | None = None  # the user's last turn, until it is answered
        self._skips: dict[str, int] = {}  # by role: how many turns precede the last refused one

    def keep(self, turn: PastTurn, at: float, answered: RecentTurn | None) -> None:
        """Add an accepted turn."""
        text = turn.content
        own = RecentTurn(str(turn.id), at, turn.role, turn.speaker, text[:60], text[-100:])
        self.turns.append(own)
        if turn.role == "user":
            self._prompt = own
        elif answered is self._prompt:
            self._prompt = None

    def skip(self, role: str) -> None:
        """Note that a turn of a role was refused: the following turn may answer that one."""
        self._skips[role] = len(self.turns)

    def find_answered(self, turn: PastTurn, at: float) -> RecentTurn | None:
        """Return the turn that this one answers: a question or, for the assistant, the user's last prompt."""
        if turn.to_program:
            return None
        asked = pairing.find_question(self.turns[: -pairing.LOOK_BACK - 1 : -1], turn, at)
        if asked is not None and self._is_speakers_last(asked):
            return asked
        prompt = self._prompt
        if turn.role != "assistant" or prompt is None or not pairing.can_answer(turn):
            return None
        return prompt if pairing.is_recent(prompt, at) and self._is_speakers_last(prompt) else None

    def _is_speakers_last(self, asked: RecentTurn) -> bool:
        """Return whether no later turn of its speaker was refused, which the answer could belong to instead."""
        skipped = self._skips.get(asked.role)
        return skipped is None or asked not in self.turns[:skipped]


def _list_near(texts: Sequence[str], at: int) -> Iterator[str]:
    if len(texts[at]) > SHORT_CHARS:
        return
    before = takewhile(_is_short, texts[max(0, at - NEIGHBOURS) : at][::-1])
    yield from list(before)[::-1]
    yield from takewhile(_is_short, texts[at + 1 : at + 1 + NEIGHBOURS])


def _is_short(text: str) -> bool:
    return len(text) <= SHORT_CHARS

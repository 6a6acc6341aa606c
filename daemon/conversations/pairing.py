"""Which turn another one answers: by what was said before it in its session. Pure functions."""

from collections.abc import Iterable
from itertools import takewhile

from memoryd.client.protocol import NewTurn
from memoryd.daemon.conversations import gate
from memoryd.daemon.language import asking
from memoryd.daemon.store.turns import RecentTurn

WITHIN_S = 900.0  # an answer belongs to a question at most so much older
LOOK_BACK = 8  # turns
_MORE = 2  # turns of one's own between a question and a further answer
_FEW_CHARS = 20  # of a reply that says little without what it replies to


def find_asked(last: RecentTurn | None, turn: NewTurn, at: float) -> RecentTurn | None:
    """Return the question that a short turn follows directly; of users without a name each may be another one."""
    if last is None or turn.role == "tool" or not gate.is_short_answer(turn.content):
        return None
    if not (asking.is_question(last.end) and is_recent(last, at)):
        return None
    own = _name_speaker(turn)
    return None if own == _find_speaker(last) and own != ("user", "") else last


def find_question(latest: Iterable[RecentTurn], turn: NewTurn, at: float) -> RecentTurn | None:
    """Return the question with which somebody else spoke last, or what a reply of a few words replies to.

    It does not matter who asks and who answers, and a first answer may have been said already. `latest` are the last
    turns of the session, at most `LOOK_BACK`, the latest first.
    """
    if not can_answer(turn):
        return None
    said = [one for one in latest if one.role != "tool"]
    own = _name_speaker(turn)
    mine = list(takewhile(lambda one: _find_speaker(one) == own, said))
    theirs = list(takewhile(lambda one: _find_speaker(one) != own, said[len(mine) :]))
    asked = next((one for one in theirs if asking.is_question(one.end)), None) if len(mine) <= _MORE else None
    is_short = len(turn.content) - len(asking.find_label(turn.content)) <= _FEW_CHARS
    if asked is None and not mine and is_short:
        asked = next(iter(theirs), None)
    return asked if asked is not None and is_recent(asked, at) else None


def can_answer(turn: NewTurn) -> bool:
    """Return whether a turn may answer another one: not what a tool says, nor what only asks."""
    return turn.role != "tool" and not asking.only_asks(turn.content)


def is_recent(said: RecentTurn, at: float) -> bool:
    """Return whether a turn is not older than what is answered at a time."""
    return 0 <= at - said.at <= WITHIN_S


def _name_speaker(turn: NewTurn) -> tuple[str, str]:
    return turn.role, turn.speaker or _find_label(turn.role, turn.content)


def _find_speaker(said: RecentTurn) -> tuple[str, str]:
    return said.role, said.speaker or _find_label(said.role, said.beginning)


def _find_label(role: str, text: str) -> str:
    """Return the name with which a text begins; what an assistant begins with ("Done: …") is none."""
    return "" if role == "assistant" else asking.find_label(text)

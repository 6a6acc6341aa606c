"""Which turn another one answers: by what was said before it in its session. Pure functions."""

from collections.abc import Iterable, Sequence
from itertools import takewhile

from memoryd.client.protocol import NewTurn
from memoryd.daemon.conversations import gate
from memoryd.daemon.language import questions
from memoryd.daemon.language.sentences import ends_with_question
from memoryd.daemon.store.turns import RecentTurn

WITHIN_S = 900.0  # an answer belongs to a question at most so much older
LOOK_BACK = 8  # turns
_MORE = 2  # turns of one's own between a question and a further answer
_FEW_CHARS = 20  # of a reply that says little without what it replies to


def find_asked(last: RecentTurn | None, turn: NewTurn, at: float) -> RecentTurn | None:
    """Return the question of somebody else that a short turn follows directly; users without a name are one person."""
    if last is None or not gate.is_short_answer(turn.content) or not can_answer(turn):
        return None
    if not (ends_with_question(last.end) and is_recent(last, at)):
        return None
    named = _are_named([last], turn)
    return last if _name_speaker(turn, named) != _find_speaker(last, named) else None


def find_question(latest: Iterable[RecentTurn], turn: NewTurn, at: float) -> RecentTurn | None:
    """Return the question with which somebody else spoke last, or what a reply of a few words replies to.

    It does not matter who asks and who answers, and a first answer may have been said already. Only an assistant
    answers the last prompt alone: the one before it was broken off. What it says without a question has no answer: the
    next prompt follows. `latest` are the last turns of the session, at most `LOOK_BACK`, the latest first.
    """
    if not can_answer(turn):
        return None
    said = [one for one in latest if one.role != "tool"]
    named = _are_named(said, turn)
    own = _name_speaker(turn, named)
    mine = list(takewhile(lambda one: _find_speaker(one, named) == own, said))
    theirs = list(takewhile(lambda one: _find_speaker(one, named) != own, said[len(mine) :]))
    if turn.role == "assistant" and not named:
        theirs = theirs[:1]
    asked = next((one for one in theirs if ends_with_question(one.end)), None) if len(mine) <= _MORE else None
    is_short = len(turn.content) - len(questions.find_label(turn.content)) <= _FEW_CHARS
    if asked is None and not mine and is_short:
        asked = next((one for one in theirs[:1] if one.role != "assistant" or one.speaker), None)
    return asked if asked is not None and is_recent(asked, at) else None


def can_answer(turn: NewTurn) -> bool:
    """Return whether a turn may answer another one: not what a tool says, nor what asks or does not know."""
    return turn.role != "tool" and not questions.answers_nothing(turn.content)


def is_recent(said: RecentTurn, at: float) -> bool:
    """Return whether a turn is not older than what is answered at a time."""
    return 0 <= at - said.at <= WITHIN_S


def _are_named(said: Sequence[RecentTurn], turn: NewTurn) -> bool:
    """Return whether users' turns begin with who says them (`Ada: …`): most do, elsewhere it may be any word."""
    texts = [one.beginning for one in said if one.role == "user"] + [turn.content] * (turn.role == "user")
    return 2 * sum(bool(questions.find_label(text)) for text in texts) > len(texts)


def _name_speaker(turn: NewTurn, named: bool) -> tuple[str, str]:
    return turn.role, turn.speaker or _find_label(turn.role, turn.content, named)


def _find_speaker(said: RecentTurn, named: bool) -> tuple[str, str]:
    return said.role, said.speaker or _find_label(said.role, said.beginning, named)


def _find_label(role: str, text: str, named: bool) -> str:
    """Return the name with which a text begins; what an assistant begins with ("Done: …") is none."""
    return questions.find_label(text) if named and role == "user" else ""

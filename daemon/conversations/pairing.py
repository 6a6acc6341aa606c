"""Find the earlier turn of the session that a turn answers. Pure functions."""

from collections.abc import Iterable, Sequence
from itertools import takewhile

from memoryd.client.protocol import NewTurn
from memoryd.daemon.conversations import gate
from memoryd.daemon.language import questions
from memoryd.daemon.language.sentences import ends_with_question
from memoryd.daemon.store.turns import RecentTurn

WITHIN_S = 900.0  # the longest time between a question and its answer
LOOK_BACK = 8  # turns
_MAX_OWN_TURNS = 2  # of the same speaker, between a question and a further answer to it
_SHORT_REPLY_CHARS = 20  # a reply of at most this length means little without the turn that it replies to


def find_asked(last: RecentTurn | None, turn: NewTurn, at: float) -> RecentTurn | None:
    """Return the question of another speaker that a short turn directly follows.

    All users without a name count as the same speaker.
    """
    if last is None or not gate.is_short_answer(turn.content) or not can_answer(turn):
        return None
    if not (ends_with_question(last.end) and is_recent(last, at)):
        return None
    named = _are_named([last], turn)
    return last if _name_speaker(turn, named) != _find_speaker(last, named) else None


def find_question(latest: Iterable[RecentTurn], turn: NewTurn, at: float) -> RecentTurn | None:
    """Return the last question of another speaker or, for a very short reply, the turn that it replies to.

    Users and assistants may both ask and answer, and a question may have several answers. An assistant answers only the
    last prompt, since an earlier one was interrupted. An assistant's turn without a question is never answered: what
    follows is the next prompt. `latest` holds the last turns of the session, at most `LOOK_BACK`, the latest first.
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
    asked = next((one for one in theirs if ends_with_question(one.end)), None) if len(mine) <= _MAX_OWN_TURNS else None
    is_short = len(turn.content) - len(questions.find_label(turn.content)) <= _SHORT_REPLY_CHARS
    if asked is None and not mine and is_short:
        asked = next((one for one in theirs[:1] if one.role != "assistant" or one.speaker), None)
    return asked if asked is not None and is_recent(asked, at) else None


def can_answer(turn: NewTurn) -> bool:
    """Return whether a turn may be an answer: not a tool's output, a question or "I don't know"."""
    return turn.role != "tool" and not questions.answers_nothing(turn.content)


def is_recent(said: RecentTurn, at: float) -> bool:
    """Return whether a turn is recent enough to be answered at `at`."""
    return 0 <= at - said.at <= WITHIN_S


def _are_named(said: Sequence[RecentTurn], turn: NewTurn) -> bool:
    """Return whether most users' turns begin with a speaker's name (`Ada: …`); otherwise such words are no names."""
    texts = [one.beginning for one in said if one.role == "user"] + [turn.content] * (turn.role == "user")
    return 2 * sum(bool(questions.find_label(text)) for text in texts) > len(texts)


def _name_speaker(turn: NewTurn, named: bool) -> tuple[str, str]:
    return turn.role, turn.speaker or _find_label(turn.role, turn.content, named)


def _find_speaker(said: RecentTurn, named: bool) -> tuple[str, str]:
    return said.role, said.speaker or _find_label(said.role, said.beginning, named)


def _find_label(role: str, text: str, named: bool) -> str:
    """Return the speaker's name that a user's text begins with; an assistant's first word ("Done: …") is no name."""
    return questions.find_label(text) if named and role == "user" else ""

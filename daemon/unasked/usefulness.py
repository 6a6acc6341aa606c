"""Evaluate the lines that sessions were shown automatically, by project and month, without labelled data.

The sources are the record of what each session was given, the following turns, and the history of the memories. A line
shown with a prompt is compared with the answers to that prompt, a line of a start with all answers of the session. Only
a line's rare words count, which occur in few answers of the project.

- *used*: an answer has rare words of the line that had not occurred in the session before.
- *said again*: the person later states something with half of the line's rare words, although it was shown.
- *corrected*: a turn of the session changes the memory (`later`), or it was replaced, changed or deleted during the
  session or shortly after.

The last two are misses. Lines without a following turn are left out.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from memoryd.client.patterns import compile_late
from memoryd.client.protocol import MeasureUsefulness, UsefulnessMonth, UsefulnessReport
from memoryd.daemon.agreement import claims
from memoryd.daemon.context.tables import given
from memoryd.daemon.conversations.tables import sessions
from memoryd.daemon.core.core import Core
from memoryd.daemon.language.sentences import READ_CHARS
from memoryd.daemon.registry import Parts, handles
from memoryd.daemon.store import history, later, rows
from memoryd.daemon.store.namespaces import check

_AFTER_S = 3600.0  # a correction within this time after the last turn is attributed to the session
_COMMON_ANSWERS, _COMMON_SHARE = 3, 0.05  # a word in more answers of the project than the larger of these is common
_USED_WORDS = 2
_SAID_SHARE = 0.5  # of the rare words of a line
_NUMBER = compile_late(r"\d+(?:[.,:/]\d+)*")
_PERSON, _AGENT = "user", "assistant"


class SaidTurn:
    """A turn of a session; `at` is in UTC seconds."""

    def __init__(self, id: str, role: str, at: float, text: str) -> None:
        self.id, self.role, self.at, self._text = id, role, at, text[:READ_CHARS]

    @cached_property
    def words(self) -> frozenset[str]:
        """The content words and numbers."""
        return find_words(self._text)

    @cached_property
    def stated(self) -> frozenset[str]:
        """The content words and numbers of its statements, not of questions and orders."""
        return find_words(" ".join(claims.list_statements(self.role, self._text)))


class ToldLine(NamedTuple):
    """A line that a session was shown, when its memory was last changed (0: never), and the turns that change it."""

    id: str
    at: float
    text: str = ""  # empty if it was deleted since
    changed_at: float = 0.0
    changed_by: frozenset[str] = frozenset()


class Verdict(NamedTuple):
    """The evaluation of a line."""

    used: bool
    said_again: bool
    corrected: bool


@handles(MeasureUsefulness)
def measure(core: Core, call: MeasureUsefulness) -> "Parts[UsefulnessReport]":
    """Count the evaluations of lines, project by project."""
    names = core.store.namespaces
    reached = names.reach(check(call.namespace), call.reach)
    with core.store.reading() as connection:
        listed = list(given.list_given(connection, call.since or 0.0))
    projects: dict[str, dict[str, list[ToldLine]]] = defaultdict(lambda: defaultdict(list))
    for key, id, at in listed:
        place, _, session = key.partition("\n")
        if reached is None or names.find_number(place) in reached:
            projects[place][session].append(ToldLine(id, at))
    months: list[UsefulnessMonth] = []
    for place in sorted(projects):
        said = _read_turns(core, place, projects[place])
        yield
        told = _read_texts(core, projects[place], reached)
        yield
        months += _count(place, told, said)
        yield
    return UsefulnessReport(months=sorted(months, key=lambda one: (one.month, one.namespace)))


def _read_turns(core: Core, place: str, named: Iterable[str]) -> dict[str, list[SaidTurn]]:
    """Return the turns of a project's sessions in order, whether or not they have left L0."""
    said: dict[str, list[SaidTurn]] = {session: [] for session in named}
    number = core.store.namespaces.find_number(place)
    if number is None:
        return said
    with core.store.reading() as connection:
        for id, session, role, at, text in sessions.find_said_in(connection, number, list(said), READ_CHARS):
            said[session].append(SaidTurn(id, role, at, text))
    for turn in reversed(core.active.list_turns(frozenset([number]))):
        if turn.session in said:
            said[turn.session].append(SaidTurn(turn.key, turn.role, turn.created_at, turn.content))
    return {session: sorted(turns, key=lambda turn: turn.at) for session, turns in said.items()}


def _read_texts(
    core: Core, told: dict[str, list[ToldLine]], reached: frozenset[int] | None
) -> dict[str, list[ToldLine]]:
    """Return the lines with their texts and changes; turns of L0, which were not saved, are left out."""
    ids = sorted({line.id for line in chain.from_iterable(told.values())})
    with core.store.reading() as connection:
        known = rows.read_ids(connection, ids)
        changed = history.find_changes(connection, ids)
        statements = later.list_statements(connection, ids)
    texts = {id: row.content for id, row in known.items() if reached is None or row.namespace in reached}
    return {
        session: [
            line._replace(
                text=texts.get(line.id, ""),
                changed_at=changed.get(line.id, 0.0),
                changed_by=frozenset(statements.get(line.id, ())),
            )
            for line in lines
            if line.id in texts or line.id in changed
        ]
        for session, lines in told.items()
    }


def _count(place: str, told: dict[str, list[ToldLine]], said: dict[str, list[SaidTurn]]) -> list[UsefulnessMonth]:
    """Return the report's rows for a project."""
    common = find_common(chain.from_iterable(said.values()))
    verdicts: dict[str, list[Verdict]] = defaultdict(list)
    named: dict[str, set[str]] = defaultdict(set)
    for session, lines in told.items():
        for line in lines:
            if (verdict := judge(line, said[session], common)) is not None:
                month = datetime.fromtimestamp(line.at, UTC).strftime("%Y-%m")
                verdicts[month].append(verdict)
                named[month].add(session)
    return [
        UsefulnessMonth(
            namespace=place,
            month=month,
            sessions=len(named[month]),
            told=len(found),
            used=sum(one.used for one in found),
            said_again=sum(one.said_again for one in found),
            corrected=sum(one.corrected for one in found),
        )
        for month, found in verdicts.items()
    ]


def find_words(text: str) -> frozenset[str]:
    """Return the stems of a text's content words, and its numbers."""
    return claims.find_stems(text).union(_NUMBER.findall(text))


def find_common(turns: Iterable[SaidTurn]) -> frozenset[str]:
    """Return the words that are not rare in a project."""
    answers = [turn.words for turn in turns if turn.role == _AGENT]
    most = max(_COMMON_ANSWERS, _COMMON_SHARE * len(answers))
    return frozenset(word for word, count in Counter(chain.from_iterable(answers)).items() if count > most)


def judge(line: ToldLine, turns: Sequence[SaidTurn], common: frozenset[str]) -> Verdict | None:
    """Evaluate a line by the turns of its session, which are in order; None if no turn follows it."""
    before = [turn for turn in turns if turn.at <= line.at]
    following = turns[len(before) :]
    if not following:
        return None
    words = find_words(line.text) - common
    least = max(_USED_WORDS, _SAID_SHARE * len(words))
    return Verdict(
        used=_is_used(words, before, following),
        said_again=any(turn.role == _PERSON and len(turn.stated & words) >= least for turn in following),
        corrected=line.at < line.changed_at <= following[-1].at + _AFTER_S
        or any(turn.id in line.changed_by for turn in (*before[-1:], *following)),
    )


def _is_used(words: frozenset[str], before: Sequence[SaidTurn], following: Sequence[SaidTurn]) -> bool:
    """Return whether an answer has new rare words of a line; for a line with a prompt, an answer to that prompt.

    One word is enough if the prompt is about the line.
    """
    said = set(chain.from_iterable(turn.words for turn in before))
    least = 1 if before else _USED_WORDS
    for turn in following:
        if turn.role == _PERSON:
            if before:
                return False
            least = 1 if len(turn.words & words) >= _USED_WORDS else _USED_WORDS
        elif turn.role == _AGENT and len(turn.words & words - said) >= least:
            return True
        said |= turn.words
    return False

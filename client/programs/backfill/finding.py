"""Find past sessions: read all files once, keep the figures of each session and write its turns to a spool file.

A session that continues another one (a fork, a resume in a new file) repeats the turns of that one. A turn counts as a
copy, and is left out, if a turn of another session has the same id, or if the session equals the one that it was forked
from up to and including this turn.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import IO, NamedTuple

import msgspec

from memoryd.client.programs.backfill.placing import find_place, is_temporary
from memoryd.client.programs.sessions.agents import AGENTS
from memoryd.client.programs.sessions.building import Session, Utterance

UNPLACED = "turns of sessions whose folder is not known (--namespace takes them in)"
EARLIER = "turns before --since"
TEMPORARY = "turns in temporary folders (--temporary takes them in)"
TAKEN_BACK = "taken back by the person"
COPIES = "copies of what was said in another session"
AUTOMATED = "turns of sessions that a program ran (--automated takes them in)"
_FIRST_WORDS = 80  # characters

SpoolPlace = tuple[int, int]  # offset and size


class SessionQuery(NamedTuple):
    """Selects the sessions to import: by agent, by time, and by project (its top folder).

    All are stored in `namespace`, or each in the namespace of its folder if that is None. `automated` includes sessions
    that a program ran, `temporary` includes sessions in temporary folders.
    """

    agents: Sequence[str]
    since: float | None = None
    project: str = ""
    namespace: str | None = None
    automated: bool = False
    temporary: bool = False


class FoundSession(NamedTuple):
    """A session with turns to import.

    `place` is where these turns are in the spool. `left_out` counts the other turns by the reason to leave them out.
    `roots` maps the folder of each turn to the top folder of its project.
    """

    agent: str
    name: str
    folder: str
    turns: int
    size: int  # bytes of their text
    first: float
    last: float
    left_out: Counter[str]
    roots: dict[str, str]
    place: SpoolPlace


class AutomatedSession(NamedTuple):
    """A session that is left out because a program ran it; `why` is the evidence, `begins` its first words."""

    agent: str
    name: str
    why: str
    turns: int
    begins: str


class FoundSessions(NamedTuple):
    """The result of `find`.

    `left_out` counts, by agent and reason, the turns of sessions that have none to import. `problems` names unreadable
    files. `unknown` counts kinds of entries that the readers do not know, with the version of the host.
    """

    sessions: list[FoundSession]
    left_out: dict[str, Counter[str]]
    problems: list[str]
    automated: list[AutomatedSession]
    unknown: Counter[str]


class _ReadSession(NamedTuple):
    """A session whose utterances are in the spool; `marks` has the id of each, and a hash of its role and text."""

    session: Session
    place: SpoolPlace
    marks: list[tuple[str, int]]
    last: float


def find(wanted: SessionQuery, spool: IO[bytes]) -> FoundSessions:
    """Read all files of the agents, and write the turns that `wanted` selects to the spool."""
    found = FoundSessions([], {agent: Counter() for agent in wanted.agents}, [], [], Counter())
    for name in wanted.agents:
        agent = AGENTS[name]
        found.problems.extend(f"{folder} cannot be read" for folder in agent.list_closed())
        read: list[_ReadSession] = []
        for path in agent.list_files():
            try:
                read += [_move_to_spool(session, spool) for session in agent.read(path)]
            except Exception as error:  # a broken file must not stop the run
                found.problems.append(f"{path} cannot be read: {error}")
        copies = _find_copies(read)
        for number, one in enumerate(read):
            for kind, times in one.session.unknown.items():
                found.unknown[f"{agent.title} {one.session.version}".strip() + f": {kind}"] += times
            one.session.utterances = read_turns(spool, one.place)
            _add_session(found, wanted, name, one.session, copies[number], spool)
    return found


def _move_to_spool(session: Session, spool: IO[bytes]) -> _ReadSession:
    """Move the utterances of a session to the spool."""
    said, session.utterances = session.utterances, []
    marks = [(turn.id, hash((turn.role, turn.text))) for turn in said]
    last = max((turn.at for turn in said), default=0.0)
    return _ReadSession(session, _write(spool, said), marks, last)


def _find_copies(read: Sequence[_ReadSession]) -> list[set[int]]:
    """Return, for each session, the indexes of utterances that were copied from another session or repeat an id."""
    copies: list[set[int]] = [set() for _ in read]
    by_name = {one.session.name: one for one in read}
    numbers = sorted(
        range(len(read)), key=lambda number: (read[number].session.forked_from in by_name, read[number].last)
    )
    seen: set[str] = set()
    for number in numbers:
        one = read[number]
        origin = by_name.get(one.session.forked_from)
        pairs = zip(one.marks, origin.marks if origin else (), strict=False)
        copies[number].update(at for at, _ in enumerate(takewhile(lambda pair: pair[0][1] == pair[1][1], pairs)))
        for at, (id, _) in enumerate(one.marks):
            if id in seen:
                copies[number].add(at)
            seen.add(id)
    return copies


def _add_session(
    found: FoundSessions, wanted: SessionQuery, agent: str, session: Session, copies: set[int], spool: IO[bytes]
) -> None:
    own = [turn for number, turn in enumerate(session.utterances) if number not in copies]
    session.left_out[COPIES] += len(copies)
    roots = {folder: find_place(folder, session) for folder in {turn.folder for turn in own}}
    turns = select(session, own, wanted, roots)
    if session.automated and not wanted.automated and turns:
        begins = " ".join(turns[0].text.split())[:_FIRST_WORDS]
        found.automated.append(AutomatedSession(agent, session.name, session.automated, len(turns), begins))
        session.left_out[AUTOMATED] += len(turns)
        turns = []
    if not turns:
        found.left_out[agent].update(session.left_out)
        return
    times = [turn.at for turn in turns]
    size = sum(len(turn.content.encode()) for turn in turns)
    figures = agent, session.name, turns[0].folder, len(turns), size, min(times), max(times)
    found.sessions.append(FoundSession(*figures, session.left_out, roots, _write(spool, turns)))


def select(session: Session, said: Sequence[Utterance], wanted: SessionQuery, roots: dict[str, str]) -> list[Utterance]:
    """Return the turns that `wanted` selects, and count the others, except in sessions of other projects."""
    turns = [turn for turn in said if not turn.taken_back]
    session.left_out[TAKEN_BACK] += len(said) - len(turns)
    if wanted.project:
        turns = [turn for turn in turns if roots[turn.folder] == wanted.project]
        if not turns:
            session.left_out.clear()
    elif wanted.namespace is None and not wanted.temporary:
        lasting = [turn for turn in turns if not is_temporary(roots[turn.folder])]
        session.left_out[TEMPORARY] += len(turns) - len(lasting)
        turns = lasting
    if wanted.since is not None:
        late = [turn for turn in turns if turn.at >= wanted.since]
        session.left_out[EARLIER] += len(turns) - len(late)
        turns = late
    if wanted.namespace is None and (lost := sum(not roots[turn.folder] for turn in turns)):
        session.left_out[UNPLACED] += lost
        turns = [turn for turn in turns if roots[turn.folder]]
    return turns


def _write(spool: IO[bytes], turns: Iterable[Utterance]) -> SpoolPlace:
    at = spool.seek(0, 2)
    return at, spool.write(msgspec.msgpack.encode(list(turns)))


def read_turns(spool: IO[bytes], place: SpoolPlace) -> list[Utterance]:
    """Read turns from the spool."""
    at, size = place
    spool.seek(at)
    return msgspec.msgpack.decode(spool.read(size), type=list[Utterance])

"""Which past sessions there are: all files are read once; of each session figures stay, its turns are on disk."""

import tempfile
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import IO, NamedTuple

import msgspec

from memoryd.client.errors import MemorydError
from memoryd.client.programs.sessions.agents import AGENTS
from memoryd.client.programs.sessions.building import Session, Utterance
from memoryd.client.projects.project import project_namespace, project_root

UNPLACED = "turns of sessions whose folder is not known (--namespace takes them in)"
EARLIER = "turns before --since"
TEMPORARY = "turns of temporary folders (--temporary takes them in)"
TAKEN_BACK = "taken back"
AUTOMATED = "turns of automated sessions (--automated takes them in)"


class SessionQuery(NamedTuple):
    """What is wanted: of which agents, since when, of which project (its top folder), where to (None: by folder).

    `automated`: sessions that a program ran, too; `temporary`: those of temporary folders.
    """

    agents: Sequence[str]
    since: float | None = None
    project: str = ""
    namespace: str | None = None
    automated: bool = False
    temporary: bool = False


class FoundSession(NamedTuple):
    """A session that has turns to take in: its figures, what is left out, and where in the spool the turns are."""

    agent: str
    name: str
    folder: str
    turns: int
    size: int  # bytes of their text
    first: float
    last: float
    left_out: Counter[str]
    place: tuple[int, int]


class FoundSessions(NamedTuple):
    """What was found: sessions, what was left out of those that have nothing to take in, files that nobody can read."""

    sessions: list[FoundSession]
    left_out: dict[str, Counter[str]]
    problems: list[str]


def find(wanted: SessionQuery, spool: IO[bytes]) -> FoundSessions:
    """Read all files of some agents; the turns that are wanted are written into the spool."""
    found = FoundSessions([], {agent: Counter() for agent in wanted.agents}, [])
    for agent in wanted.agents:
        for path in AGENTS[agent].list_files():
            try:
                for session in AGENTS[agent].read(path):
                    _note(found, wanted, agent, session, spool)
            except (OSError, MemorydError) as error:
                found.problems.append(f"{path} cannot be read: {error}")
    return found


def _note(found: FoundSessions, wanted: SessionQuery, agent: str, session: Session, spool: IO[bytes]) -> None:
    turns = select(session, wanted)
    if not turns:
        found.left_out[agent].update(session.left_out)
        return
    times = [turn.at for turn in turns]
    size = sum(len(turn.content.encode()) for turn in turns)
    place = spool.tell(), spool.write(msgspec.msgpack.encode(turns))
    figures = agent, session.name, turns[0].folder, len(turns), size, min(times), max(times)
    found.sessions.append(FoundSession(*figures, session.left_out, place))


def select(session: Session, wanted: SessionQuery) -> list[Utterance]:
    """Return the turns of a session that are wanted; those of a project that is not meant are not counted either."""
    turns = [turn for turn in session.utterances if not turn.taken_back]
    session.left_out[TAKEN_BACK] += len(session.utterances) - len(turns)
    if session.automated and not wanted.automated:
        session.left_out[AUTOMATED] += len(turns)
        turns = []
    if not wanted.temporary and wanted.namespace is None:
        lasting = [turn for turn in turns if not is_temporary(turn.folder)]
        session.left_out[TEMPORARY] += len(turns) - len(lasting)
        turns = lasting
    if wanted.project:
        turns = [turn for turn in turns if turn.folder and find_root(turn.folder) == wanted.project]
        if not turns:
            session.left_out.clear()
    if wanted.since is not None:
        late = [turn for turn in turns if turn.at >= wanted.since]
        session.left_out[EARLIER] += len(turns) - len(late)
        turns = late
    if wanted.namespace is None and (lost := sum(not turn.folder for turn in turns)):
        session.left_out[UNPLACED] += lost
        turns = [turn for turn in turns if turn.folder]
    return turns


@lru_cache(1000)
def is_temporary(folder: str) -> bool:
    """Return whether a folder is below one for temporary files."""
    places = {"/tmp", "/var/tmp", "/private/tmp", "/var/folders", "/private/var/folders", tempfile.gettempdir()}
    return any(folder == place or folder.startswith(f"{place}/") for place in places)


@lru_cache(1000)
def find_root(folder: str) -> str:
    """Return the top folder of the project that a folder is in."""
    return project_root(folder)


@lru_cache(1000)
def name_place(folder: str, note: bool) -> str:
    """Return the namespace of a folder as hooks have it; without `note` nothing is written down of a new project."""
    return project_namespace(folder, note)


def read_turns(spool: IO[bytes], found: FoundSession) -> list[Utterance]:
    """Return the turns of a session that was found."""
    at, size = found.place
    spool.seek(at)
    return msgspec.msgpack.decode(spool.read(size), type=list[Utterance])

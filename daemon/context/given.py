"""Record what sessions are given, before it is returned, and list it.

The program of a session is only kept in RAM.
"""

from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from typing import TypeVar

from memoryd.client.protocol import (
    Done,
    GetContext,
    GetUnasked,
    GivenLine,
    GivenList,
    GivenSession,
    ListGiven,
    ResetSession,
)
from memoryd.daemon.context.tables import given
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.limits import check_text
from memoryd.daemon.registry import handles
from memoryd.daemon.store import namespaces, rows, turns
from memoryd.daemon.store.conversion import convert_to
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.writer import Transaction

R = TypeVar("R")
_AGENTS = 1000  # sessions whose program is remembered
_LINES = 100  # listed per session
_TEXT_CHARS = 400


@handles(ResetSession)
def reset(core: Core, call: ResetSession) -> "Future[Done]":
    """Delete the record of what a session was given; the future is done when that is on disk."""
    check_text("session", call.session)

    def write(transaction: Transaction) -> Done:
        given.forget_given(transaction.connection, _key(call))
        return Done(message="The session can be given everything again.")

    return core.store.write(write, over_limit=True)


class SessionAgents:
    """The programs of the latest sessions."""

    def __init__(self) -> None:
        self._names: OrderedDict[str, str] = OrderedDict()

    def note(self, key: str, agent: str) -> None:
        """Remember the program of a session; the oldest entry is evicted."""
        self._names[key] = agent
        self._names.move_to_end(key)
        while len(self._names) > _AGENTS:
            self._names.popitem(last=False)

    def find(self, key: str) -> str:
        """Return the program of a session, empty if unknown."""
        return self._names.get(key, "")


@handles(ListGiven)
def list_given(core: Core, call: ListGiven) -> GivenList:
    """Return the existing memories that sessions within reach were given, the latest first."""
    names = core.store.namespaces
    reached = names.reach(namespaces.check(call.namespace), call.reach)
    places = None if reached is None else {names.name(number) for number in reached}
    times: dict[str, dict[str, float]] = {}
    with core.store.reading() as connection:
        for key, memory, at in given.list_given(connection, call.since or 0.0):
            if places is not None and key.partition("\n")[0] not in places:
                continue
            if key not in times and len(times) == call.limit:
                break
            times.setdefault(key, {})[memory] = at
        ids = sorted({id for lines in times.values() for id in lines})
        known = {
            id: row for id, row in rows.read_ids(connection, ids).items() if reached is None or row.namespace in reached
        }
        known |= {
            id: turns.to_row(turn)
            for id, turn in turns.read_keys(connection, sorted(set(ids) - known.keys())).items()
            if reached is None or turn.namespace in reached
        }
    listed = [_show_session(core, key, lines, known) for key, lines in times.items()]
    return GivenList(sessions=[one for one in listed if one.lines])


def _show_session(core: Core, key: str, lines: dict[str, float], known: dict[str, Row]) -> GivenSession:
    place, _, session = key.partition("\n")
    shown = [
        convert_to(
            GivenLine,
            known[id],
            namespace=core.store.namespaces.name(known[id].namespace),
            text=known[id].content[:_TEXT_CHARS],
            at=at,
        )
        for id, at in lines.items()
        if id in known
    ]
    agent = core.state(SessionAgents).find(key)
    return GivenSession(namespace=place, session=session, agent=agent, at=max(lines.values()), lines=shown[:_LINES])


def read(core: Core, call: GetContext | GetUnasked) -> dict[str, bytes]:
    """Return by id the content hashes of the memories that a session was given."""
    if not call.session:
        return {}
    with core.store.reading() as connection:
        return given.read_given(connection, _key(call))


def keep(core: Core, call: GetContext | GetUnasked, memories: Sequence[tuple[str, bytes]], result: R) -> "Future[R]":
    """Record the ids and content hashes given to a session; the future has `result` once they are on disk."""
    if not call.session or not (memories or call.fresh) or core.store.is_full():
        future: Future[R] = Future()
        future.set_result(result)
        return future
    now = core.clock()
    if isinstance(call, GetUnasked) and call.agent:
        core.state(SessionAgents).note(_key(call), call.agent)

    def write(transaction: Transaction) -> R:
        if call.fresh:
            given.forget_given(transaction.connection, _key(call))
        given.keep_given(transaction.connection, _key(call), memories, now)
        return result

    return core.store.write(write)


def _key(call: GetContext | GetUnasked | ResetSession) -> str:
    return f"{call.namespace}\n{call.session}"

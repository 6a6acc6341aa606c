"""Thinking about whole conversations once they rest: facts are drawn out of them, sessions are summed up.

The queue is on disk (`store/thoughts.py`). A thought is finished by one transaction that writes its outcome and takes
its turns out of the queue, so a crash loses nothing and repeats nothing; a failure puts it off, and after several it is
given up and counted. At a stop the rules work off what facts wait, within a limit; the rest is there after the start.

Between thoughts a language model names nodes of the graph (`naming`).

Threads: one of its own at low priority. `step` may be called where that is not running.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import NamedTuple

from memoryd.client.protocol import EndSession, SessionEnded
from memoryd.daemon.config import CognitionConfig
from memoryd.daemon.conversations import learning, summarising
from memoryd.daemon.conversations.learning import Finish
from memoryd.daemon.core.core import Core
from memoryd.daemon.graph.naming import Naming
from memoryd.daemon.llm.provider import RULES, Provider
from memoryd.daemon.registry import handles
from memoryd.daemon.store import namespaces, thoughts
from memoryd.daemon.store.thoughts import Heard, Key, Rest, Thought
from memoryd.daemon.store.writer import Transaction

_ATTEMPTS = 5
_BACK_OFF_S = 60.0  # doubled with each failure
_LONGEST_BACK_OFF_S = _BACK_OFF_S * 2**_ATTEMPTS
_LOOK_EVERY_S = 5.0  # at most: the clock may be set
_SOON_S = 0.1
_NEVER_S = 10 * 365 * 86_400.0
_LONGEST_SUMMARY_S = 3_600.0

log = logging.getLogger(__name__)


class Kind(NamedTuple):
    """A kind of thought: what does it, and how many characters of turns it is given at once."""

    think: Callable[[Core, Provider, Key, Sequence[Heard]], Finish]
    max_chars: int


KINDS: dict[str, Kind] = {
    learning.KIND: Kind(learning.think, 12_000),
    summarising.KIND: Kind(summarising.think, 48_000),
}


def list_rests(config: CognitionConfig, session: str) -> list[Rest]:
    """Return what a conversation is thought about, and when; one without a name is no session to sum up."""
    found = []
    if config.extract:
        found.append(Rest(learning.KIND, config.quiet_s, max(config.longest_s, config.quiet_s)))
    if session:
        after = config.summary_after_s or _NEVER_S
        found.append(Rest(summarising.KIND, after, max(_LONGEST_SUMMARY_S, after)))
    return found


@handles(EndSession)
def end(core: Core, call: EndSession) -> "Future[SessionEnded]":
    """Think about a session at once; the future says what that is."""
    place = namespaces.check(call.namespace)

    def write(transaction: Transaction) -> SessionEnded:
        number = core.store.namespaces.find_number(place)
        if number is None:
            return SessionEnded(waiting=[])
        transaction.after_commit(core.cognition.thoughts.set)
        return SessionEnded(waiting=thoughts.hurry(transaction.connection, number, call.session, core.clock()))

    return core.store.write(write)


def hurry(core: Core, reached: frozenset[int] | None) -> None:
    """Make the facts of all conversations in some namespaces (None: all) due at once."""

    def write(transaction: Transaction) -> None:
        now = core.clock()
        for thought in thoughts.read_all(transaction.connection, learning.KIND):
            if (reached is None or thought.key.namespace in reached) and thought.attempts == 0:
                thoughts.hasten(transaction.connection, thought.key, now)
        transaction.after_commit(core.cognition.thoughts.set)

    core.store.write(write).result()


def step(core: Core) -> bool:
    """Think one thought that is due; say whether there was one."""
    if core.embedding.active is None and core.embedding.report_state().state in ("loading", "fetching"):
        return False  # it will be there soon, and repetitions are known by it
    thought = _find_next(core)
    if thought is None or thought.due_at > core.clock():
        return False
    think(core, thought, core.cognition.provider)
    return True


def _find_next(core: Core) -> Thought | None:
    config, now = core.config.cognition, core.clock()
    longest_s = max((rest.longest_s for rest in list_rests(config, "any") if rest.longest_s < _NEVER_S), default=0.0)
    with core.store.reading() as connection:
        return thoughts.find_next(connection, now, (now + longest_s + _LONGEST_BACK_OFF_S, now + _NEVER_S / 2))


def think(core: Core, thought: Thought, provider: Provider) -> None:
    """Think about the oldest turns of a conversation and write what comes of it."""
    key, kind = thought.key, KINDS[thought.key.kind]
    with core.store.reading() as connection:
        heard = thoughts.read_turns(connection, key, kind.max_chars)
    try:
        finish = kind.think(core, provider, key, heard)
    except Exception as error:
        _put_off(core, thought, error)
        return

    def write(transaction: Transaction) -> None:
        connection = transaction.connection
        finish(transaction, thoughts.select_queued(connection, heard))
        thoughts.finish(connection, key, heard, core.clock())

    try:
        core.store.write(write).result()
    except Exception as error:
        _put_off(core, thought, error)


def _put_off(core: Core, thought: Thought, error: Exception) -> None:
    attempts = thought.attempts + 1
    log.warning("thinking (%s) failed, attempt %d of %d: %s", thought.key.kind, attempts, _ATTEMPTS, error)
    not_before = core.clock() + _BACK_OFF_S * 2**thought.attempts

    def write(transaction: Transaction) -> None:
        if attempts >= _ATTEMPTS:
            thoughts.give_up(transaction.connection, thought.key)
        else:
            thoughts.put_off(transaction.connection, thought, not_before)

    core.store.write(write).result()


def flush(core: Core, limit_s: float) -> None:
    """Draw out the facts that wait, by rules, for so long at most."""
    end_at = time.monotonic() + limit_s
    with core.store.reading() as connection:
        waiting = thoughts.read_all(connection, learning.KIND)
    for thought in waiting:
        first = -1
        while time.monotonic() < end_at:  # a long conversation takes several batches
            with core.store.reading() as connection:
                heard = thoughts.read_turns(connection, thought.key, 1)
            if not heard or heard[0].id == first:  # nothing is left, or it does not get on
                break
            first = heard[0].id
            think(core, thought, RULES)


class Thinker:
    """The thread."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._naming = Naming(core)
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin; what is overdue is done first."""
        wake = self._core.cognition.thoughts
        self._thread = self._core.supervisor.start("thinker", self._work, self._closing, wake, nice=True)

    def close(self) -> None:
        """End the thread and write down what can be within the limit; the rest stays in the queue."""
        self._closing.set()
        self._core.cognition.provider.close()
        self._core.cognition.thoughts.set()
        if self._thread:
            self._thread.join()
            try:
                flush(self._core, self._core.config.cognition.flush_s)
            except Exception as error:
                log.warning("what waits is thought about after the next start: %s", error)

    def _work(self) -> float | None:
        self._core.cognition.expecting = False  # before the queue is read: what comes later wakes the thread
        while not self._closing.is_set() and self._step():
            pass
        return self._wait_s()

    def _step(self) -> bool:
        if self._core.store.is_full():  # what comes of a conversation would be added
            return False
        began = time.perf_counter()
        done = step(self._core) or self._naming.step()
        if done:
            self._core.rest(time.perf_counter() - began)
        return done

    def _wait_s(self) -> float | None:
        """Return how long to wait, None for until something comes."""
        thought = _find_next(self._core)
        if thought is None:
            return self._naming.wait_s()
        if self._core.store.is_full():
            return _LOOK_EVERY_S
        self._core.cognition.expecting = True
        return min(_LOOK_EVERY_S, max(_SOON_S, thought.due_at - self._core.clock()))

"""Thinking about whole conversations once they rest: sessions are summed up, a language model draws facts out.

The queue is on disk (`store/thoughts.py`). A thought is finished by one transaction that writes its outcome and takes
its turns out of the queue, so a crash loses nothing and repeats nothing; a failure puts it off, and after several it is
given up and counted.

Threads: the extraction worker's. `step` may be called where that is not running.
"""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import NamedTuple

from memoryd.client.protocol import EndSession, Progress, SessionEnded
from memoryd.daemon.conversations import learning, summarising
from memoryd.daemon.conversations.learning import Finish
from memoryd.daemon.core.core import Core
from memoryd.daemon.llm.provider import RULES
from memoryd.daemon.registry import ReportProgress, handles
from memoryd.daemon.store import namespaces, thoughts
from memoryd.daemon.store.thoughts import Heard, Thought, ThoughtDelay, ThoughtKey
from memoryd.daemon.store.writer import Transaction

_ATTEMPTS = 5
_BACK_OFF_S = 60.0  # doubled with each failure
_LONGEST_BACK_OFF_S = _BACK_OFF_S * 2**_ATTEMPTS
_LOOK_EVERY_S = 5.0  # at most: the clock may be set
_SOON_S = 0.1
_POLL_S = 0.05
_NEVER_S = 10 * 365 * 86_400.0
LONGEST_S = 600.0  # a conversation that never pauses is processed after this time
LONGEST_SUMMARY_S = 3_600.0

log = logging.getLogger(__name__)


class ThoughtKind(NamedTuple):
    """A kind of thought: what does it, and how many characters of turns it is given at once."""

    think: Callable[[Core, ThoughtKey, Sequence[Heard]], Finish]
    max_chars: int


KINDS: dict[str, ThoughtKind] = {
    learning.KIND: ThoughtKind(learning.think, 12_000),
    summarising.KIND: ThoughtKind(summarising.think, 48_000),
}


def list_rests(core: Core, session: str) -> list[ThoughtDelay]:
    """Return the kinds of tasks for a conversation with their delays; one without a session name is not summarised."""
    config, delays = core.config.cognition, []
    if config.extract and core.cognition.provider is not RULES:
        delays.append(ThoughtDelay(learning.KIND, config.quiet_s, max(LONGEST_S, config.quiet_s)))
    if session:
        after = config.summary_after_s or _NEVER_S
        delays.append(ThoughtDelay(summarising.KIND, after, max(LONGEST_SUMMARY_S, after)))
    return delays


@handles(EndSession)
def end(core: Core, call: EndSession, report: ReportProgress = lambda progress: None) -> "Future[SessionEnded]":
    """Make the tasks of a session due at once; the future holds their kinds, with `wait` once they are done."""
    place = namespaces.check(call.namespace)

    def write(transaction: Transaction) -> SessionEnded:
        number = core.store.namespaces.find_number(place)
        if number is None:
            return SessionEnded(waiting=[])
        transaction.after_commit(core.cognition.wake.set)
        return SessionEnded(waiting=thoughts.hurry(transaction.connection, number, call.session, core.clock()))

    begun = core.store.write(write)
    if not call.wait:
        return begun
    return core.apart.run("end", lambda: _wait_for(core, call, begun.result(), report))


def _wait_for(core: Core, call: EndSession, begun: SessionEnded, report: ReportProgress) -> SessionEnded:
    """Wait until the tasks of a session are done or postponed; return which of them still wait."""
    number = core.store.namespaces.find_number(namespaces.check(call.namespace))
    most = 0
    while begun.waiting and number is not None:
        with core.store.reading() as connection:
            due = thoughts.count_due(connection, number, call.session, core.clock())
        if not due or core.store.is_full():
            break
        most = max(most, sum(due.values()))
        report(Progress(stage="summary and facts", done=most - sum(due.values()), total=most))
        core.apart.check_open()
        core.apart.stopping.wait(_POLL_S)
    with core.store.reading() as connection:
        return SessionEnded(waiting=[] if number is None else thoughts.list_kinds(connection, number, call.session))


def hurry(core: Core, reached: frozenset[int] | None) -> None:
    """Make the facts of all conversations in some namespaces (None: all) due at once."""

    def write(transaction: Transaction) -> None:
        now = core.clock()
        for thought in thoughts.read_all(transaction.connection, learning.KIND):
            if (reached is None or thought.key.namespace in reached) and thought.attempts == 0:
                thoughts.hasten(transaction.connection, thought.key, now)
        transaction.after_commit(core.cognition.wake.set)

    core.store.write(write).result()


def step(core: Core) -> bool:
    """Run the next due task; return whether there was one."""
    if core.embedding.active is None and core.embedding.report_state().state in ("loading", "fetching"):
        return False  # it will be there soon, and repetitions are known by it
    thought = _find_next(core)
    if thought is None or thought.due_at > core.clock():
        return False
    think(core, thought)
    return True


def wait_s(core: Core) -> float | None:
    """Return how long to wait for work, None for until something comes."""
    thought = _find_next(core)
    if thought is None:
        return None
    if core.store.is_full():
        return _LOOK_EVERY_S
    return min(_LOOK_EVERY_S, max(_SOON_S, thought.due_at - core.clock()))


def _find_next(core: Core) -> Thought | None:
    now = core.clock()
    longest_s = max((rest.longest_s for rest in list_rests(core, "any") if rest.longest_s < _NEVER_S), default=0.0)
    with core.store.reading() as connection:
        return thoughts.find_next(connection, now, (now + longest_s + _LONGEST_BACK_OFF_S, now + _NEVER_S / 2))


def think(core: Core, thought: Thought) -> None:
    """Think about the oldest turns of a conversation and write what comes of it."""
    key, kind = thought.key, KINDS[thought.key.kind]
    with core.store.reading() as connection:
        heard = thoughts.read_turns(connection, key, kind.max_chars)

    def write(finish: Finish, transaction: Transaction) -> None:
        finish(transaction, thoughts.select_queued(transaction.connection, heard))
        thoughts.finish(transaction.connection, key, heard, core.clock())

    try:
        finish = kind.think(core, key, heard)
        core.store.write(partial(write, finish)).result()
    except Exception as error:
        if not core.ending.is_set():  # a stop ends the question to a language model
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

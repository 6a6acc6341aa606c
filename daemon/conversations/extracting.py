"""Tasks on whole conversations that have paused: summaries, and facts where there is a language model.

The queue is on disk (`store/extraction.py`). One transaction writes the result of a task and removes its turns from the
queue, so a crash neither loses nor repeats any. A failed task is retried later; after several failures it is dropped
and counted.

Threads: the extraction worker's. `step` may be called by others while the worker is not running.
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
from memoryd.daemon.store import extraction, namespaces
from memoryd.daemon.store.extraction import Conversation, Delay, Due, QueuedTurn
from memoryd.daemon.store.writer import Transaction

_ATTEMPTS = 5
_BACK_OFF_S = 60.0  # doubled with each failure
_LONGEST_BACK_OFF_S = _BACK_OFF_S * 2**_ATTEMPTS
_MAX_WAIT_S = 5.0  # the clock may be set meanwhile
_MIN_WAIT_S = 0.1
_POLL_S = 0.05
QUIET_S = 30.0  # facts are extracted after a pause of this length
SUMMARY_AFTER_S = 600.0  # and a summary is made after this one
LONGEST_S = 600.0  # a conversation without a pause is processed for facts after this time
LONGEST_SUMMARY_S = 3_600.0  # and for a summary after this one

log = logging.getLogger(__name__)


class Kind(NamedTuple):
    """A task on conversations: its function, and how many characters of turns it is given at once."""

    run: Callable[[Core, Conversation, Sequence[QueuedTurn]], Finish]
    max_chars: int


KINDS: dict[str, Kind] = {
    learning.KIND: Kind(learning.extract, 12_000),
    summarising.KIND: Kind(summarising.summarise, 48_000),
}


def list_delays(core: Core, session: str) -> list[Delay]:
    """Return the tasks of a conversation with their delays; one without a session name is not summarised."""
    delays = []
    if core.config.cognition.extract and core.cognition.provider is not RULES:
        delays.append(Delay(learning.KIND, QUIET_S, LONGEST_S))
    if session:
        delays.append(Delay(summarising.KIND, SUMMARY_AFTER_S, LONGEST_SUMMARY_S))
    return delays


@handles(EndSession)
def end(core: Core, call: EndSession, report: ReportProgress = lambda progress: None) -> "Future[SessionEnded]":
    """Make the tasks of a session due now; the future holds those that wait, with `wait` after they have run."""
    place = namespaces.check(call.namespace)

    def write(transaction: Transaction) -> SessionEnded:
        number = core.store.namespaces.find_number(place)
        if number is None:
            return SessionEnded(waiting=[])
        transaction.after_commit(core.cognition.wake.set)
        return SessionEnded(waiting=extraction.make_due(transaction.connection, (number, call.session), core.clock()))

    begun = core.store.write(write)
    if not call.wait:
        return begun
    return core.background.run("end", lambda: _wait_for(core, call, begun.result(), report))


def _wait_for(core: Core, call: EndSession, begun: SessionEnded, report: ReportProgress) -> SessionEnded:
    """Wait until the tasks of a session are done or postponed; return those that still wait."""
    number = core.store.namespaces.find_number(namespaces.check(call.namespace))
    most = 0
    while begun.waiting and number is not None:
        with core.store.reading() as connection:
            due = extraction.count_due(connection, (number, call.session), core.clock())
        if not due or core.store.is_full():
            break
        most = max(most, due)
        report(Progress(stage="summary and facts", done=most - due, total=most))
        core.background.check_open()
        core.background.stopping.wait(_POLL_S)
    with core.store.reading() as connection:
        return SessionEnded(waiting=[] if number is None else extraction.list_tasks(connection, (number, call.session)))


def make_facts_due(core: Core, reached: frozenset[int] | None) -> None:
    """Make fact extraction due now for all conversations in `reached` (None: in all namespaces)."""

    def write(transaction: Transaction) -> None:
        extraction.make_facts_due(transaction.connection, learning.KIND, reached, core.clock())
        transaction.after_commit(core.cognition.wake.set)

    core.store.write(write).result()


def step(core: Core) -> bool:
    """Run the next due task; return whether there was one."""
    if core.embedding.active is None and core.embedding.report_state().state in ("loading", "fetching"):
        return False  # the model will be loaded soon, and duplicates are found by vectors
    due = _find_next(core)
    if due is None or due.due_at > core.clock():
        return False
    _run(core, due)
    return True


def wait_s(core: Core) -> float | None:
    """Return how long to wait before looking for work again, None to wait until woken."""
    due = _find_next(core)
    if due is None:
        return None
    if core.store.is_full():
        return _MAX_WAIT_S
    return min(_MAX_WAIT_S, max(_MIN_WAIT_S, due.due_at - core.clock()))


def _find_next(core: Core) -> Due | None:
    longest_s = max((delay.longest_s for delay in list_delays(core, "any")), default=0.0)
    with core.store.reading() as connection:
        return extraction.find_next(connection, core.clock(), longest_s + _LONGEST_BACK_OFF_S)


def _run(core: Core, due: Due) -> None:
    """Run one extraction task on the oldest turns of its conversation, and commit its result."""
    one, kind = due.conversation, KINDS[due.conversation.task]
    with core.store.reading() as connection:
        said = extraction.read_turns(connection, one, kind.max_chars)

    def write(finish: Finish, transaction: Transaction) -> None:
        finish(transaction, extraction.select_queued(transaction.connection, said))
        extraction.finish(transaction.connection, one, said)

    try:
        finish = kind.run(core, one, said) if said else lambda transaction, there: None
        core.store.write(partial(write, finish)).result()
    except Exception as error:
        if not core.ending.is_set():  # stopping interrupts the request to a language model, which is no failure
            _postpone(core, due, error)


def _postpone(core: Core, due: Due, error: Exception) -> None:
    one, attempts = due.conversation, due.attempts + 1
    log.warning("the task %s failed, attempt %d of %d: %s", one.task, attempts, _ATTEMPTS, error)
    not_before = core.clock() + _BACK_OFF_S * 2**due.attempts

    def write(transaction: Transaction) -> None:
        if attempts >= _ATTEMPTS:
            extraction.give_up(transaction.connection, one)
        else:
            extraction.postpone(transaction.connection, one, not_before)

    core.store.write(write).result()

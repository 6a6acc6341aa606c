"""Keeping the daemon's threads at work: what fails is logged, counted and tried again after a pause.

A thread's work is a function that does what there is to do and returns how long to wait for more. Where it raises,
whatever it raises, the thread continues after a pause, which doubles with each failure in a row.

Threads: any.
"""

import logging
import threading
import time
from collections.abc import Callable

from memoryd.client.protocol import ThreadState
from memoryd.daemon.system.process import lower_priority

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0

log = logging.getLogger(__name__)

SupervisedWork = Callable[[], float | None]  # returns the seconds to wait at most, None: until woken


class Supervisor:
    """How the threads are that were started here, or that say so themselves. `clock` gives UTC seconds."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self._states: dict[str, ThreadState] = {}
        self._failures: dict[str, int] = {}  # in a row
        self._lock = threading.Lock()

    def start(
        self,
        name: str,
        work: SupervisedWork,
        stopping: threading.Event,
        wake: threading.Event | None = None,
        nice: bool = False,
    ) -> threading.Thread:
        """Start a thread that works until `stopping` is set; set `wake` together with it."""
        woken = wake or threading.Event()

        def keep_running() -> None:
            if nice:
                lower_priority()
            while not stopping.is_set():
                woken.clear()
                try:
                    limit_s = work()
                except BaseException as error:  # also the panic of a library, which is no `Exception`
                    stopping.wait(self.note_failure(name, error))
                    continue
                self.note_work(name)
                if not stopping.is_set():
                    woken.wait(limit_s)

        thread = threading.Thread(target=keep_running, name=name, daemon=True)
        with self._lock:
            self._states.setdefault(name, ThreadState(name=name))  # first: a thread that ends at once is forgotten
        thread.start()
        return thread

    def note_failure(self, name: str, error: BaseException) -> float:
        """Count and log that a thread failed; return the seconds after which it is to go on."""
        said = " ".join(str(error).split())
        sentence = f"{type(error).__name__}: {said}" if said else type(error).__name__
        with self._lock:
            state = self._states.get(name) or ThreadState(name=name)
            failures = self._failures[name] = self._failures.get(name, 0) + 1
            self._states[name] = ThreadState(
                name=name, restarts=state.restarts + 1, error=sentence, failed_at=self.clock(), works_since=None
            )
        pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(failures - 1, 10))
        trace = error if failures == 1 else None  # the others are alike
        log.warning("the thread %s failed and is started again in %g s: %s", name, pause_s, sentence, exc_info=trace)
        return pause_s

    def note_work(self, name: str) -> None:
        """Note that a thread works."""
        if self._failures.get(name):
            with self._lock:
                self._failures[name] = 0
                self._states[name].works_since = self.clock()
            log.info("the thread %s works again", name)

    def forget(self, name: str) -> None:
        """Let go of a thread that has ended for good."""
        with self._lock:
            self._states.pop(name, None)
            self._failures.pop(name, None)

    def list_states(self) -> list[ThreadState]:
        """Return how each thread is."""
        with self._lock:
            return sorted(self._states.values(), key=lambda state: state.name)

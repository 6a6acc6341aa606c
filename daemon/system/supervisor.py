"""Supervise the daemon's threads: exceptions are logged and counted, and the thread continues after a pause.

A thread's work is a function that does all available work and returns how long to wait for more. If it raises anything,
the thread calls it again after a pause, which doubles with each failure in a row.

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

SupervisedWork = Callable[[], float | None]  # returns the maximum seconds to wait, None: until woken


class Supervisor:
    """The state of the threads that were started here, or that report it themselves. `clock` returns UTC seconds."""

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
                except BaseException as error:  # includes panics of a library, which are not an `Exception`
                    stopping.wait(self.note_failure(name, error))
                    continue
                self.note_work(name)
                if not stopping.is_set():
                    woken.wait(limit_s)

        thread = threading.Thread(target=keep_running, name=name, daemon=True)
        with self._lock:
            self._states.setdefault(name, ThreadState(name=name))  # before the start, as the thread may end at once
        thread.start()
        return thread

    def note_failure(self, name: str, error: BaseException) -> float:
        """Count and log a failure of a thread; return the seconds to pause."""
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
        """Record that a thread works again."""
        if self._failures.get(name):
            with self._lock:
                self._failures[name] = 0
                self._states[name].works_since = self.clock()
            log.info("the thread %s works again", name)

    def forget(self, name: str) -> None:
        """Remove a thread that has ended."""
        with self._lock:
            self._states.pop(name, None)
            self._failures.pop(name, None)

    def list_states(self) -> list[ThreadState]:
        """Return the state of each thread."""
        with self._lock:
            return sorted(self._states.values(), key=lambda state: state.name)

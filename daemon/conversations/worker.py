"""The extraction worker: a low-priority thread that processes turns and conversations.

It processes single turns first (`judging`), since a search may look for what was just said, then conversations that
have paused (`extracting`), then the idle work of rooms. Each step is one small batch, after which the thread rests; a
steady stream of turns does not starve the other work. The queue is on disk, so neither a crash nor a stop loses any. If
there is a language model, a second thread does the work that needs none, so that a slow model delays nothing else.
"""

import threading
import time
from collections.abc import Callable

from memoryd.client.errors import Unavailable
from memoryd.daemon.conversations import extracting, judging
from memoryd.daemon.core.core import Core
from memoryd.daemon.llm.provider import RULES
from memoryd.daemon.rooms import list_rooms

_JUDGED_FIRST = 4  # batches of single turns for each task of a conversation


class Worker:
    """The worker's threads; without `extracts` only single turns are processed."""

    def __init__(self, core: Core, extracts: bool = True) -> None:
        self._core, self._extracts = core, extracts
        self._idle = [work for room in list_rooms() for work in room.idle(core)]
        self._judge = judging.step
        self._closing = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start the threads; entries that an earlier daemon left in the queue come first."""
        if self._core.cognition.provider is not RULES:
            self._judge = judging.step_with_model
            self._start("conversations-2", self._work_without_model)
        self._start("conversations", self._work)

    def _start(self, name: str, work: Callable[[], float | None]) -> None:
        wake = self._core.cognition.wake.add()
        self._threads.append(self._core.supervisor.start(name, work, self._closing, wake, nice=True))

    def close(self) -> None:
        """End the threads; waiting entries stay in the queue on disk."""
        self._closing.set()
        self._core.cognition.provider.close()
        self._core.cognition.wake.set()
        for thread in self._threads:
            thread.join()

    def _work(self) -> float | None:
        self._repeat(self._run_steps)
        if self._is_ending():
            return None
        waits = [judging.wait_s(self._core)]
        if self._extracts:
            waits += [extracting.wait_s(self._core), *(work.wait_s() for work in self._idle)]
        return min((wait for wait in waits if wait is not None), default=None)

    def _work_without_model(self) -> float | None:
        self._repeat(lambda: self._run(judging.step_without_model))
        return judging.wait_s(self._core)

    def _repeat(self, run: Callable[[], bool]) -> None:
        try:
            while not self._is_ending() and run():
                pass
        except Unavailable:
            if not self._is_ending():
                raise

    def _is_ending(self) -> bool:
        return self._closing.is_set() or self._core.ending.is_set()

    def _run_steps(self) -> bool:
        """Do up to `_JUDGED_FIRST` batches of turns and one task of a conversation; return whether there was any."""
        judged = 0
        while judged < _JUDGED_FIRST and self._run(self._judge):
            judged += 1
        return (self._extracts and self._run(self._extract)) or judged > 0

    def _run(self, step: Callable[[Core], bool]) -> bool:
        """Do one batch and rest; return whether there was one."""
        began = time.perf_counter()
        done = not self._is_ending() and step(self._core)
        if done:
            self._core.rest(time.perf_counter() - began)
        return done

    def _extract(self, core: Core) -> bool:
        if core.store.is_full():  # summaries and facts would make it grow
            return False
        return extracting.step(core) or any(work.step() for work in self._idle)

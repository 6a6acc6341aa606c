"""The extraction worker: one thread at low priority for all that is made of conversations.

It judges turns first, since a search may look for what was just said, then draws facts and summaries out of
conversations that rest (`thinking`), then does what rooms leave for such times. Each step is
one small batch, after which the thread rests. While turns come without end, facts still have their turn. What is to be
done is on disk, so neither a crash nor a stop loses any.
"""

import threading
import time
from collections.abc import Callable

from memoryd.client.errors import Unavailable
from memoryd.daemon.conversations import judging, thinking
from memoryd.daemon.core.core import Core
from memoryd.daemon.rooms import list_rooms

_JUDGED_FIRST = 4  # batches of judging before one of thinking


class Worker:
    """The thread; without `thinks` it judges alone."""

    def __init__(self, core: Core, thinks: bool = True) -> None:
        self._core, self._thinks = core, thinks
        self._idle = [work for room in list_rooms() for work in room.idle(core)]
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin; what an earlier run of the daemon left is done first."""
        wake = self._core.cognition.wake
        self._thread = self._core.supervisor.start("conversations", self._work, self._closing, wake, nice=True)

    def close(self) -> None:
        """End the thread; what waits is there after the next start."""
        self._closing.set()
        self._core.cognition.provider.close()
        self._core.cognition.wake.set()
        if self._thread:
            self._thread.join()

    def _work(self) -> float | None:
        try:
            while not self._is_ending() and self._run_steps():
                pass
        except Unavailable:
            if not self._is_ending():
                raise
        if self._is_ending():
            return None
        waits = [judging.wait_s(self._core)]
        if self._thinks:
            waits += [thinking.wait_s(self._core), *(work.wait_s() for work in self._idle)]
        return min((wait for wait in waits if wait is not None), default=None)

    def _is_ending(self) -> bool:
        return self._closing.is_set() or self._core.ending.is_set()

    def _run_steps(self) -> bool:
        """Do some batches of judging and one of thinking, however many wait; say whether there was any."""
        judged = 0
        while judged < _JUDGED_FIRST and self._run(judging.step):
            judged += 1
        return (self._thinks and self._run(self._think)) or judged > 0

    def _run(self, step: Callable[[Core], bool]) -> bool:
        """Do a batch and rest; say whether there was one."""
        began = time.perf_counter()
        done = not self._is_ending() and step(self._core)
        if done:
            self._core.rest(time.perf_counter() - began)
        return done

    def _think(self, core: Core) -> bool:
        if core.store.is_full():  # what comes of a conversation would be added
            return False
        return thinking.step(core) or any(work.step() for work in self._idle)

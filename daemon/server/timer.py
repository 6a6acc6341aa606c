"""The timer of background jobs: a thread that starts the scheduler and makes it follow the clock."""

import threading
from typing import TYPE_CHECKING

from memoryd.daemon.server.server import Server

if TYPE_CHECKING:
    from memoryd.scheduler.runner import Scheduler

_CLOCK_CHECK_S = 30.0


class Timer:
    """Runs the scheduler. If it fails to start, the timer tries again."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._stopping, self._wake = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._scheduler: Scheduler | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread = self._server.core.supervisor.start("timer", self._work, self._stopping, self._wake)

    def stop(self) -> None:
        """Stop the thread and the scheduler."""
        self._stopping.set()
        self._wake.set()
        if self._thread:
            self._thread.join()
        if self._scheduler:
            self._scheduler.stop()

    def _work(self) -> float:
        if self._scheduler:
            self._scheduler.follow_clock()
        else:
            from memoryd.scheduler.runner import Scheduler  # imported late, so that the daemon starts sooner

            scheduler = Scheduler(self._server.perform)
            self._server.jobs.states.scheduler = scheduler
            scheduler.start()
            self._scheduler = scheduler
        return _CLOCK_CHECK_S

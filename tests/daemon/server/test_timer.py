"""The timer within the daemon: it asks for jobs, and again when the clock was set."""

import threading
from typing import Any

import pytest

from memoryd.client.errors import Conflict
from memoryd.client.protocol import Job, JobList, Jobs
from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs.runner import Runner
from memoryd.daemon.server import timer as timers
from memoryd.daemon.server.timer import Timer
from memoryd.scheduler import runner
from workbench import LIMIT_S, wait_until


class Server:
    """Answers the scheduler: one job, due in an hour."""

    def __init__(self, core: Core) -> None:
        self.core, self.jobs = core, Runner(core)
        self.asked = threading.Semaphore(0)

    def perform(self, call: Any) -> Any:
        at = self.core.clock() + 3600
        if isinstance(call, Jobs):
            job = Job(name="sweep", about="", state="waiting", every_s=3600.0, deadline_s=1.0, next_run_at=at)
            return JobList(jobs=[job], at=self.core.clock())
        self.asked.release()
        raise Conflict("The job sweep is not due.", {"next_run_at": at})


def test_jobs_are_asked_for_when_the_clock_was_set(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timers, "_LOOK_EVERY_S", 0.01)
    server = Server(core)
    timer = Timer(server)  # type: ignore[arg-type]
    timer.start()
    try:
        wait_until(lambda: timer._scheduler is not None)
        assert not server.asked.acquire(timeout=0)
        monkeypatch.setattr(runner, "_measure_offset_s", lambda: 1e9)
        assert server.asked.acquire(timeout=LIMIT_S)
    finally:
        timer.stop()

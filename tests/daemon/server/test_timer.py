"""The timer within the daemon: the scheduler runs its jobs, and is told of the clock."""

import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memoryd.client.protocol import Jobs
from memoryd.daemon.config import Config
from memoryd.daemon.server import timer as timers
from memoryd.daemon.server.timer import Timer
from memoryd.scheduler.runner import Scheduler
from moving import Mover, run, runner
from workbench import CountingEmbedder, running, wait_until


def test_the_scheduler_runs_jobs_and_says_when_each_is_next(
    folder: Path, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timers, "_CLOCK_CHECK_S", 0.01)
    looked = threading.Semaphore(0)
    monkeypatch.setattr(Scheduler, "follow_clock", lambda self: looked.release())
    config = msgspec.convert({"jobs": {"every_s": {"move": 50.0}}}, Config)
    with running(folder, CountingEmbedder(), clock=clock, config=config) as core:
        mover = Mover()
        mover.broken = True
        jobs = runner(core, mover)

        class Server:
            def __init__(self) -> None:
                self.core, self.jobs = core, jobs

            def perform(self, call: Any) -> Any:
                return jobs.list() if isinstance(call, Jobs) else jobs.run(call, lambda event: None).result(30)

        timer = Timer(Server())  # type: ignore[arg-type]
        timer.start()
        try:
            wait_until(lambda: [job.failures for job in jobs.list().jobs] == [1, 1])
            assert [round((job.next_run_at or 0) - jobs.list().at, -1) for job in jobs.list().jobs] == [
                60,
                60,
            ]  # a back-off
            mover.broken = False
            run(jobs)
            assert [round((job.next_run_at or 0) - jobs.list().at, -1) for job in jobs.list().jobs] == [50, 60]
            assert looked.acquire(timeout=30)
        finally:
            timer.stop()
            jobs.close()

"""The timer of background jobs: asks the daemon to run each one when it is due.

The daemon decides when a job is due and whether it may run: the timer calls `RunJob`, and the reply, or the refusal,
says when to ask again. So a pause, a back-off or a restart needs no state here, and however many runs a
stopped daemon or a sleeping machine missed, there is one.

Threads: the timer's, and one that waits for the replies of the calls, one after the other.
"""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers import SchedulerNotRunningError
from apscheduler.schedulers.background import BackgroundScheduler

from memoryd.client.errors import Conflict, MemorydError
from memoryd.client.protocol import Job, Jobs, RunJob

_APART_S = 0.05  # jobs that are due at once are asked for in the order of the table
_AGAIN_S = 60.0  # when the daemon gave no answer
_STEP_S = 1.0  # a step of the clock from which the timer's dates are wrong

log = logging.getLogger(__name__)

CallDaemon = Callable[[Any], Any]


class Scheduler:
    """Runs jobs that are due. `call` sends a call and returns its result; `clock` is the daemon's."""

    def __init__(self, call: CallDaemon, clock: Callable[[], float] = time.time) -> None:
        logging.getLogger("apscheduler").setLevel(logging.ERROR)  # the daemon reports how runs went
        self._call, self._clock = call, clock
        self._offset_s = _measure_offset_s()
        self._timer = BackgroundScheduler(
            executors={"default": ThreadPoolExecutor(1)},
            # One run however many were missed, however late, and never two of one job.
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
            timezone=UTC,
        )

    def start(self) -> None:
        """Start asking for the jobs that have an interval, at once for those that are due."""
        for number, job in enumerate(self._call(Jobs()).jobs):
            self._add(job, number * _APART_S)
        self._timer.start()

    def stop(self) -> None:
        """Stop asking. The daemon ends a run that is in progress."""
        self._timer.shutdown(wait=False)

    def ask_again(self, name: str) -> None:
        """Ask at once whether a job is due, after it was resumed or run by hand."""
        self._ask_at(name, self._clock())

    def follow_clock(self) -> None:
        """Ask for every job if the system's clock was set since the last call: the timer waits for dates."""
        before, self._offset_s = self._offset_s, _measure_offset_s()
        if abs(self._offset_s - before) > _STEP_S:
            for job in self._timer.get_jobs():
                self.ask_again(job.id)

    def _add(self, job: Job, apart_s: float) -> None:
        if not job.every_s:
            return
        first_at = None if job.next_run_at is None else self._convert_time(job.next_run_at, apart_s)
        self._timer.add_job(
            self._fire,
            "interval",
            seconds=job.every_s,
            args=[job.name],
            id=job.name,
            # One that is paused is asked for at its interval, and at once when it is resumed.
            **({} if first_at is None else {"next_run_time": first_at}),
        )

    def _fire(self, name: str) -> None:
        try:
            next_at = self._call(RunJob(name=name, by="scheduler")).next_run_at
        except Conflict as refusal:
            next_at = refusal.data.get("next_run_at")
        except MemorydError as error:
            log.info("job %s: %s", name, error.message)
            next_at = self._clock() + _AGAIN_S
        except Exception:
            log.exception("job %s could not be asked for", name)
            next_at = self._clock() + _AGAIN_S
        if next_at is not None:
            self._ask_at(name, next_at)

    def _ask_at(self, name: str, at: float) -> None:
        with suppress(JobLookupError, SchedulerNotRunningError):
            self._timer.modify_job(name, next_run_time=self._convert_time(at, 0.0))

    def _convert_time(self, at: float, apart_s: float) -> datetime:
        """Convert a time of the daemon's clock to one of the timer's."""
        return datetime.now(UTC) + timedelta(seconds=max(0.0, at - self._clock()) + apart_s)


def _measure_offset_s() -> float:
    return time.time() - time.monotonic()

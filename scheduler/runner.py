"""The scheduler of background jobs: asks the daemon to run each one when it is due. It imports only the client.

APScheduler decides when: each job has its interval, runs that were missed become one (`coalesce`), however late
(`misfire_grace_time`), and never are there two of one job (`max_instances`). The daemon keeps what outlives it: it says
how long each job waits at first, and refuses one that is paused or in quarantine.

Threads: APScheduler's, and one that waits for the replies of the calls, one after the other.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers import SchedulerNotRunningError
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.interval import IntervalTrigger

from memoryd.client.errors import Conflict, MemorydError
from memoryd.client.protocol import Jobs, RunJob

_APART_S = 0.05  # jobs that are due at once are asked for in the order of the table
_AGAIN_S = 60.0  # when the daemon gave no answer
_LONGEST_WAIT_S = 3600.0  # of a job with a shorter interval, after failures

log = logging.getLogger(__name__)


class Interval(IntervalTrigger):  # type: ignore[misc]
    """An interval that begins anew after missed runs: a clock that jumps by years has no thousands to count."""

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime | None:
        """Return when the next run is due, after `now` where a run was missed."""
        due: datetime | None = super().get_next_fire_time(previous_fire_time, now)
        return due if previous_fire_time is None or due is None or due > now else now + self.interval


class Scheduler:
    """Runs jobs that are due. `call` sends a call and returns its result."""

    def __init__(self, call: Callable[[Any], Any]) -> None:
        logging.getLogger("apscheduler").setLevel(logging.ERROR)  # the daemon reports how runs went
        self._call = call
        self._timer = BackgroundScheduler(
            executors={"default": ThreadPoolExecutor(1)},
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
            timezone=UTC,
        )

    def start(self) -> None:
        """Begin with the jobs that have an interval, at once with those that are due."""
        found = self._call(Jobs())
        for number, job in enumerate(found.jobs):
            if job.every_s:
                # One that is paused is asked for at its interval, and refused.
                wait_s = job.every_s if job.next_run_at is None else job.next_run_at - found.at
                first_at = _convert_wait(wait_s + number * _APART_S)
                trigger = Interval(seconds=job.every_s, timezone=UTC)
                self._timer.add_job(self._fire, trigger, args=[job.name], id=job.name, next_run_time=first_at)
        self._timer.start()

    def stop(self) -> None:
        """Ask for nothing more. The daemon ends a run that is in progress."""
        self._timer.shutdown(wait=False)

    def find_wait_s(self, name: str) -> float | None:
        """Return the seconds until a job runs next, None for one that it does not run."""
        job = self._timer.get_job(name)
        return max(0.0, (job.next_run_time - datetime.now(UTC)).total_seconds()) if job else None

    def run_after(self, name: str, wait_s: float) -> None:
        """Run a job after so many seconds, then at its interval."""
        with suppress(JobLookupError, SchedulerNotRunningError):
            self._timer.modify_job(name, next_run_time=_convert_wait(wait_s))

    def follow_clock(self) -> None:
        """Look at the clock, now and then: APScheduler waits by another one, which stands still while a machine sleeps.

        A wait that is longer than any is of a clock that was ahead: it is over.
        """
        for job in self._timer.get_jobs():
            if job.next_run_time > _convert_wait(max(_LONGEST_WAIT_S, job.trigger.interval_length)):
                self.run_after(job.id, 0.0)
        self._timer.wakeup()

    def _fire(self, name: str) -> None:
        try:
            self._call(RunJob(name=name, by="scheduler"))
        except Conflict as refusal:
            log.debug("job %s: %s", name, refusal.message)
        except MemorydError as error:
            log.info("job %s: %s", name, error.message)
            self.run_after(name, _AGAIN_S)
        except Exception:
            log.exception("job %s could not be asked for", name)
            self.run_after(name, _AGAIN_S)


def _convert_wait(wait_s: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=wait_s)

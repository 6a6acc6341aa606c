"""The scheduler of background jobs: it asks the daemon to run each job when it is due. It imports only the client.

APScheduler decides when: each job has an interval, missed runs are merged into one (`coalesce`), however late it is
(`misfire_grace_time`), and a job never runs twice at once (`max_instances`). The daemon keeps the state that must
survive a restart: it returns the time until the first run of each job, and refuses to run a paused or suspended one.

Threads: APScheduler's, and one that makes the calls, one after another.
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

_STAGGER_S = 0.05  # between jobs that are due at the same time, so that they run in the order of the table
_RETRY_S = 60.0  # after a call without a reply
_LONGEST_WAIT_S = 3600.0  # after failures of a job with a shorter interval

log = logging.getLogger(__name__)


class Interval(IntervalTrigger):  # type: ignore[misc]
    """An interval that restarts after missed runs, so that a clock that jumps by years causes no loop over them."""

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime | None:
        """Return the time of the next run; if a run was missed, one interval after `now`."""
        due: datetime | None = super().get_next_fire_time(previous_fire_time, now)
        return due if previous_fire_time is None or due is None or due > now else now + self.interval


class Scheduler:
    """Runs jobs that are due. `call` sends a call and returns its result."""

    def __init__(self, call: Callable[[Any], Any]) -> None:
        logging.getLogger("apscheduler").setLevel(logging.ERROR)  # the daemon itself logs the results of runs
        self._call = call
        self._timer = BackgroundScheduler(
            executors={"default": ThreadPoolExecutor(1)},
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
            timezone=UTC,
        )

    def start(self) -> None:
        """Schedule the jobs that have an interval; those that are due run at once."""
        found = self._call(Jobs())
        for number, job in enumerate(found.jobs):
            if job.every_s:
                # A paused job is requested at its interval, too; the daemon refuses it.
                wait_s = job.every_s if job.next_run_at is None else job.next_run_at - found.at
                first_at = _convert_wait(wait_s + number * _STAGGER_S)
                trigger = Interval(seconds=job.every_s, timezone=UTC)
                self._timer.add_job(self._fire, trigger, args=[job.name], id=job.name, next_run_time=first_at)
        self._timer.start()

    def stop(self) -> None:
        """Request no further runs. The daemon itself ends a run that is in progress."""
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
        """Check the clock from time to time: APScheduler uses one that stops while the machine is suspended.

        A wait longer than any interval means that the clock was ahead before; the job is then due.
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
            self.run_after(name, _RETRY_S)
        except Exception:
            log.exception("job %s could not be requested", name)
            self.run_after(name, _RETRY_S)


def _convert_wait(wait_s: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=wait_s)

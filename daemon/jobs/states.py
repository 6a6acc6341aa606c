"""The states of jobs in the database: whether a job is paused, when it last ran, how often it failed in a row.

After a failure a job waits for a minute, doubled with each further failure in a row, up to an hour. After five failures
it is in quarantine until it is resumed, or succeeds when run by hand.

The scheduler decides when a job is due. This module tells it how long to wait after a start, a failure, a resume and a
run by hand.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Literal

from memoryd.client.errors import Conflict, NotFound
from memoryd.client.protocol import Job, JobList, JobRun
from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs.table import JobRow
from memoryd.daemon.store import jobs as kept
from memoryd.daemon.store.jobs import JobState
from memoryd.daemon.store.writer import Transaction

if TYPE_CHECKING:
    from memoryd.scheduler.runner import Scheduler

FAILURES = 5  # in a row, after which a job waits for `memctl jobs resume`
BACKOFF_S, LONGEST_BACKOFF_S = 60.0, 3600.0

Queued = Callable[[str], Literal["running", "queued"] | None]


class States:
    """The states of the jobs in a table. Threads: any."""

    def __init__(self, core: Core, table: Mapping[str, JobRow]) -> None:
        self._core, self.table = core, table
        self.scheduler: Scheduler | None = None  # set when it is started

    def check_known(self, name: str) -> None:
        """Raise `NotFound` if a job is not in the table."""
        if name not in self.table:
            raise NotFound(f"There is no job {name!r}; there are {', '.join(self.table)}.", {"jobs": list(self.table)})

    def interval_s(self, name: str) -> float:
        """Return the seconds between runs of a job, 0 if it runs only by hand."""
        settings = self._core.config.jobs
        return settings.every_s.get(name, self.table[name].every_s) if settings.enabled else 0.0

    def check_allowed(self, name: str) -> None:
        """Raise `Conflict` if a job must not run by itself now."""
        with self._core.store.reading() as connection:
            if not self._runs_by_itself(name, kept.read_state(connection, name)):
                raise Conflict(f"The job {name} is paused, in quarantine or runs only by hand.", {"job": name})

    def _find_next_run(self, name: str, state: JobState) -> float | None:
        """Return when a job runs next, None if it does not run by itself."""
        if not self._runs_by_itself(name, state):
            return None
        wait_s = self.scheduler.find_wait_s(name) if self.scheduler else None
        return self._core.clock() + (self._find_first_wait_s(name, state) if wait_s is None else wait_s)

    def jobs(self, queued: Queued) -> JobList:
        """Return all jobs."""
        with self._core.store.reading() as connection:
            states = kept.read_states(connection)
            latest = {name: kept.read_latest(connection, name, 1) for name in self.table}
        jobs = [self._build_job(name, states.get(name, JobState()), latest[name], queued) for name in self.table]
        return JobList(jobs=jobs, at=self._core.clock())

    def change(self, name: str, paused: bool, queued: Queued) -> "Future[Job]":
        """Pause a job, or resume it, which also ends a quarantine and a back-off."""

        def write(transaction: Transaction) -> Job:
            connection = transaction.connection
            state = kept.read_state(connection, name)
            state = state._replace(paused=True) if paused else JobState(last_run_at=state.last_run_at)
            kept.keep(connection, name, state)
            if not paused:
                self._reschedule(name, state)
            return self._build_job(name, state, kept.read_latest(connection, name, 1), queued)

        return self._core.store.write(write, over_limit=True)

    def note_end(self, run: JobRun, stopped: bool) -> JobRun:
        """Store the end of a run; return it with the time of the next run. A run that a stop interrupted stays due."""

        def write(transaction: Transaction) -> JobRun:
            stored_run = run if run.run is None else kept.end(transaction.connection, run)
            return self._note_end(transaction, stored_run, run.started_at if not stopped else None)

        return self._core.store.write(write, over_limit=True).result()

    def recover(self) -> "Future[list[JobRun]]":
        """Mark the runs that a crash interrupted. They count as failures, because the job may have caused the crash."""

        def write(transaction: Transaction) -> list[JobRun]:
            return [self._note_end(transaction, run, None) for run in kept.cut_off(transaction.connection)]

        return self._core.store.write(write, over_limit=True)

    def _note_end(self, transaction: Transaction, run: JobRun, began_at: float | None) -> JobRun:
        connection = transaction.connection
        state = kept.read_state(connection, run.job)
        if began_at is not None:
            state = state._replace(last_run_at=began_at)
        if run.outcome == "failed" or run.error == kept.CUT_OFF:
            pause_s = min(LONGEST_BACKOFF_S, BACKOFF_S * 2 ** min(state.failures, 30))
            state = state._replace(failures=state.failures + 1, not_before=self._core.clock() + pause_s)
        elif run.outcome == "done":
            state = state._replace(failures=0, not_before=None)
        kept.keep(connection, run.job, state)
        if run.job in self.table:
            if run.by == "hand" or state.failures:
                self._reschedule(run.job, state)
            run.next_run_at = self._find_next_run(run.job, state)
        return run

    def _reschedule(self, name: str, state: JobState) -> None:
        """Tell the scheduler about a run by hand, a failure or a resume."""
        if self.scheduler:
            self.scheduler.run_after(name, self._find_first_wait_s(name, state))

    def _find_first_wait_s(self, name: str, state: JobState) -> float:
        """Return how long a job has to wait after a start, by its state; ignore times in the future."""
        now = self._core.clock()
        if state.not_before is not None:
            wait_s = state.not_before - now
            return max(0.0, wait_s) if wait_s <= LONGEST_BACKOFF_S else 0.0
        if state.last_run_at is None or state.last_run_at > now:
            return 0.0
        return max(0.0, state.last_run_at + self.interval_s(name) - now)

    def _runs_by_itself(self, name: str, state: JobState) -> bool:
        return bool(self.interval_s(name)) and not state.paused and not self._is_quarantined(state)

    def _is_quarantined(self, state: JobState) -> bool:
        return state.failures >= FAILURES

    def _build_job(self, name: str, state: JobState, latest: Sequence[JobRun], queued: Queued) -> Job:
        row, every_s = self.table[name], self.interval_s(name)
        resting: Literal["quarantined", "waiting", "off"] = "waiting" if every_s else "off"
        if self._is_quarantined(state):
            resting = "quarantined"
        return Job(
            name=name,
            about=row.about,
            state=queued(name) or ("paused" if state.paused else resting),
            every_s=every_s,
            deadline_s=row.deadline_s,
            failures=state.failures,
            last_run_at=state.last_run_at,
            next_run_at=self._find_next_run(name, state),
            last=next(iter(latest), None),
        )

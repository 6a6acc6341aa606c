"""What is known of each job: whether it runs by itself, when it is due, how its runs went. It is in the database.

After a failure a job backs off: a minute, doubled with each further failure in a row, at most an hour. After
five of them it is in quarantine until it is resumed, or succeeds when run by hand.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Literal

from memoryd.client.errors import Conflict, NotFound
from memoryd.client.protocol import Job, JobList, JobRun
from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs.table import Row
from memoryd.daemon.store import jobs as kept
from memoryd.daemon.store.jobs import JobState
from memoryd.daemon.store.writer import Transaction

FAILURES = 5  # in a row, after which a job waits for `memctl jobs resume`
BACKOFF_S, LONGEST_BACKOFF_S = 60.0, 3600.0

Queued = Callable[[str], Literal["running", "queued"] | None]


class Agenda:
    """The jobs of a table. Threads: any."""

    def __init__(self, core: Core, table: Mapping[str, Row]) -> None:
        self._core, self.table = core, table

    def check_known(self, name: str) -> None:
        """Raise `NotFound` for a job that is not in the table."""
        if name not in self.table:
            raise NotFound(f"There is no job {name!r}; there are {', '.join(self.table)}.", {"jobs": list(self.table)})

    def interval_s(self, name: str) -> float:
        """Return the seconds between runs of a job, 0 when it runs only by hand."""
        settings = self._core.config.jobs
        return settings.every_s.get(name, self.table[name].every_s) if settings.enabled else 0.0

    def find_next_run(self, name: str, state: JobState) -> float | None:
        """Return when a job is due, None while it does not run by itself. One that never ran is due now.

        So is one whose times are from a clock that was ahead: else it would wait until the clock is there again.
        """
        every_s, now = self.interval_s(name), self._core.clock()
        if not every_s or state.paused or self._is_quarantined(state):
            return None
        if state.not_before is not None:
            return now if state.not_before > now + LONGEST_BACKOFF_S else max(state.not_before, now)
        if state.last_run_at is None or state.last_run_at > now:
            return now
        return max(state.last_run_at + every_s, now)

    def check_due(self, name: str) -> None:
        """Raise `Conflict`, which says when to ask again, unless a job is due."""
        with self._core.store.reading() as connection:
            due_at = self.find_next_run(name, kept.read_state(connection, name))
        if due_at is None or due_at > self._core.clock():
            raise Conflict(f"The job {name} is not due.", {"job": name, "next_run_at": due_at})

    def jobs(self, queued: Queued) -> JobList:
        """Return all jobs."""
        with self._core.store.reading() as connection:
            states = kept.read_states(connection)
            latest = {name: kept.read_latest(connection, name, 1) for name in self.table}
        found = [self._build_job(name, states.get(name, JobState()), latest[name], queued) for name in self.table]
        return JobList(jobs=found, at=self._core.clock())

    def change(self, name: str, paused: bool, queued: Queued) -> "Future[Job]":
        """Pause a job, or resume it, which also ends a quarantine and a back-off."""

        def write(transaction: Transaction) -> Job:
            connection = transaction.connection
            state = kept.read_state(connection, name)
            state = state._replace(paused=True) if paused else JobState(last_run_at=state.last_run_at)
            kept.keep(connection, name, state)
            return self._build_job(name, state, kept.read_latest(connection, name, 1), queued)

        return self._core.store.write(write, over_limit=True)

    def note_end(self, run: JobRun, stopped: bool) -> JobRun:
        """Keep how a run ended; return it with the time of the next. One that the daemon's end cut short stays due."""

        def write(transaction: Transaction) -> JobRun:
            done = run if run.run is None else kept.end(transaction.connection, run)
            return self._note_end(transaction, done, run.started_at if not stopped else None)

        return self._core.store.write(write, over_limit=True).result()

    def recover(self) -> "Future[list[JobRun]]":
        """Note the runs that a crash cut off. Each counts as a failure: a job that kills the daemon shall rest."""

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
        run.next_run_at = self.find_next_run(run.job, state) if run.job in self.table else None
        return run

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
            next_run_at=self.find_next_run(name, state),
            last=next(iter(latest), None),
        )

"""Execute jobs one at a time on a low-priority thread.

Runs started by hand come before those of the scheduler, and are possible while the job is paused. The scheduler, which
knows when a job is due, is refused while a job is paused or in quarantine.

Threads: the runner has its own, started with the first run; its methods may be called by any thread.
"""

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Literal, NamedTuple

from memoryd.client.errors import Conflict, Unavailable
from memoryd.client.protocol import Job, JobList, JobRun, Jobs, PlannedStep, Progress, RunJob
from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs.plans import MAX_STEPS, Plan, Plans
from memoryd.daemon.jobs.run import Run, Stopped, Terms
from memoryd.daemon.jobs.states import States
from memoryd.daemon.jobs.table import JobRow, list_jobs
from memoryd.daemon.registry import ReportProgress
from memoryd.daemon.store import jobs

_REPORT_EVERY_S = 0.1
_CLOSE_LIMIT_S = 1.0
_AGAIN_S = 0.05
_ENDING = "The daemon was stopped; the rest comes next time."
_PAUSED = "The job was paused; the rest comes when it is resumed."

log = logging.getLogger(__name__)


class _Order(NamedTuple):
    call: RunJob
    report: ReportProgress
    future: "Future[JobRun]"


class Runner:
    """The queue of runs and the thread that executes them."""

    def __init__(
        self, core: Core, table: Mapping[str, JobRow] | None = None, ticks: Callable[[], float] = time.monotonic
    ) -> None:
        self._core, self._ticks = core, ticks
        self.states = States(core, list_jobs() if table is None else table)
        self._plans = Plans()
        self._orders: deque[_Order] = deque()
        self._current: _Order | None = None
        self._stop = ""  # why the current run must end
        self._reported_at = 0.0
        self._closing, self._wake = threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Mark runs that were interrupted by a crash."""
        for run in self.states.recover().result():
            log.warning("job %s was running when the daemon crashed", run.job)

    def close(self) -> None:
        """Interrupt the current run and fail the queued ones. Slices that were applied stay."""
        with self._lock:
            self._closing.set()
            self._stop = _ENDING
            waiting = list(self._orders)
            self._orders.clear()
        self._wake.set()
        for order in waiting:
            order.future.set_exception(Unavailable("The daemon is stopping."))
        give_up_at = time.monotonic() + _CLOSE_LIMIT_S
        while self._thread is not None and self._thread.is_alive() and time.monotonic() < give_up_at:
            if self._thread.ident is not None:  # repeated, since a new statement may have begun
                self._core.store.readers.interrupt(self._thread.ident)
            self._thread.join(_AGAIN_S)

    # Calls -----------------------------------------------------------------------------------------------------------

    def run(self, call: RunJob, report: ReportProgress) -> "Future[JobRun]":
        """Queue a run; the future holds its result. Raise `Conflict` if the job is running or may not run."""
        self.states.check_known(call.name)
        if call.plan is not None:
            self._plans.get(call.plan, call.name)
        if call.by == "scheduler":
            self.states.check_allowed(call.name)
        order = _Order(call, report, Future())
        with self._lock:
            if self._closing.is_set():
                raise Unavailable("The daemon is stopping.", {"retry_after_ms": 100})
            if self._find_state(call.name):
                raise Conflict(f"The job {call.name} is running already.", {"job": call.name})
            if self._thread is None:
                self._thread = self._core.supervisor.start("jobs", self._serve, self._closing, self._wake, nice=True)
            by_hand = sum(waiting.call.by == "hand" for waiting in self._orders)
            self._orders.insert(by_hand if call.by == "hand" else len(self._orders), order)
        self._wake.set()
        return order.future

    def pause(self, name: str) -> "Future[Job]":
        """Stop the scheduler from running a job, and interrupt its current run."""
        self.states.check_known(name)
        with self._lock:
            if self._current and self._current.call.name == name and not self._current.call.dry_run:
                self._stop = self._stop or _PAUSED
        return self.states.change(name, True, self._find_state)

    def resume(self, name: str) -> "Future[Job]":
        """End a pause, a quarantine or a back-off."""
        self.states.check_known(name)
        return self.states.change(name, False, self._find_state)

    def list(self) -> JobList:
        """Return all jobs."""
        return self.states.jobs(self._find_state)

    def report(self, call: Jobs) -> JobList:
        """Return the jobs of a call, and their latest runs."""
        listed = self.list()
        if call.name is not None:
            self.states.check_known(call.name)
            listed.jobs = [job for job in listed.jobs if job.name == call.name]
        with self._core.store.reading() as connection:
            listed.runs = jobs.read_latest(connection, call.name, call.limit)
        return listed

    def _find_state(self, name: str) -> Literal["running", "queued"] | None:
        current = self._current
        if current and current.call.name == name:
            return "running"
        return "queued" if any(order.call.name == name for order in list(self._orders)) else None

    # The thread ------------------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        """Execute the queued runs, once the database can be opened."""
        with self._core.store.reading():
            pass
        while (order := self._take_next()) is not None:
            try:
                result = self._run_order(order)
            except BaseException as error:
                self._finish()
                # A run that `close` interrupted may fail with the error of a statement instead of `Stopped`.
                is_stopped = isinstance(error, Stopped) or bool(self._stop)
                order.future.set_exception(Conflict(str(self._stop or error)) if is_stopped else error)
            else:
                self._finish()
                order.future.set_result(result)

    def _take_next(self) -> _Order | None:
        with self._lock:
            if not self._orders or self._closing.is_set():
                return None
            self._current, self._stop = self._orders.popleft(), ""
            return self._current

    def _finish(self) -> None:
        """Allow the next run of the job, before the future of this one is done."""
        with self._lock:
            self._current = None

    def _run_order(self, order: _Order) -> JobRun:
        call = order.call
        row = self.states.table[call.name]
        terms = Terms(call.by, self._ticks() + row.deadline_s, self._ticks, lambda: self._stop, self._report)
        run = Run(self._core, call.name, row.work, terms)
        if call.dry_run:
            return self._plan(run, call)
        plan = None if call.plan is None else self._plans.get(call.plan, call.name)
        ended = run.execute(plan)
        if call.plan is not None:
            self._plans.forget_applied(call.plan, run.applied)
        stored_run = self.states.note_end(ended, self._closing.is_set() and ended.outcome == "interrupted")
        log.log(
            logging.WARNING if stored_run.outcome == "failed" else logging.DEBUG,
            "job %s %s in %.0f ms: %s %s",
            stored_run.job,
            stored_run.outcome,
            stored_run.took_ms,
            stored_run.counts,
            stored_run.error,
        )
        self._core.events.report_run(stored_run)
        return stored_run

    def _report(self, stage: str, done: int, total: int) -> None:
        """Report progress to the caller of the run, and to callers whose runs wait for it."""
        now = time.monotonic()
        current = self._current
        if current is None or (now - self._reported_at < _REPORT_EVERY_S and done < total):
            return
        self._reported_at = now
        current.report(Progress(stage=stage, done=done, total=total))
        for order in list(self._orders):
            order.report(Progress(stage=f"waiting for {current.call.name}", done=done, total=total))

    # Plans -----------------------------------------------------------------------------------------------------------

    def _plan(self, run: Run, call: RunJob) -> JobRun:
        """Make and store a plan, or read a stored one; return the requested part."""
        started_at, began = self._core.clock(), time.perf_counter()
        if call.plan is None:
            steps, more = run.make_plan(MAX_STEPS, dry_run=True)
            with self._core.store.reading() as connection:
                states = jobs.read_targets(connection, [step.target for step in steps])
            plan = Plan(call.name, steps, states, more)
            id = self._plans.keep(plan)
        else:
            id, plan = call.plan, self._plans.get(call.plan, call.name)
        part = plan.steps[call.offset : call.offset + call.limit]
        with self._core.store.reading() as connection:
            previews = jobs.read_previews(connection, [step.target for step in part])
        return JobRun(
            job=call.name,
            outcome="planned",
            by=call.by,
            started_at=started_at,
            took_ms=(time.perf_counter() - began) * 1000,
            counts=dict(Counter(step.action for step in plan.steps)),
            plan=id,
            total=len(plan.steps),
            more=plan.more,
            steps=[
                PlannedStep(action=s.action, target=s.target, reason=s.reason, preview=previews.get(s.target, ""))
                for s in part
            ],
        )

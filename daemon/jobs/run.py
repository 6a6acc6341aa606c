"""One run of a job: plan it outside the writer, then apply it in slices that hold the writer for a few ms.

The size of slices is adapted so that each takes about `SLICE_S`. After each slice the run rests briefly; while clients
are served, it rests as long as the slice took. If a slice fails, the failing step is found and skipped, so that one bad
memory does not block the others; the run then counts as failed.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, TypeVar

from memoryd.client.errors import MemorydError, StorageFailed
from memoryd.client.protocol import JobRun, Outcome, RunBy, SkippedStep
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.work import LOOK, SLICE_S, Step, Work
from memoryd.daemon.jobs.plans import Plan
from memoryd.daemon.store import database_settings, history, jobs
from memoryd.daemon.store.writer import Transaction, wait_patiently
from memoryd.daemon.system.timekeeper import SETTING

ROUND = 10_000  # steps that are planned before they are applied
FIRST_SLICE, LARGEST_SLICE = 4, 2000
SLICE_LIMIT_S = 5.0  # after a slower slice the run is interrupted
MAX_FAILED = 10  # after this many failed steps a run gives up
MAX_SKIPPED = 1000  # skipped steps in the report
_NOT_DONE = ("skipped", "failed")

T = TypeVar("T")

log = logging.getLogger(__name__)


class Stopped(Exception):
    """The run must end before it is complete; the message says why."""


class Terms(NamedTuple):
    """The conditions of a run: who started it, its deadline, and callbacks."""

    by: RunBy
    give_up_at: float  # by `ticks`
    ticks: Callable[[], float]
    stopping: Callable[[], str]  # returns why the run must stop, else an empty text
    report: Callable[[str, int, int], None]  # stage, done, total


class Run:
    """A run in progress."""

    def __init__(self, core: Core, name: str, work: Work, terms: Terms) -> None:
        self.core, self.name, self.work, self.terms = core, name, work, terms
        self.counts: dict[str, int] = {}
        self.skipped: list[SkippedStep] = []
        self.applied = 0  # steps of the plan that were applied
        self._number: int | None = None
        self._operation: str | None = None
        self._size = FIRST_SLICE
        self._failed: list[tuple[Step, Exception]] = []
        self._rested_at = time.perf_counter()

    # Planning and executing ------------------------------------------------------------------------------------------

    def make_plan(self, limit: int, dry_run: bool = False) -> tuple[list[Step], bool]:
        """Return at most `limit` steps, and whether there are more."""
        plan = self.work.look if dry_run and self.work.look else self.work.plan
        iterator = iter(plan(self.core, self.core.clock.read_settled()))
        try:
            steps = self._pause_between(iterator)
            return list(islice(steps, limit)), next(steps, None) is not None
        finally:
            if close := getattr(iterator, "close", None):
                close()  # the generator may hold a snapshot of the database

    def _pause_between(self, steps: Iterable[Step]) -> Iterator[Step]:
        """Yield the planned steps; between them rest as after slices, and stop when the run must end."""
        planned = 0
        for step in steps:
            took_s = time.perf_counter() - self._rested_at
            if took_s >= SLICE_S:
                self.check()
                self.terms.report("plan", planned, 0)
                if self.core.crowded():
                    self.core.rest(took_s)
                self._rested_at = time.perf_counter()
            if step is not LOOK:
                planned += 1
                yield step

    def execute(self, plan: Plan | None = None) -> JobRun:
        """Execute a plan, or all work that is due; return the result."""
        started_at, began = self.core.clock(), time.perf_counter()
        outcome: Outcome = "done"
        error = ""
        try:
            self._number = self._write(lambda transaction: self._begin(transaction, started_at), True)
            self._run_steps(plan)
            if self._failed:
                step, first = self._failed[0]
                outcome, error = "failed", f"{step.action} {step.target}: {self._describe_error(first)}"
                if len(self._failed) > 1:
                    error += f" {len(self._failed)} steps failed in all."
        except Stopped as reason:
            outcome, error = "interrupted", str(reason)
        except Exception as trouble:
            why = self.terms.stopping()  # the error may come from an interrupted statement
            outcome, error = ("interrupted", why) if why else ("failed", self._describe_error(trouble))
        return JobRun(
            job=self.name,
            outcome=outcome,
            by=self.terms.by,
            started_at=started_at,
            took_ms=(time.perf_counter() - began) * 1000,
            run=self._number,
            counts=self.counts,
            operation=self._operation,
            error=error,
            total=self.applied,
            skipped=self.skipped,
        )

    def _begin(self, transaction: Transaction, at: float) -> int:
        """Record the start of the run, and the state of the clock."""
        database_settings.put(transaction.connection, SETTING, self.core.clock.update())
        return jobs.begin(transaction.connection, self.name, at, self.terms.by)

    def check(self) -> None:
        """Raise `Stopped` if the run must end now."""
        if reason := self.terms.stopping():
            raise Stopped(reason)
        if self.terms.ticks() >= self.terms.give_up_at:
            raise Stopped("The time limit of a run was reached; the next run continues.")

    # Steps -----------------------------------------------------------------------------------------------------------

    def _run_steps(self, plan: Plan | None) -> None:
        if plan is not None:
            self._apply(plan.steps, plan)
            return
        more = True
        while more:
            steps, more = self.make_plan(ROUND)
            before = self._count_done()
            self._apply(steps)
            more = more and self._count_done() > before  # without progress the next plan would be the same

    def _count_done(self) -> int:
        return sum(number for name, number in self.counts.items() if name not in _NOT_DONE)

    def _apply(self, steps: Sequence[Step], plan: Plan | None = None) -> None:
        number = 0
        while number < len(steps):
            self.check()
            if not self.work.at_limit:
                self.core.store.check_room()
            self.terms.report("apply", number, len(steps))
            part = steps[number : number + (1 if self.work.alone else self._size)]
            if self.work.alone:
                self._count(self.work.alone(self.core, part[0], self._check_of(number, len(steps))))
            else:
                self._apply_slices(part, plan)
            number += len(part)
            self.applied += len(part)
        self.terms.report("apply", number, len(steps))

    def _check_of(self, number: int, total: int) -> Callable[[], None]:
        def check() -> None:
            self.check()
            self.terms.report("apply", number, total)

        return check

    def _apply_slices(self, steps: Sequence[Step], plan: Plan | None) -> None:
        """Apply steps as one slice; if that fails, split it to find the failing step."""
        try:
            took_s = self._apply_slice(steps, plan)
        except (StorageFailed, Stopped):
            raise
        except Exception as error:
            if len(steps) > 1:
                middle = len(steps) // 2
                self._apply_slices(steps[:middle], plan)
                self._apply_slices(steps[middle:], plan)
                return
            log.warning("job %s: %s %s failed: %s", self.name, steps[0].action, steps[0].target, error)
            self._failed.append((steps[0], error))
            self._count({"failed": 1})
            if len(self._failed) >= MAX_FAILED:
                raise
            return
        self._size = resize(len(steps), took_s, SLICE_S)
        if took_s > SLICE_LIMIT_S:
            raise Stopped(f"A slice of {len(steps)} steps took {took_s:.1f} s.")
        self.core.rest(took_s)

    def _apply_slice(self, steps: Sequence[Step], plan: Plan | None) -> float:
        """Apply one slice in the writer's transaction; return the seconds that it held the writer."""

        def write(transaction: Transaction) -> tuple[str, dict[str, int], list[SkippedStep], float]:
            assert self.work.apply is not None
            began = time.perf_counter()
            connection = transaction.connection
            operation = self._operation
            if operation is None:
                operation = history.begin(connection, history.JOB + self.name, "", self.core.clock())
            skipped = _find_changed(transaction, steps, plan) if plan else {}
            sound = [step for step in steps if step.target not in skipped]
            counts = self.work.apply(self.core, transaction, sound, operation) if sound else {}
            if skipped:
                counts = _sum(counts, {"skipped": len(steps) - len(sound)})
            assert self._number is not None
            jobs.note(connection, self._number, _sum(self.counts, counts), operation)
            reports = [
                SkippedStep(action=step.action, target=step.target, reason=skipped[step.target])
                for step in steps
                if step.target in skipped
            ]
            return operation, counts, reports, time.perf_counter() - began

        self._operation, counts, reports, took_s = self._write(write, self.work.at_limit)
        self._count(counts)
        self.skipped += reports[: MAX_SKIPPED - len(self.skipped)]
        return took_s

    def _write(self, job: Callable[[Transaction], T], over_limit: bool) -> T:
        return wait_patiently(lambda: self.core.store.write(job, over_limit=over_limit), self.check)

    def _count(self, counts: dict[str, int]) -> None:
        self.counts = _sum(self.counts, counts)

    def _describe_error(self, error: Exception) -> str:
        if not isinstance(error, MemorydError):
            log.error("job %s failed", self.name, exc_info=error)
        return error.message if isinstance(error, MemorydError) else f"{type(error).__name__}: {error}"


def resize(size: int, took_s: float, aim_s: float) -> int:
    """Return the size of the next slice, at most doubled, after one of `size` steps took `took_s`."""
    fitting = int(size * aim_s / max(took_s, 1e-6))
    return max(1, min(fitting, 2 * size, LARGEST_SLICE))


def _find_changed(transaction: Transaction, steps: Sequence[Step], plan: Plan) -> dict[str, str]:
    """Return the targets that have changed since the plan was made, with the reason to skip them."""
    now = jobs.read_targets(transaction.connection, [step.target for step in steps])
    reasons = {}
    for step in steps:
        before, after = plan.states.get(step.target), now.get(step.target)
        if before != after:
            reasons[step.target] = "it no longer exists" if after is None else "it changed since the plan was made"
    return reasons


def _sum(counts: dict[str, int], more: dict[str, int]) -> dict[str, int]:
    return {name: counts.get(name, 0) + more.get(name, 0) for name in {**counts, **more}}

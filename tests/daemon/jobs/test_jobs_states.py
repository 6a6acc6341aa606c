"""What is kept of jobs: last runs, pauses, back-off, quarantine; all of it survives a restart. On an injected clock."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memoryd.client.errors import Conflict
from memoryd.client.protocol import Job, RunJob
from memoryd.daemon.config import Config
from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs import states
from memoryd.daemon.jobs.runner import Runner
from moving import Mover, run, runner, tiers
from workbench import LIMIT_S, CountingEmbedder, add_many, running


@pytest.fixture
def mover(monkeypatch: pytest.MonkeyPatch) -> Mover:
    monkeypatch.setattr(states, "FAILURES", 3)
    return Mover()


@pytest.fixture
def started(folder: Path, clock: Any, mover: Mover) -> Iterator[Callable[..., Runner]]:
    """Open the database, anew each time: `started()`."""
    open_now: list[Any] = []

    def close() -> None:
        while open_now:
            jobs, context = open_now.pop()
            jobs.close()
            context.__exit__(None, None, None)

    def start(**settings: Any) -> Runner:
        close()
        config = msgspec.convert({"jobs": settings}, Config)
        context = running(folder, CountingEmbedder(), clock=clock, config=config)
        jobs = runner(context.__enter__(), mover)
        jobs.start()
        open_now.append((jobs, context))
        return jobs

    yield start
    close()


def job(jobs: Runner) -> Job:
    return jobs.list().jobs[0]


def due(jobs: Runner) -> float | None:
    """Return when the job runs next, 0 when that is now (and then it does)."""
    at = job(jobs).next_run_at
    if at is None:
        with pytest.raises(Conflict, match="paused, in quarantine or runs only by hand"):
            run(jobs, by="scheduler")
    elif at <= jobs._core.clock():
        run(jobs, by="scheduler")
        return 0.0
    return at


def test_however_many_runs_were_missed_there_is_one_after_a_restart(started: Any, clock: Any) -> None:
    assert due(started()) == 0.0
    clock.advance(10 * 300 + 7)
    jobs = started()
    assert job(jobs).next_run_at == clock.now
    assert due(jobs) == 0.0
    assert due(jobs) == clock.now + 300


def test_the_interval_goes_on_where_a_restart_left_it(started: Any, clock: Any) -> None:
    assert due(started()) == 0.0
    began = clock.now
    clock.advance(100)
    assert job(started()).next_run_at == began + 300


def test_a_clock_that_was_set_back_delays_no_job(started: Any, clock: Any) -> None:
    jobs = started()
    assert due(jobs) == 0.0
    clock.advance(-1e6)
    assert due(jobs) == 0.0
    assert due(jobs) == clock.now + 300
    clock.advance(300)
    assert due(jobs) == 0.0


def test_a_back_off_of_a_clock_that_was_set_back_is_over(started: Any, clock: Any, mover: Mover) -> None:
    jobs = started()
    mover.broken = True
    assert due(jobs) == 0.0
    assert due(jobs) == clock.now + 60
    clock.advance(-1e6)
    assert due(jobs) == 0.0


def test_intervals_are_configurable_and_zero_means_by_hand_only(started: Any, clock: Any) -> None:
    jobs = started(every_s={"move": 7.0, "other": 0.0})
    assert due(jobs) == 0.0
    assert due(jobs) == clock.now + 7
    other = jobs.list().jobs[1]
    assert (other.state, other.every_s, other.next_run_at) == ("off", 0.0, None)
    assert run(jobs, "other").outcome == "done"


def test_with_jobs_disabled_nothing_runs_by_itself(started: Any) -> None:
    jobs = started(enabled=False)
    assert {j.state for j in jobs.list().jobs} == {"off"}
    assert due(jobs) is None
    assert run(jobs).outcome == "done"


def test_a_paused_job_runs_only_by_hand_also_after_a_restart(started: Any, clock: Any) -> None:
    jobs = started()
    assert jobs.pause("move").result().state == "paused"
    assert due(jobs) is None
    jobs = started()
    assert (job(jobs).state, job(jobs).next_run_at) == ("paused", None)
    assert due(jobs) is None
    assert run(jobs).outcome == "done"
    assert jobs.resume("move").result().state == "waiting"
    assert job(started()).next_run_at == clock.now + 300


def test_a_pause_interrupts_the_run_and_keeps_what_was_done(core: Core, mover: Mover) -> None:
    add_many(core, [f"Crane number {n}" for n in range(200)], dedup=False)
    jobs = runner(core, mover)
    mover.gate.clear()
    future = jobs.run(RunJob(name="move"), lambda event: None)
    assert mover.under_way.wait(LIMIT_S)
    paused = jobs.pause("move")
    mover.gate.set()
    assert paused.result(LIMIT_S).state in ("running", "paused")
    done = future.result(LIMIT_S)
    assert (done.outcome, done.error) == ("interrupted", "The job was paused; the rest comes when it is resumed.")
    assert list(tiers(core).values()).count("L2") == done.counts["moved"] > 0
    jobs.close()


def test_a_failing_job_backs_off_and_is_quarantined_until_it_is_resumed(started: Any, clock: Any, mover: Mover) -> None:
    jobs = started()
    mover.broken = True
    pauses = []
    for _ in range(3):
        assert due(jobs) == 0.0
        found = due(jobs)
        if found is not None:
            pauses.append(found - clock.now)
            clock.now = found
    assert pauses == [60, 120]
    assert (job(jobs).state, job(jobs).failures, job(jobs).next_run_at) == ("quarantined", 3, None)
    jobs = started()
    clock.advance(1e6)
    assert (job(jobs).state, due(jobs)) == ("quarantined", None)
    mover.broken = False
    resumed = jobs.resume("move").result()
    assert (resumed.state, resumed.failures) == ("waiting", 0)
    assert due(jobs) == 0.0


def test_a_success_by_hand_ends_a_quarantine_and_one_failure_less_does_not(
    started: Any, clock: Any, mover: Mover
) -> None:
    jobs = started()
    mover.broken = True
    for _ in range(4):
        run(jobs)
    assert job(jobs).state == "quarantined"
    mover.broken = False
    assert run(jobs).outcome == "done"
    assert (job(jobs).state, job(jobs).failures) == ("waiting", 0)
    assert job(jobs).next_run_at == clock.now + 300


def test_back_off_never_exceeds_an_hour(
    started: Any, clock: Any, mover: Mover, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(states, "FAILURES", 100)
    jobs = started()
    mover.broken = True
    for _ in range(10):
        run(jobs)
    assert due(jobs) == clock.now + 3600


class Told:
    """A scheduler that keeps what it is told; it would run each job in 7 s."""

    def __init__(self) -> None:
        self.told: list[tuple[str, float]] = []

    def find_wait_s(self, name: str) -> float | None:
        return 7.0

    def run_after(self, name: str, wait_s: float) -> None:
        self.told.append((name, wait_s))


def test_the_scheduler_says_when_a_job_runs_and_is_told_of_runs_by_hand_of_failures_and_resumes(
    started: Any, clock: Any, mover: Mover
) -> None:
    jobs, scheduler = started(), Told()
    jobs.states.scheduler = scheduler
    assert job(jobs).next_run_at == clock.now + 7
    assert run(jobs, by="scheduler").next_run_at == clock.now + 7
    assert scheduler.told == []
    run(jobs)
    mover.broken = True
    run(jobs, by="scheduler")
    run(jobs, "other", by="scheduler")
    jobs.pause("other").result()
    jobs.resume("other").result()
    assert scheduler.told == [("move", 300.0), ("move", 60.0), ("other", 60.0), ("other", 3600.0)]

"""Runs: slices, outcomes, history, one operation each; with a job of the tests'."""

from collections.abc import Iterator
from typing import Any

import pytest

from memoryd.client.errors import Conflict, StorageFailed, Unavailable
from memoryd.client.protocol import Jobs, NewMemory, Progress, RunJob
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.work import Step, Work
from memoryd.daemon.jobs.run import LARGEST_SLICE, MAX_FAILED, resize
from memoryd.daemon.jobs.runner import Runner
from moving import Mover, everything, run, runner, table, tiers
from workbench import LIMIT_S, add, add_many, search, undo, wait_until

MANY = 400


@pytest.fixture
def mover() -> Mover:
    return Mover()


@pytest.fixture
def jobs(core: Core, mover: Mover) -> Iterator[Runner]:
    made = runner(core, mover)
    yield made
    mover.gate.set()
    made.close()


def fill(core: Core, count: int = MANY) -> list[str]:
    added = add_many(core, [NewMemory(content=f"Crane number {n}") for n in range(count)], dedup=False)
    return [result.id for result in added.results]


@pytest.mark.parametrize("count", [0, 1, 2, MANY])
def test_a_run_does_all_there_is_to_do_and_says_how_much(core: Core, jobs: Runner, count: int) -> None:
    if count:
        fill(core, count)
    done = run(jobs)
    assert (done.outcome, done.by, done.error) == ("done", "hand", "")
    assert done.counts.get("moved", 0) == count
    assert list(tiers(core).values()) == ["L2"] * count
    assert run(jobs).counts.get("moved", 0) == 0


def test_a_whole_run_is_one_operation_that_undo_takes_back_exactly(core: Core, jobs: Runner, mover: Mover) -> None:
    fill(core)
    before = everything(core)
    done = run(jobs)
    assert len(mover.slices) > 3
    undone = undo(core, done.operation)
    assert len(undone.ids) == MANY
    assert everything(core) == before
    undo(core, undone.operation)
    assert set(tiers(core).values()) == {"L2"}


def test_slices_grow_until_they_take_the_time_they_may_and_shrink_again() -> None:
    assert resize(4, 0.001, 0.005) == 8  # at most doubled
    assert resize(100, 0.004, 0.005) == 125
    assert resize(100, 0.050, 0.005) == 10
    assert resize(1, 10.0, 0.005) == 1
    assert resize(LARGEST_SLICE, 0.0, 0.005) == LARGEST_SLICE


def test_writes_and_searches_of_others_go_between_the_slices(core: Core, jobs: Runner, mover: Mover) -> None:
    fill(core)
    mover.gate.clear()
    future = jobs.run(RunJob(name="move"), lambda event: None)
    assert mover.under_way.wait(LIMIT_S)
    written = core.store.set_setting("by", "another")
    assert search(core, "crane").hits  # reads do not wait for the writer
    mover.gate.set()
    written.result(LIMIT_S)
    assert future.result(LIMIT_S).counts["moved"] == MANY


def test_two_runs_of_one_job_are_never_under_way_at_once(core: Core, jobs: Runner, mover: Mover) -> None:
    fill(core, 2)
    mover.gate.clear()
    first = jobs.run(RunJob(name="move"), lambda event: None)
    assert mover.under_way.wait(LIMIT_S)
    for call in (RunJob(name="move"), RunJob(name="move", dry_run=True), RunJob(name="move", by="scheduler")):
        with pytest.raises(Conflict, match="running already"):
            jobs.run(call, lambda event: None)
    queued = jobs.run(RunJob(name="other"), lambda event: None)
    assert [job.state for job in jobs.list().jobs] == ["running", "queued"]
    with pytest.raises(Conflict, match="running already"):
        jobs.run(RunJob(name="other"), lambda event: None)
    mover.gate.set()
    assert first.result(LIMIT_S).outcome == queued.result(LIMIT_S).outcome == "done"
    assert [job.state for job in jobs.list().jobs] == ["waiting", "waiting"]


def test_who_waits_for_another_job_hears_that_it_goes_on(core: Core, jobs: Runner, mover: Mover) -> None:
    fill(core)
    mover.gate.clear()
    first = jobs.run(RunJob(name="move"), lambda event: None)
    assert mover.under_way.wait(LIMIT_S)
    heard: list[Progress] = []
    second = jobs.run(RunJob(name="other"), heard.append)
    mover.gate.set()
    first.result(LIMIT_S)
    second.result(LIMIT_S)
    assert heard[0].stage == "waiting for move"
    assert heard[0].total == MANY


def test_the_deadline_interrupts_a_run_keeps_what_was_done_and_leaves_the_rest(core: Core, mover: Mover) -> None:
    ids = fill(core)
    jobs = runner(core, mover, ticks=lambda: 15.0 * len(mover.slices))  # each slice takes 15 s
    done = run(jobs)
    assert (done.outcome, done.error) == ("interrupted", "The time limit of a run was reached; the next run continues.")
    assert 0 < done.counts["moved"] < MANY
    assert list(tiers(core).values()).count("L2") == done.counts["moved"]
    undo(core, done.operation)
    assert set(tiers(core).values()) == {"L1"}
    jobs.close()
    again = runner(core, mover)
    assert run(again).counts["moved"] == len(ids)
    again.close()


def test_a_slice_that_holds_the_writer_too_long_ends_the_run(
    core: Core, mover: Mover, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(core)
    monkeypatch.setattr("memoryd.daemon.jobs.run.SLICE_LIMIT_S", 1e-9)
    jobs = runner(core, mover)
    done = run(jobs)
    jobs.close()
    assert done.outcome == "interrupted"
    assert "A slice of 4 steps took" in done.error
    assert done.counts["moved"] == 4


def test_a_memory_that_cannot_be_moved_does_not_keep_the_others(core: Core, jobs: Runner) -> None:
    ids = fill(core, 50)
    bad = add(core, "poison ivy").id
    fill(core, 1)
    done = run(jobs)
    assert (done.outcome, done.counts["moved"], done.counts["failed"]) == ("failed", 51, 1)
    assert done.error == f"move {bad}: RuntimeError: this memory cannot be moved"
    assert {id for id, tier in tiers(core).items() if tier == "L1"} == {bad}
    undo(core, done.operation)
    assert set(tiers(core).values()) == {"L1"}
    assert len(ids) == 50


def test_a_run_gives_up_after_several_steps_that_fail(core: Core, jobs: Runner) -> None:
    add_many(core, [NewMemory(content=f"poison {n}") for n in range(3 * MAX_FAILED)], dedup=False)
    done = run(jobs)
    assert (done.outcome, done.counts["failed"]) == ("failed", MAX_FAILED)


def test_a_job_that_fails_while_it_plans_is_told_in_a_sentence(core: Core, jobs: Runner, mover: Mover) -> None:
    mover.broken = True
    done = run(jobs)
    assert (done.outcome, done.error, done.operation) == ("failed", "RuntimeError: this job cannot even plan", None)


def test_a_storage_that_fails_ends_the_run_at_once(core: Core) -> None:
    def apply(core: Core, transaction: Any, steps: Any, operation: str) -> dict[str, int]:
        raise StorageFailed("The disk is full.")

    jobs = Runner(core, table(Work(lambda core, now: [Step("move", "a", "")] * 100, apply)))
    done = run(jobs)
    assert (done.outcome, done.error, done.counts) == ("failed", "The disk is full.", {})
    jobs.close()


def test_a_run_whose_beginning_cannot_be_written_is_a_failure_too(
    core: Core, jobs: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin(*_: Any) -> int:
        raise StorageFailed("The disk is full.")

    monkeypatch.setattr("memoryd.daemon.store.jobs.begin", begin)
    done = run(jobs)
    assert (done.outcome, done.error, done.run) == ("failed", "The disk is full.", None)
    assert jobs.list().jobs[0].failures == 1


def test_a_stop_interrupts_within_a_second_and_the_job_stays_due(core: Core, jobs: Runner, mover: Mover) -> None:
    fill(core)
    mover.gate.clear()
    first = jobs.run(RunJob(name="move"), lambda event: None)
    second = jobs.run(RunJob(name="other"), lambda event: None)
    assert mover.under_way.wait(LIMIT_S)
    mover.gate.set()
    jobs.close()
    done = first.result(LIMIT_S)
    assert done.outcome in ("interrupted", "done")
    with pytest.raises(Unavailable):
        second.result(LIMIT_S)
    with pytest.raises(Unavailable):
        run(jobs)
    after = runner(core, mover)
    [state, _] = after.list().jobs
    assert (state.last_run_at is None) == (done.outcome == "interrupted")
    assert list(tiers(core).values()).count("L2") == done.counts["moved"]
    after.close()


def test_a_stop_interrupts_a_plan_that_takes_long(core: Core) -> None:
    def plan(core: Core, now: float) -> Any:
        with core.store.reading() as connection:
            connection.execute(
                "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
            ).fetchall()
        yield Step("never", "", "")

    jobs = Runner(core, table(Work(plan, Mover().apply)))
    future = jobs.run(RunJob(name="move"), lambda event: None)
    wait_until(lambda: jobs.report(Jobs()).runs != [])
    jobs.close()
    assert future.result(1).error == "The daemon was stopped; the rest comes next time."


def test_the_history_of_runs_has_all_that_a_run_said(core: Core, jobs: Runner, clock: Any) -> None:
    fill(core, 3)
    first = run(jobs)
    clock.advance(10)
    second = run(jobs, "other")
    found = jobs.report(Jobs()).runs
    assert [r.job for r in found] == ["other", "move"]
    assert (found[1].run, found[1].counts, found[1].operation) == (first.run, first.counts, first.operation)
    assert found[0].started_at - found[1].started_at == 10
    assert found[0].run == second.run
    assert found[1].took_ms == pytest.approx(first.took_ms)
    assert [r.job for r in jobs.report(Jobs(name="move")).runs] == ["move"]
    assert len(jobs.report(Jobs(limit=1)).runs) == 1


def test_a_run_cut_off_by_a_crash_is_noted_as_interrupted_with_what_it_had_done(core: Core, mover: Mover) -> None:
    fill(core, 8)
    jobs = runner(core, mover)
    mover.gate.clear()
    jobs.run(RunJob(name="move"), lambda event: None)
    assert mover.under_way.wait(LIMIT_S)
    with core.store.reading() as connection:
        assert connection.execute("SELECT outcome FROM runs").get == "running"
    after = runner(core, mover)  # as after a crash: nothing of the first one is known to it
    mover.gate.set()
    wait_until(lambda: jobs.report(Jobs()).runs[0].outcome == "done")
    core.store.write(lambda t: t.connection.execute("UPDATE runs SET outcome = 'running'")).result()
    after.start()
    [noted] = after.report(Jobs()).runs
    assert (noted.outcome, noted.error) == ("interrupted", "The daemon ended while it ran.")
    assert noted.counts == {"moved": 8, "skipped": 0}
    assert after.list().jobs[0].failures == 1  # a job that kills the daemon shall rest
    jobs.close()
    after.close()

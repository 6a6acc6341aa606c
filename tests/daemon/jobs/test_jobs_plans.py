"""Dry runs: the plan is exact, changes nothing, is kept by id, and is carried out as it was shown."""

from collections.abc import Iterator

import pytest

from memoryd.client.errors import Conflict, NotFound
from memoryd.client.protocol import Jobs, NewMemory
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.work import Step
from memoryd.daemon.jobs.plans import MAX_PLANS, MAX_STEPS, Plan, Plans
from memoryd.daemon.jobs.runner import Runner
from moving import Mover, everything, run, runner, tiers
from workbench import add_many, delete, search, update


@pytest.fixture
def jobs(core: Core) -> Iterator[Runner]:
    made = runner(core, Mover())
    yield made
    made.close()


def fill(core: Core, count: int) -> list[str]:
    added = add_many(core, [NewMemory(content=f"Crane\n number {n}") for n in range(count)], dedup=False)
    return [result.id for result in added.results]


@pytest.mark.parametrize("count", [0, 1, 2, 30])
def test_a_dry_run_returns_every_step_and_changes_nothing(core: Core, jobs: Runner, count: int) -> None:
    ids = fill(core, count) if count else []
    before = everything(core)
    planned = run(jobs, dry_run=True)
    assert (planned.outcome, planned.total, planned.more) == ("planned", count, False)
    assert planned.counts == ({"move": count} if count else {})
    assert [(s.action, s.target, s.reason) for s in planned.steps] == [("move", id, "it is in L1") for id in ids]
    assert [s.preview for s in planned.steps] == [f"Crane number {n}" for n in range(count)]
    assert everything(core) == before
    assert jobs.report(Jobs()).runs == []
    assert jobs.list().jobs[0].last_run_at is None


def test_a_plan_is_carried_out_as_it_was_shown_whatever_came_since(core: Core, jobs: Runner) -> None:
    ids = fill(core, 20)
    planned = run(jobs, dry_run=True)
    later = fill(core, 5)
    done = run(jobs, plan=planned.plan)
    assert (done.outcome, done.counts["moved"], done.skipped) == ("done", 20, [])
    assert {id for id, tier in tiers(core).items() if tier == "L2"} == set(ids)
    assert {id for id, tier in tiers(core).items() if tier == "L1"} == set(later)


def test_steps_whose_memory_changed_since_are_left_out_with_the_reason(core: Core, jobs: Runner) -> None:
    ids = fill(core, 4)
    planned = run(jobs, dry_run=True)
    update(core, ids[0], importance=1.0)
    delete(core, ids[1])
    search(core, "crane number 2")  # being found changes nothing
    done = run(jobs, plan=planned.plan)
    assert (done.counts["moved"], done.counts["skipped"]) == (2, 2)
    assert [(s.target, s.reason) for s in done.skipped] == [
        (ids[0], "it changed since the plan was made"),
        (ids[1], "it no longer exists"),
    ]
    assert tiers(core)[ids[0]] == "L1"


def test_a_plan_is_carried_out_once(core: Core, jobs: Runner) -> None:
    fill(core, 2)
    planned = run(jobs, dry_run=True)
    run(jobs, plan=planned.plan)
    with pytest.raises(NotFound, match=f"no plan {planned.plan}: it was applied, or newer"):
        run(jobs, plan=planned.plan)


def test_a_plan_belongs_to_its_job(core: Core, jobs: Runner) -> None:
    planned = run(jobs, dry_run=True)
    with pytest.raises(Conflict, match="one of the job move, not of other"):
        run(jobs, "other", plan=planned.plan)


def test_a_long_plan_is_read_in_parts(core: Core, jobs: Runner) -> None:
    ids = fill(core, 30)
    planned = run(jobs, dry_run=True, limit=10)
    rest = run(jobs, dry_run=True, plan=planned.plan, offset=10, limit=1000)
    assert (planned.total, rest.total, rest.plan) == (30, 30, planned.plan)
    assert [s.target for s in planned.steps + rest.steps] == ids
    assert run(jobs, dry_run=True, plan=planned.plan, offset=30).steps == []


def test_what_an_interrupted_run_left_of_a_plan_is_carried_out_by_the_same_id(core: Core) -> None:
    fill(core, 200)
    mover = Mover()
    hasty = runner(core, mover, ticks=lambda: 15.0 * len(mover.slices))  # each slice takes 15 s
    planned = run(hasty, dry_run=True)
    first = run(hasty, plan=planned.plan)
    assert first.outcome == "interrupted"
    while (last := run(hasty, plan=planned.plan)).outcome == "interrupted":
        assert last.skipped == []
    assert set(tiers(core).values()) == {"L2"}
    hasty.close()


def test_only_the_latest_plans_are_kept() -> None:
    plans = Plans()
    ids = [plans.keep(Plan("move", [Step("move", "a", "")], {}, False)) for _ in range(MAX_PLANS + 1)]
    with pytest.raises(NotFound):
        plans.get(ids[0], "move")
    assert plans.get(ids[1], "move").steps
    large = plans.keep(Plan("move", [Step("move", "a", "")] * MAX_STEPS, {}, True))
    assert plans.get(large, "move").more
    with pytest.raises(NotFound):
        plans.get(ids[-1], "move")

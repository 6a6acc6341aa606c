"""`kill -9` of the real daemon while every job runs without a pause and clients write: nothing is left half done."""

import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from killing import open_snapshot

from configs import NO_JOBS, NO_MODEL
from memoryd.client import Client, MemorydError
from memoryd.client.protocol import Jobs, NewMemory, RunJob, Verify
from memoryd.daemon.jobs.table import list_jobs
from workbench import wait_until

LIVES = 12
BIRDS = ("heron", "egret", "stork", "crane", "ibis", "bittern", "spoonbill", "avocet", "plover", "dunlin", "snipe")
DAY_S = 86400.0
WITHOUT_A_PAUSE = "[jobs]\n[jobs.every_s]\n" + "".join(f"{name} = 0.02\n" for name in list_jobs())
CONSTANTS = {
    "daemon.__main__.FIRST_JOBS_AFTER_S": 0.0,
    "daemon.jobs.states.BACKOFF_S": 0.001,
    "daemon.jobs.states.FAILURES": 1000,
    "daemon.upkeep.trim.KEEP_RUNS": 20,
    "daemon.upkeep.trim.KEEP_OPERATIONS": 200,
}
# What would tell of a step that was done by half.
HALVES = {
    "a history without its operation": "SELECT count(*) FROM history h LEFT JOIN operations o ON o.number = h.operation"
    " WHERE o.id IS NULL",
    "an operation that counts wrong": "SELECT count(*) FROM operations o WHERE memories <>"
    " (SELECT count(*) FROM history h WHERE h.operation = o.number)",
    "an operation of a job that touched nothing and is not under way": "SELECT count(*) FROM operations o"
    " WHERE kind GLOB 'job:*' AND memories = 0 AND NOT EXISTS"
    " (SELECT 1 FROM runs r WHERE r.operation = o.number AND r.outcome = 'running')",
    "a member outside L2": "SELECT count(*) FROM members JOIN memories m ON m.row = members.memory"
    " WHERE m.tier <> 'L2'",
    "a member of another namespace": "SELECT count(*) FROM members JOIN memories m ON m.row = members.memory"
    " JOIN nodes n ON n.id = members.node WHERE n.namespace <> m.namespace",
    "a turn that is a memory too": "SELECT count(*) FROM turns t JOIN memories m ON m.id = t.key",
}


@pytest.fixture
def process(make_process: Callable[..., Any], environment: dict[str, str]) -> Any:
    return make_process(WITHOUT_A_PAUSE + ("" if environment else NO_MODEL), environment, CONSTANTS)


def check(process: Any) -> None:
    with open_snapshot(process) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        assert {what: connection.execute(sql).get for what, sql in HALVES.items()} == dict.fromkeys(HALVES, 0)
        outcomes = dict(connection.execute("SELECT outcome, count(*) FROM runs GROUP BY 1").fetchall())
    assert outcomes.keys() <= {"running", "done", "interrupted"}, outcomes
    # One run at a time, so a crash cuts off one.
    assert outcomes.get("running", 0) <= 1


def some_memories(dice: random.Random, count: int) -> list[NewMemory]:
    """Old ones, so that there is something to move, and new ones."""
    return [
        NewMemory(
            content=f"{' '.join(dice.choices(BIRDS, k=5))} {dice.getrandbits(40)}",
            created_at=time.time() - dice.choice((0.0, 100.0)) * DAY_S,
        )
        for _ in range(count)
    ]


def live_and_die(process: Any, dice: random.Random, expected: set[str]) -> None:
    """Start, write while the jobs run, kill at any moment."""
    process.start()
    with process.client("birds", timeout_s=20) as client:
        wait_until(lambda: {run.job for run in client.call(Jobs(limit=200)).runs} >= set(list_jobs()))
        for _ in range(dice.randrange(1, 12)):
            added = client.add_many(some_memories(dice, 20), dedup=False)
            expected.update(result.id for result in added.results)
            if dice.random() < 0.5:
                gone = dice.sample(sorted(expected), 3)
                client.delete(*gone)
                expected.difference_update(gone)
    time.sleep(dice.random() * 0.05)  # not to wait for anything: at any moment of a run
    process.kill()


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("environment", ["words", "model"], indirect=True)
def test_nothing_is_lost_or_half_done_when_the_daemon_is_killed_while_jobs_run(
    process: Any, environment: dict[str, str]
) -> None:
    dice = random.Random(LIVES)
    expected: set[str] = set()
    for _ in range(LIVES):
        live_and_die(process, dice, expected)
        check(process)
        with open_snapshot(process) as connection:
            assert {str(id) for (id,) in connection.execute("SELECT id FROM memories")} == expected
    process.config.write_text(NO_JOBS + ("" if environment else NO_MODEL))
    process.start()
    with process.client("birds") as client:
        assert client.call(Verify()).problems == []
        runs = client.call(Jobs(limit=1000)).runs
        assert Counter(run.outcome for run in runs)["running"] == 0
        assert Counter(run.job for run in runs).keys() == list_jobs().keys()
        assert {job.state for job in client.call(Jobs()).jobs} == {"off"}
    assert process.stop() == 0


@pytest.mark.parametrize("environment", ["words"], indirect=True)
def test_a_stop_while_every_job_runs_is_prompt_and_leaves_no_run_under_way(
    process: Any, environment: dict[str, str]
) -> None:
    process.start()
    with process.client("birds") as client:
        client.add_many(some_memories(random.Random(1), 500), dedup=False)
        wait_until(lambda: {run.job for run in client.call(Jobs(limit=200)).runs} >= set(list_jobs()))
    assert process.stop() == 0
    with open_snapshot(process) as connection:
        assert connection.execute("SELECT count(*) FROM runs WHERE outcome = 'running'").get == 0
    check(process)


@pytest.mark.slow
@pytest.mark.parametrize("environment", ["words"], indirect=True)
def test_jobs_by_hand_go_on_beside_those_of_the_scheduler(process: Any, environment: dict[str, str]) -> None:
    process.start()
    with process.client() as client:
        client.add_many(some_memories(random.Random(2), 100), dedup=False)
        outcomes = Counter(_attempt(client, name) for _ in range(20) for name in list_jobs())
    assert outcomes["done"] > 0
    assert outcomes.keys() <= {"done", "conflict"}


def _attempt(client: Client, name: str) -> str:
    try:
        return client.call(RunJob(name=name)).outcome
    except MemorydError as error:
        return error.code

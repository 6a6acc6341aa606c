"""memctl jobs: what it prints for people and programs; with a daemon that says what a test tells it, and a real one."""

import re
from typing import Any

import msgspec
import pytest
from fake_daemon import FakeDaemon, Memctl

from memoryd.client import protocol

NOW = 1_800_000_000.0
ID = "3f9ac1d2" * 4
FIELDS: dict[str, Any] = {"job": "sweep", "by": "scheduler", "started_at": NOW - 120, "took_ms": 340.0}
DONE = protocol.JobRun(
    run=7, outcome="done", counts={"moved": 1234, "skipped": 3, "failed": 0}, operation="45" * 16, **FIELDS
)
FAILED = protocol.JobRun(run=8, outcome="failed", error="The disk is full.", **FIELDS)
JOB = protocol.Job(
    name="sweep",
    about="Move cold memories to L2.",
    state="waiting",
    every_s=300.0,
    deadline_s=120.0,
    last_run_at=NOW - 120,
    next_run_at=NOW + 180,
    last=DONE,
)
OTHER = protocol.Job(name="backup", about="Copy the database.", state="off", every_s=0.0, deadline_s=600.0)


def lines(text: str) -> list[str]:
    return [re.sub(r" {2,}", " | ", line.strip()) for line in text.splitlines()]


def test_list_shows_states_times_and_what_the_latest_run_did(fake: FakeDaemon, memctl: Memctl) -> None:
    fake.replies[protocol.Jobs] = protocol.JobList(jobs=[JOB, OTHER], at=NOW)
    out = memctl("jobs", "list").out
    assert lines(out) == [
        "JOB | STATE | EVERY | LAST RUN | OUTCOME | TOOK | NEXT | DID",
        "sweep | waiting | 5 min | 2 min ago | done | 340 ms | in 3 min | 1,234 moved, 3 skipped",
        "backup | off | – | never | – | Copy the database.",
    ]
    assert max(map(len, out.splitlines())) <= 100


def test_a_failed_job_shows_why_within_the_width(
    fake: FakeDaemon, memctl: Memctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoryd.client.programs.memctl.text_table.is_terminal", lambda: True)
    failed = msgspec.structs.replace(FAILED, error="The disk is full. " * 20)
    state: Any = {"state": "quarantined", "failures": 5, "next_run_at": None, "last": failed}
    fake.replies[protocol.Jobs] = protocol.JobList(jobs=[msgspec.structs.replace(JOB, **state)], at=NOW)
    out = memctl("jobs", "list").out
    assert "quarantined" in out
    assert "The disk is full." in out
    assert max(map(len, out.splitlines())) <= 100


def test_run_says_what_was_done_and_how_to_take_it_back(fake: FakeDaemon, memctl: Memctl) -> None:
    fake.replies[protocol.RunJob] = DONE
    assert lines(memctl("jobs", "run", "sweep").out) == [
        "sweep done in 340 ms: 1,234 moved, 3 skipped.",
        "`memctl undo 45454545` takes it back.",
    ]
    assert fake.calls == [protocol.RunJob(name="sweep")]


def test_run_of_a_plan_says_which_steps_were_left_out(fake: FakeDaemon, memctl: Memctl) -> None:
    skipped = [protocol.SkippedStep(action="move", target=ID, reason="it is gone")]
    fake.replies[protocol.RunJob] = msgspec.structs.replace(DONE, skipped=skipped)
    out = memctl("jobs", "run", "sweep", "--plan", "ab12").out
    assert "move | 3f9ac1d2 | it is gone" in lines(out)
    assert fake.calls == [protocol.RunJob(name="sweep", plan="ab12")]


def test_a_run_that_failed_is_an_error(fake: FakeDaemon, memctl: Memctl) -> None:
    fake.replies[protocol.RunJob] = FAILED
    done = memctl("jobs", "run", "sweep")
    assert (done.code, done.err) == (1, "memctl: The job sweep failed: The disk is full.\n")
    assert done.out == "sweep failed in 340 ms: nothing to do.\n"


def plan(count: int, shown: int) -> protocol.JobRun:
    steps = [
        protocol.PlannedStep(action="move", target=f"{n:032x}"[::-1], reason="recency 0.12", preview=f"Crane {n}")
        for n in range(shown)
    ]
    fields: Any = {**FIELDS, "by": "hand", "counts": {"move": count} if count else {}}
    return protocol.JobRun(outcome="planned", plan="ab12", total=count, steps=steps, **fields)


def test_a_dry_run_shows_the_plan_and_how_to_carry_it_out(fake: FakeDaemon, memctl: Memctl) -> None:
    fake.replies[protocol.RunJob] = plan(2, 2)
    assert lines(memctl("jobs", "run", "sweep", "--dry-run").out) == [
        "sweep would do 2 steps (2 move). Nothing was changed.",
        "ACTION | TARGET | REASON | TEXT",
        "move | 00000000 | recency 0.12 | Crane 0",
        "move | 10000000 | recency 0.12 | Crane 1",
        "`memctl jobs run sweep --plan ab12` applies it.",
    ]


def test_a_long_plan_is_cut_for_people_and_whole_as_json(fake: FakeDaemon, memctl: Memctl) -> None:
    fake.replies[protocol.RunJob] = plan(2500, 1000)
    assert "… and 2,450 more (--limit N shows more, --json all)" in memctl("jobs", "run", "sweep", "--dry-run").out
    assert len(fake.calls) == 1
    found = msgspec.json.decode(memctl("jobs", "run", "sweep", "--dry-run", "--json").out)
    assert [c.offset for c in fake.calls[2:] if isinstance(c, protocol.RunJob)] == [1000, 2000]
    assert len(found["steps"]) == 3000  # the fake repeats itself


@pytest.mark.parametrize(("word", "call"), [("pause", protocol.PauseJob), ("resume", protocol.ResumeJob)])
def test_pause_and_resume_take_several_names_or_all(
    fake: FakeDaemon, memctl: Memctl, word: str, call: type[Any]
) -> None:
    fake.replies[protocol.Jobs] = protocol.JobList(jobs=[JOB, OTHER], at=NOW)
    fake.replies[call] = JOB
    assert memctl("jobs", word, "sweep", "backup").out.startswith(f"{word.capitalize()}d: ")
    assert [c.name for c in fake.calls] == ["sweep", "backup"]  # type: ignore[attr-defined]
    fake.calls.clear()
    assert len(msgspec.json.decode(memctl("jobs", word, "all", "--json").out)) == 2
    assert [c.name for c in fake.calls[1:]] == ["sweep", "backup"]  # type: ignore[attr-defined]


def test_history_shows_the_latest_runs(fake: FakeDaemon, memctl: Memctl) -> None:
    fake.replies[protocol.Jobs] = protocol.JobList(jobs=[], at=0.0, runs=[FAILED, DONE])
    out = memctl("jobs", "list", "sweep").out
    assert lines(out) == [
        "RUN | AT | JOB | BY | OUTCOME | TOOK | OP | DID",
        "8 | 2027-01-15T07:58:00Z | sweep | scheduler | failed | 340 ms | The disk is full.",
        "7 | 2027-01-15T07:58:00Z | sweep | scheduler | done | 340 ms | 45454545 | 1,234 moved, 3 skipped",
    ]
    assert fake.calls == [protocol.Jobs(name="sweep")]
    fake.replies[protocol.Jobs] = protocol.JobList(jobs=[], at=0.0, runs=[])
    assert memctl("jobs", "list", "sweep").out == "No runs.\n"


def test_with_a_daemon_a_plan_is_made_shown_and_carried_out(daemon: Any, memctl: Memctl) -> None:
    for number in range(6):
        memctl("add", f"Herons fish at dawn {number}", "--no-dedup")
    planned = msgspec.json.decode(memctl("jobs", "run", "maintain", "--dry-run", "--json").out)
    assert planned["counts"]["merge"] == 1
    assert "1 merged" in memctl("jobs", "run", "maintain", "--plan", planned["plan"]).out
    again = memctl("jobs", "run", "maintain", "--plan", planned["plan"])
    assert (again.code, "There is no plan" in again.err) == (1, True)
    assert memctl("jobs", "pause", "backup").code == 0
    states = {job["name"]: job["state"] for job in msgspec.json.decode(memctl("jobs", "--json").out)}
    assert states["backup"] == "paused"
    unknown = memctl("jobs", "run", "sweeep")
    assert unknown.code == 1
    assert unknown.err.startswith("memctl: There is no job 'sweeep'; there are ")

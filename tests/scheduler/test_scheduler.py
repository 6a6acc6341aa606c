"""The scheduler: asks for jobs when they are due; with the real APScheduler and short intervals."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from apscheduler.schedulers import base

from each import each
from memoryd.client.errors import Conflict, Unavailable
from memoryd.client.protocol import Job, JobList, Jobs, RunJob
from memoryd.scheduler import runner
from memoryd.scheduler.runner import Interval, Scheduler
from waiting import wait_until

NOW = 1_800_000_000.0  # the daemon's; the scheduler goes by waits alone
HOUR_S = 3600.0


class Daemon:
    """Knows some jobs, and keeps which were asked for; `errors` are raised in place of a reply."""

    def __init__(self, *jobs: Job) -> None:
        self.jobs, self.asked = list(jobs), list[str]()
        self.errors: dict[str, list[Exception]] = {}

    def __call__(self, call: Any) -> Any:
        if isinstance(call, Jobs):
            return JobList(jobs=self.jobs, at=NOW)
        assert isinstance(call, RunJob)
        assert call.by == "scheduler"
        self.asked.append(call.name)
        if errors := self.errors.get(call.name):
            raise errors.pop()
        return None


def job(name: str, wait_s: float | None = 0.0, every_s: float = HOUR_S) -> Job:
    at = None if wait_s is None else NOW + wait_s
    return Job(name=name, about="", state="waiting", every_s=every_s, deadline_s=60.0, next_run_at=at)


@pytest.fixture
def start() -> Iterator[Any]:
    started: list[Scheduler] = []

    def begin(daemon: Daemon) -> Scheduler:
        started.append(Scheduler(daemon))
        started[-1].start()
        return started[-1]

    yield begin
    for scheduler in started:
        scheduler.stop()


def test_what_is_due_is_asked_for_once_in_the_order_of_the_table_then_at_its_interval(start: Any) -> None:
    daemon = Daemon(job("sweep"), job("trim"), job("backup"), job("later", 60.0), job("hand", 0.0, 0.0))
    scheduler = start(daemon)
    assert 0 < scheduler.find_wait_s("later") <= 61
    assert scheduler.find_wait_s("hand") is None
    wait_until(lambda: len(daemon.asked) == 3)
    assert daemon.asked == ["sweep", "trim", "backup"]
    wait_until(lambda: HOUR_S - 60 < scheduler.find_wait_s("trim") <= HOUR_S)
    assert 0 < scheduler.find_wait_s("sweep") <= HOUR_S
    scheduler.run_after("hand", 0.0)
    scheduler.run_after("later", 0.0)
    wait_until(lambda: daemon.asked[3:] == ["later"])


def test_a_job_that_is_refused_is_asked_for_at_its_interval_and_sooner_when_told(start: Any) -> None:
    daemon = Daemon(job("sweep", None, 0.05), job("trim", None))
    daemon.errors["sweep"] = [Conflict("paused") for _ in range(3)]
    scheduler = start(daemon)
    wait_until(lambda: len(daemon.asked) > 3)
    assert "trim" not in daemon.asked
    scheduler.run_after("trim", 0.0)
    wait_until(lambda: "trim" in daemon.asked)


@pytest.mark.parametrize("error", [Unavailable("stopping"), RuntimeError("a bug")])
def test_a_job_that_got_no_answer_is_asked_for_again_soon(
    start: Any, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(runner, "_RETRY_S", 0.01)
    daemon = Daemon(job("sweep"))
    daemon.errors["sweep"] = [error]
    start(daemon)
    wait_until(lambda: len(daemon.asked) == 2)


@pytest.mark.parametrize("days", [-400, 0, 10.01])
def test_a_clock_that_was_set_or_a_machine_that_slept_delays_no_job(
    start: Any, monkeypatch: pytest.MonkeyPatch, days: float
) -> None:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) + timedelta(days=days)

    daemon = Daemon(job("sweep", HOUR_S), job("trim", HOUR_S / 2, 60.0))
    scheduler = start(daemon)
    for module in (runner, base):
        monkeypatch.setattr(module, "datetime", Clock)
    scheduler.follow_clock()
    wait_until(lambda: len(daemon.asked) == (2 if days else 0))
    scheduler.follow_clock()
    assert 0 < scheduler.find_wait_s("sweep") <= HOUR_S
    assert set(daemon.asked) == ({"sweep", "trim"} if days else set())


@each(("late", "wait_s"), [(0.0, HOUR_S), (HOUR_S - 1, 1.0), (HOUR_S, HOUR_S), (1e9, HOUR_S)])
def test_after_missed_runs_the_next_is_an_interval_away(late: float, wait_s: float) -> None:
    """APScheduler counts missed runs one by one, which a clock that jumps by fifty years would make millions."""
    now = datetime.fromtimestamp(NOW, UTC)
    due = Interval(seconds=HOUR_S, timezone=UTC).get_next_fire_time(now - timedelta(seconds=late), now)
    assert due == now + timedelta(seconds=wait_s)


def test_after_a_stop_nothing_is_asked_for(start: Any) -> None:
    daemon = Daemon(job("sweep", 0.0, 0.01))
    scheduler = start(daemon)
    wait_until(lambda: len(daemon.asked) > 3)
    scheduler.stop()
    scheduler.run_after("sweep", 0.0)
    assert scheduler._timer._thread is None
    scheduler.start()  # for the fixture's stop


@each("module", ["memoryd.client", "memoryd.daemon.jobs.runner", "memoryd.daemon.server.server"])
def test_apscheduler_is_loaded_only_with_the_scheduler(module: str) -> None:
    code = f"import sys, {module}; sys.exit('apscheduler' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0

"""The timer: asks when jobs are due, as the replies say; with the real APScheduler and short intervals."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from memoryd.client.errors import Conflict, Unavailable
from memoryd.client.protocol import Job, JobList, JobRun, Jobs, RunJob
from memoryd.scheduler import runner
from memoryd.scheduler.runner import Scheduler
from waiting import wait_until

NOW = 1_800_000_000.0


class Daemon:
    """Answers as the daemon does; `answers` says what each job replies, else that it ran and is due in an hour."""

    def __init__(self, *jobs: Job) -> None:
        self.jobs = list(jobs)
        self.asked: list[str] = []
        self.answers: dict[str, list[Any]] = {}
        self.busy = threading.Lock()
        self.overlapped = False

    def __call__(self, call: Any) -> Any:
        if isinstance(call, Jobs):
            return JobList(jobs=self.jobs, at=NOW)
        assert isinstance(call, RunJob)
        assert call.by == "scheduler"
        if not self.busy.acquire(blocking=False):
            self.overlapped = True
            return None
        try:
            self.asked.append(call.name)
            answers = self.answers.get(call.name, [])
            answer = answers.pop(0) if answers else NOW + 3600
            if isinstance(answer, Exception):
                raise answer
            return JobRun(
                job=call.name, outcome="done", by="scheduler", started_at=NOW, took_ms=1.0, next_run_at=answer
            )
        finally:
            self.busy.release()


def job(name: str, next_run_at: float | None = NOW, every_s: float = 3600.0) -> Job:
    return Job(name=name, about="", state="waiting", every_s=every_s, deadline_s=60.0, next_run_at=next_run_at)


@pytest.fixture
def start() -> Iterator[Any]:
    started: list[Scheduler] = []

    def begin(daemon: Daemon) -> Scheduler:
        scheduler = Scheduler(daemon, lambda: NOW)
        scheduler.start()
        started.append(scheduler)
        return scheduler

    yield begin
    for scheduler in started:
        scheduler.stop()


def test_after_the_clock_was_set_every_job_is_asked_for(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    daemon = Daemon(job("sweep", NOW + 3600), job("trim", NOW + 3600))
    scheduler = start(daemon)
    scheduler.follow_clock()
    assert daemon.asked == []
    monkeypatch.setattr(runner, "_measure_offset_s", lambda: 1e9)
    scheduler.follow_clock()
    wait_until(lambda: sorted(daemon.asked) == ["sweep", "trim"])
    scheduler.follow_clock()
    assert len(daemon.asked) == 2


def test_jobs_that_are_due_are_asked_for_once_each_in_their_order(start: Any) -> None:
    daemon = Daemon(job("sweep"), job("trim"), job("backup"))
    start(daemon)
    wait_until(lambda: len(daemon.asked) == 3)
    assert daemon.asked == ["sweep", "trim", "backup"]
    assert not daemon.overlapped


def test_a_job_is_asked_for_again_when_its_reply_says(start: Any) -> None:
    daemon = Daemon(job("sweep"), job("trim", NOW + 3600))
    daemon.answers["sweep"] = [NOW + 0.02] * 10
    start(daemon)
    wait_until(lambda: len(daemon.asked) == 11)
    assert set(daemon.asked) == {"sweep"}


def test_a_refusal_says_when_to_ask_again(start: Any) -> None:
    daemon = Daemon(job("sweep"))
    daemon.answers["sweep"] = [Conflict("not due", {"next_run_at": NOW + 0.01})] * 3
    start(daemon)
    wait_until(lambda: len(daemon.asked) == 4)


def test_a_paused_job_is_asked_for_at_its_interval_and_at_once_when_it_is_resumed(start: Any) -> None:
    daemon = Daemon(job("sweep", None, 0.05), job("trim", None))
    daemon.answers["sweep"] = [Conflict("paused", {"next_run_at": None})] * 3
    scheduler = start(daemon)
    wait_until(lambda: len(daemon.asked) == 4)
    assert "trim" not in daemon.asked
    scheduler.ask_again("trim")
    wait_until(lambda: "trim" in daemon.asked)


def test_a_job_by_hand_only_is_never_asked_for(start: Any) -> None:
    daemon = Daemon(job("sweep", NOW, 0.0), job("trim"))
    scheduler = start(daemon)
    scheduler.ask_again("sweep")
    wait_until(lambda: daemon.asked == ["trim"])


def test_an_error_of_the_daemon_or_of_the_call_ends_nothing(start: Any) -> None:
    daemon = Daemon(job("sweep"), job("trim"), job("backup"))
    daemon.answers["sweep"] = [Unavailable("stopping")]
    daemon.answers["trim"] = [RuntimeError("a bug")]
    scheduler = start(daemon)
    wait_until(lambda: len(daemon.asked) == 3)
    scheduler.ask_again("sweep")
    wait_until(lambda: len(daemon.asked) == 4)


def test_after_a_stop_nothing_is_asked_for(start: Any) -> None:
    daemon = Daemon(job("sweep"))
    daemon.answers["sweep"] = [NOW] * 1_000_000
    scheduler = start(daemon)
    wait_until(lambda: len(daemon.asked) > 3)
    scheduler.stop()
    scheduler.ask_again("sweep")
    asked = len(daemon.asked)
    threading.Event().wait(0.1)  # without the stop it would ask many times in between
    assert len(daemon.asked) <= asked + 1
    scheduler.start()  # for the fixture's stop


@pytest.mark.parametrize("module", ["memoryd.client", "memoryd.daemon.jobs.runner", "memoryd.daemon.server.server"])
def test_apscheduler_is_loaded_only_with_the_timer(module: str) -> None:
    code = f"import sys, {module}; sys.exit('apscheduler' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0

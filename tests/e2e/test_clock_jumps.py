"""The real daemon under a clock that was wrong for a while: it says so, and forgets nothing for a day."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memoryd.client import Client
from memoryd.client.programs.memctl.private_daemon import PrivateDaemon, run_private_daemon
from memoryd.client.programs.memctl.running import run
from memoryd.client.protocol import Shutdown
from memoryd.daemon.jobs.table import list_jobs

CONFIG = """
[model]
name = "none"
fetch = false
[jobs]
enabled = false
[lifetime.days]
task_completion = 7.0
"""
NOW, UP_S, DAY_S = 1_800_000_000.0, 100_000.0, 86_400.0
JOBS = [name for name in ("sweep", "caps", "expire", "cluster", "trim", "backup") if name in list_jobs()]

Set = Callable[..., None]


@pytest.fixture
def daemon() -> Iterator[PrivateDaemon]:
    with run_private_daemon(config=CONFIG, clock=NOW) as running:
        yield running


@pytest.fixture
def clock(daemon: PrivateDaemon) -> Set:
    """Set the clock, and how much time has really passed: `clock(days=400)`, `clock(days=3, passed_s=60)`."""

    def to(days: float = 0.0, passed_s: float = 0.0, boot: str = "first", up_s: float | None = None) -> None:
        file = daemon.folder / "next"
        file.write_text(f"{UP_S + passed_s if up_s is None else up_s} {boot}")
        os.utime(file, (NOW + days * DAY_S + passed_s,) * 2)
        os.replace(file, daemon.clock)

    to()
    return to


@pytest.fixture
def memctl(daemon: PrivateDaemon, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Callable[..., str]:
    monkeypatch.setenv("MEMORYD_SOCKET", str(daemon.socket))
    monkeypatch.setenv("MEMORYD_DATA_DIR", str(daemon.data_dir))

    def call(*words: str) -> str:
        capfd.readouterr()
        code = run(words)
        out, err = capfd.readouterr()
        assert code == 0, err
        return str(out)

    return call


def fill(client: Client) -> int:
    for text in ("Herons fish at dawn", "Storks nest on roofs", "Cranes dance in spring", "Owls hunt at night"):
        client.add(text)
    client.complete_task("completed", "The nests were counted")
    return client.stats().operations


def round_of(client: Client) -> None:
    for name in JOBS:
        assert client.run_job(name).outcome == "done"


def test_a_round_of_jobs_under_a_wrong_clock_forgets_nothing_for_a_day(
    daemon: PrivateDaemon, clock: Set, memctl: Callable[..., str]
) -> None:
    with daemon.client() as client:
        operations = fill(client)
        round_of(client)
        clock(days=400)
        round_of(client)
        assert (client.stats().operations, client.list(all_states=True).total) == (operations, 5)
        jumped = "jumped 400.0 d ahead, or the machine was off; nothing expires by the new time for 1.0 d"
        assert jumped in memctl("status")
        daemon.kill()
        daemon.start()
        round_of(client)
        clock(passed_s=3600.0)
        assert (client.stats().memories, client.stats().operations) == (5, operations)
        assert client.status().clock.state == "steady"  # type: ignore[union-attr]
        clock(days=400, passed_s=3600.0)
        round_of(client)
        clock(days=400, passed_s=3600.0 + DAY_S)
        round_of(client)
        assert client.stats().memories == 4


@pytest.mark.slow
def test_a_clock_that_is_behind_breaks_nothing(daemon: PrivateDaemon, clock: Set, memctl: Callable[..., str]) -> None:
    with daemon.client() as client:
        operations = fill(client)
        clock(days=-400)
        round_of(client)
        assert "400.0 d back" in memctl("status")
        clock(passed_s=60.0)
        round_of(client)
        assert (client.stats().memories, client.stats().operations) == (5, operations)
        daemon.stop()
        clock(days=-(NOW / DAY_S), boot="second", up_s=60.0)  # a dead battery
        daemon.start()
        round_of(client)
        clock(days=2, boot="second", up_s=90.0)
        round_of(client)
        assert (client.stats().memories, client.stats().operations) == (5, operations)
        assert client.status().clock.state == "jumped"  # type: ignore[union-attr]


@pytest.mark.slow
def test_a_machine_that_slept_for_weeks_goes_on(daemon: PrivateDaemon, clock: Set) -> None:
    """While it sleeps, the daemon's own timers stand still (CLOCK_MONOTONIC); the clock and CLOCK_BOOTTIME do not."""
    with daemon.client() as client:
        fill(client)
        assert any("Completed" in hit.content for hit in client.search("nests counted"))
        client.status()  # the daemon looks at the clock
        clock(passed_s=20 * DAY_S)
        assert not any("Completed" in hit.content for hit in client.search("nests counted"))
        assert client.add("Swifts nest in walls").outcome == "created"
        round_of(client)
        assert (client.stats().memories, client.status().clock.state) == (6, "steady")  # type: ignore[union-attr]
        clock(passed_s=40 * DAY_S)
        round_of(client)
        assert (client.stats().memories, client.status().clock.state) == (5, "steady")  # type: ignore[union-attr]
        assert len(client.search("Herons fish at dawn")) > 0


@pytest.mark.slow
def test_restore_latest_after_a_wrong_clock_brings_back_all(
    daemon: PrivateDaemon, clock: Set, memctl: Callable[..., str]
) -> None:
    with daemon.client() as client:
        client.add("Herons fish at dawn")
        clock(days=400)
        client.run_job("backup")
        clock(passed_s=60.0)
        fill(client)
        client.run_job("backup")
        memctl("restore", "latest")
        try:
            assert client.stats().memories == 5
            listed = json.loads(memctl("backup", "--list", "--json"))
            assert listed
            assert all(Path(one["path"]).exists() for one in listed)
        finally:
            client.call(Shutdown())

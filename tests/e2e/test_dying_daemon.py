"""The real daemon is killed at each of its writes to the database in turn, those of jobs and of its start included."""

import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import pytest
from test_crash import Ledger, stored, write

from configs import NO_MODEL
from memoryd.client import MemorydError
from memoryd.client.protocol import RunJob, Verify
from memoryd.daemon.jobs.table import list_jobs

SCRIPT = str(Path(__file__).with_name("dying_daemon.py"))
JOBS = [name for name in ("sweep", "caps", "cluster", "expire", "maintain", "trim", "backup") if name in list_jobs()]


@pytest.fixture
def process(make_process: Callable[..., Any]) -> Any:
    return make_process(NO_MODEL)


def live_until_killed(process: Any, ledger: Ledger, number: int) -> None:
    """Write and run jobs until the daemon dies at the write of this number."""
    dice = random.Random(number)
    with suppress(AssertionError):  # it may die before it answers
        process.start(SCRIPT, str(number))
    with suppress(MemorydError, OSError), process.client("birds/a", timeout_s=20) as client:
        while True:
            if dice.random() < 0.2:
                with process.client() as owner:
                    owner.call(RunJob(name=dice.choice(JOBS)))
            write(client, ledger, dice)
    process.child.wait(30)


def check(process: Any, ledger: Ledger) -> None:
    """Compare the file with what was acknowledged."""
    path = process.data / "memoryd.sqlite"
    if not path.exists():
        assert ledger.acknowledged == 0
        return
    connection = apsw.Connection(str(path))
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    has_tables = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'memories'").fetchall()
    connection.close()
    assert ledger.settle(stored(process) if has_tables else {}) == []


def kill_at(process: Any, numbers: list[int]) -> Ledger:
    ledger = Ledger()
    for number in numbers:
        live_until_killed(process, ledger, number)
        assert process.child.returncode == -9
        check(process, ledger)
    process.start()
    with process.client() as client:
        assert client.call(Verify()).problems == []
    assert process.stop() == 0
    return ledger


@pytest.mark.slow
def test_nothing_is_lost_when_the_daemon_dies_at_a_write(process: Any) -> None:
    assert kill_at(process, [3, 40, 17, 90, 61, 5, 130, 28, 200, 75, 11, 300]).acknowledged > 10


@pytest.mark.stress
@pytest.mark.timeout(1800)
def test_nothing_is_lost_when_the_daemon_dies_at_each_of_300_writes(process: Any) -> None:
    ledger = kill_at(process, list(range(1, 301)))
    print(f"300 kills, {ledger.acknowledged} writes acknowledged")
    assert ledger.acknowledged > 500

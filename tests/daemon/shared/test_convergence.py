"""Whatever happens between machines and their server: all hold the same at the end, and no live version is lost."""

import os
from pathlib import Path

import pytest
from chaos import Chaos

from memoryd.daemon.shared import changes, engine, exchange
from postgres import Postgres

STEPS = 150
SECONDS = float(os.environ.get("CHAOS_SECONDS", "30"))


def play(
    monkeypatch: pytest.MonkeyPatch,
    postgres: Postgres,
    database: str,
    folder: Path,
    seed: int,
    seconds: float = 0,
    part: int = 0,
) -> int:
    """Let four machines work, at once for so many seconds or else step by step; return how many memories are left.

    `settle` fails where they differ or where a live version is lost.
    """
    day = Chaos(postgres, database, folder, seed, part)
    monkeypatch.setattr(exchange, "push", day.push)
    try:
        if seconds:
            day.run_at_once(seconds)
        else:
            day.run(STEPS)
        day.settle()
        return len(day.machines[0].texts())
    finally:
        day.close()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_all_machines_converge_and_nothing_is_lost(
    postgres: Postgres, database: str, folder: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    assert play(monkeypatch, postgres, database, folder, seed) > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4, 8))
def test_a_machine_that_holds_a_part_loses_nothing_of_the_others(
    postgres: Postgres, database: str, folder: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    assert play(monkeypatch, postgres, database, folder, seed, part=5) > 5


@pytest.mark.stress
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(20))
def test_all_machines_converge_after_half_a_minute_of_trouble(
    postgres: Postgres, database: str, folder: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(engine, "LIMIT_S", 2.0)
    assert play(monkeypatch, postgres, database, folder, seed, SECONDS) > 0


def test_without_the_check_of_epochs_versions_are_lost(
    postgres: Postgres, database: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "is_lost", lambda root, head: False)
    with pytest.raises(AssertionError):
        play(monkeypatch, postgres, database, folder, 1)


def test_without_the_check_of_ancestors_versions_are_lost(
    postgres: Postgres, database: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "is_ancestor", lambda version, ancestors: True)
    with pytest.raises(AssertionError, match="live versions are lost"):
        play(monkeypatch, postgres, database, folder, 1)

"""A quarter in the life of four agents: nothing is lost, nothing crosses namespaces, everything stays reachable."""

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import invariants
import pytest
from simulation import Plan, Simulation

from places import make_folder
from workbench import LIMIT_S

Play = Callable[..., Simulation]

SEASON, WEEK = 60, 8  # days


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Iterator[Play]:
    """Play the workload, or its beginning, in a folder of its own."""
    # The size of a slice must not depend on how fast this machine is: it decides in which order rows are numbered.
    monkeypatch.setattr("memoryd.daemon.jobs.run.SLICE_S", 60.0)
    folder = make_folder()
    played: list[Simulation] = []

    def run(**plan: Any) -> Simulation:
        place = folder / f"run{len(played)}"
        place.mkdir()
        played.append(Simulation(place, Plan(**plan)))
        return played[-1].run()

    yield run
    for simulation in played:
        simulation.close()
    shutil.rmtree(folder)


@pytest.mark.stress
@pytest.mark.timeout(600)
def test_every_turn_is_in_exactly_one_place_and_found(play: Play) -> None:
    played = play(undone_sweeps=0.05)
    played.finish()
    assert played.sweeps_undone > 0
    assert not any(known.gone.startswith("dropped") for known in played.player.books.turns.values())
    assert len(invariants.tiers(played.core)) == 2


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_quarter_with_crashes_and_small_tiers_keeps_every_turn(play: Play) -> None:
    settings: dict[str, Any] = {"tiers": {"max_recent": 60, "ring": 8}}
    played = play(undone_sweeps=0.2, restarts=(20, 21, 70), settings=settings)
    played.finish()
    kinds = {known.gone for known in played.player.books.turns.values()}
    assert kinds >= {"", "deleted", "expired"}
    assert not any(kind.startswith("dropped") for kind in kinds)


@pytest.mark.stress
@pytest.mark.timeout(900)  # three seasons, one after the other
def test_the_same_workload_gives_the_same_memory_also_with_kills_and_restarts(play: Play) -> None:
    first, second, cut = play(days=SEASON), play(days=SEASON), play(days=SEASON, restarts=(5, 30, 31))
    assert invariants.state(first.core) == invariants.state(second.core)
    assert invariants.state(first.core) == invariants.state(cut.core)
    cut.finish()


@pytest.mark.parametrize("days", [1, 2])
def test_the_first_days_pass_too(play: Play, days: int) -> None:
    play(days=days).finish()


# The checks themselves -----------------------------------------------------------------------------------------------


def spoiled(played: Simulation, statement: str) -> list[str]:
    """Return what the checks say after somebody has changed the database behind the daemon's back."""
    played.core.store.write(lambda transaction: transaction.connection.execute(statement).fetchall()).result(LIMIT_S)
    return invariants.always(played.core) + played.player.books.problems(played.core)


@pytest.mark.stress
@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM turns WHERE id = (SELECT max(id) FROM turns)",
        "DELETE FROM memories WHERE row = (SELECT max(row) FROM memories WHERE turns > 0)",
        "INSERT INTO turns SELECT NULL, id, namespace, '', 'user', 1, 'x', 1, NULL, content_hash, '',"
        " content, '', '' FROM memories WHERE turns > 0 LIMIT 1",
        "UPDATE memories SET namespace = 1 + namespace % 4 WHERE row = (SELECT max(row) FROM memories WHERE turns > 0)",
        "UPDATE flows SET count = count - 1 WHERE kind = 'observed'",
        "INSERT INTO topics VALUES (1000, 'x', 1, ''), (1001, 'y', 2, ''); INSERT INTO nodes VALUES"
        " (1000, 'x', 1, 'cluster', 1, '', '', 0, x'', 1001)",
    ],
)
def test_what_is_lost_doubled_or_misplaced_is_noticed(play: Play, statement: str) -> None:
    played = play(days=WEEK)
    assert spoiled(played, "SELECT 1") == []
    assert spoiled(played, statement) != []

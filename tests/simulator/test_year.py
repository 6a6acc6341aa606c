"""A year in the life of four agents: nothing is lost, nothing crosses namespaces, everything stays reachable."""

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import invariants
import pytest
from scripted import stories
from scripted.events import Talk
from scripted.script import DAY_S, Scale, year
from simulation import START, Plan, Problem, Simulation

from memoryd.client.protocol import Get, Search
from memoryd.daemon.memories import reading
from memoryd.daemon.search import pipeline
from places import make_folder
from workbench import LIMIT_S

Play = Callable[..., Simulation]

QUIET_YEAR, BUSY_YEAR = Scale(turns=3.0, deeds=1.0), Scale(turns=10.0, deeds=3.0)
QUARTER = Scale(days=91, turns=3.0, deeds=1.0)
SEASON = Scale(days=60, turns=6.0, deeds=2.0)
WEEK = Scale(days=8, turns=12.0)


@pytest.fixture
def play() -> Iterator[Play]:
    """Play a year, or part of one, in a folder of its own."""
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "scale"),
    [pytest.param(1, QUARTER, id="quarter"), pytest.param(2, QUIET_YEAR, id="year")],
)
def test_every_turn_is_in_exactly_one_place_and_found(play: Play, seed: int, scale: Scale) -> None:
    played = play(seed=seed, scale=scale, undone_sweeps=0.05)
    played.finish()
    assert played.sweeps_undone > 0
    assert not any(known.gone.startswith("dropped") for known in played.player.books.turns.values())
    assert len(invariants.tiers(played.core)) == 2


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [3, 4, 5])
def test_a_busy_year_with_crashes_and_small_tiers_keeps_every_turn(play: Play, seed: int) -> None:
    settings: dict[str, Any] = {"tiers": {"max_recent": 60, "ring": 8}}
    played = play(seed=seed, scale=BUSY_YEAR, undone_sweeps=0.2, restarts=(40, 41, 180, 300), settings=settings)
    played.finish()
    kinds = {known.gone for known in played.player.books.turns.values()}
    assert kinds >= {"", "deleted", "expired"}
    assert not any(kind.startswith("dropped") for kind in kinds)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_memory_and_another_seed_another(play: Play) -> None:
    first, second, other = play(scale=SEASON), play(scale=SEASON), play(seed=2, scale=SEASON)
    assert invariants.state(first.core) == invariants.state(second.core)
    assert invariants.state(first.core) != invariants.state(other.core)


@pytest.mark.slow
def test_every_sweep_can_be_undone_and_done_again_exactly(play: Play) -> None:
    played = play(seed=3, scale=Scale(days=60, turns=6.0, deeds=8.0), undone_sweeps=1.0)
    assert played.sweeps_undone > 20
    kinds = invariants.links(played.core)
    assert kinds.keys() == {"contradicts", "shared_from"}


@pytest.mark.slow
def test_kills_and_restarts_change_nothing(play: Play) -> None:
    whole, cut = play(scale=SEASON), play(scale=SEASON, restarts=(5, 30, 31))
    assert invariants.state(whole.core, labels=False) == invariants.state(cut.core, labels=False)
    cut.finish()


@pytest.mark.parametrize("days", [1, 2])
def test_the_shortest_years_pass_too(play: Play, days: int) -> None:
    play(scale=Scale(days=days, turns=40.0)).finish()


# The checks themselves -----------------------------------------------------------------------------------------------


def spoiled(played: Simulation, statement: str) -> list[str]:
    """Return what the checks say after somebody has changed the database behind the daemon's back."""
    played.core.store.write(lambda transaction: transaction.connection.execute(statement).fetchall()).result(LIMIT_S)
    return invariants.always(played.core) + played.player.books.problems(played.core)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM turns WHERE id = (SELECT max(id) FROM turns)",
        "DELETE FROM memories WHERE row = (SELECT max(row) FROM memories WHERE turns > 0)",
        "INSERT INTO turns SELECT NULL, id, namespace, '', 'user', 1, 'x', 1, NULL, content_hash, '',"
        " content, '', '' FROM memories WHERE turns > 0 LIMIT 1",
        "UPDATE memories SET namespace = 1 + namespace % 4 WHERE row = (SELECT max(row) FROM memories WHERE turns > 0)",
        "UPDATE flows SET count = count - 1 WHERE kind = 'observed'",
        "UPDATE memories SET tier = 'L2'; DELETE FROM backlog",
        "INSERT INTO nodes (id, namespace, model, kind, label, size, created_at, updated_at, centroid)"
        " SELECT 1000, namespace % 4 + 1, 1, 'cluster', 'x', 1, 1, 1, zeroblob(256)"
        " FROM memories WHERE row = 1; UPDATE memories SET tier = 'L2';"
        " INSERT OR REPLACE INTO members VALUES (1, 1000)",
    ],
)
def test_what_is_lost_doubled_or_misplaced_is_noticed(play: Play, statement: str) -> None:
    played = play(scale=WEEK)
    assert spoiled(played, "SELECT 1") == []
    assert spoiled(played, statement) != []


def test_a_memory_that_no_search_finds_is_noticed(play: Play) -> None:
    played = play(scale=WEEK)
    assert invariants.unreachable(played.core) == []
    with played.core.store.reading() as connection:
        found = connection.execute("SELECT row FROM memories WHERE expires_at IS NULL ORDER BY row DESC LIMIT 30")
        rows = [int(row) for (row,) in found]  # some of them come with another one all the same
    former = f"SELECT 'delete', row, content, metadata, neighbours FROM memories WHERE row >= {rows[-1]}"
    spoiled(played, f"INSERT INTO memories_fts (memories_fts, rowid, content, metadata, neighbours) {former}")
    played.core.store.postings.note_changes(connection, range(1, 2000))  # so many that what is kept is read anew
    for row in rows:
        played.core.embedding.remove_rows([row])
    assert invariants.unreachable(played.core)


def test_a_hit_from_a_sibling_is_noticed(play: Play) -> None:
    played = play(scale=WEEK)
    hits = pipeline.search(played.core.sources, Search(query="ticket", limit=50, touch=False)).hits
    played.player.check_hits([hit for hit in hits if hit.namespace == "garden"], "acme/api/alpha")
    assert played.player.failures
    with pytest.raises(Problem, match="a search from acme/api/alpha found"):
        played.check("here", [])


# The script ----------------------------------------------------------------------------------------------------------


def test_a_script_is_the_same_for_a_seed_and_has_every_kind_of_event() -> None:
    events = year(1, START)
    assert events == year(1, START)
    assert events != year(2, START)
    assert {type(event).__name__ for event in events} == {"Talk", "Note", "Ask", "Edit", "Forget", "Share", "TakeBack"}
    assert all(START <= event.at < START + 365 * DAY_S for event in events)
    ids = [say.id for event in events if isinstance(event, Talk) for say in event.turns]
    assert len(set(ids)) == len(ids) > 1000


@pytest.mark.slow
def test_the_stories_of_the_demo_come_true(play: Play) -> None:
    played = play(seed=1, scale=Scale(days=210, turns=1.0, deeds=0.2))
    asked, decided = stories.decision_ids(1)
    assert reading.get(played.core, Get(id=decided)).metadata["answers"] == asked
    memory = reading.get(played.core, Get(id=asked))
    assert (memory.tier, memory.content) == ("L2", stories.ASKED)
    known, forgotten = stories.note_ids(1)
    hits = {graph: ids(played, stories.LATER, graph) for graph in (True, False)}
    assert hits[True][0] == hits[False][0] == known
    assert hits[True].index(forgotten) <= [*hits[False], forgotten].index(forgotten)
    expired, _ = stories.summary_ids(1)
    assert reading.get(played.core, Get(id=expired)).content == stories.EXPIRED
    assert expired not in ids(played, stories.EXPIRED, True)


def ids(played: Simulation, question: str, graph: bool) -> list[str]:
    call = Search(query=question, namespace=stories.PLACE, limit=100, graph=graph, touch=False)
    return [hit.id for hit in pipeline.search(played.core.sources, call)]

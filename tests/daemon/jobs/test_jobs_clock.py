"""All jobs under a clock that jumps: what they would forget by it stays."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memoryd.client.protocol import GetContext, List, Operations
from memoryd.daemon.config import Config
from memoryd.daemon.context import preparing
from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs.runner import Runner
from memoryd.daemon.jobs.table import list_jobs
from memoryd.daemon.store import copies
from memoryd.daemon.upkeep import trim
from moving import run
from workbench import CountingEmbedder, add, ask, delete, found, running, undo, update

DAY_S = 86_400.0
SETTINGS = {
    "lifetime": {"days": {"task_completion": 7.0}},
    "tiers": {"max_facts": 3},
}


@pytest.fixture
def core(folder: Path, clock: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Core]:
    monkeypatch.setattr(trim, "GIVEN_DAYS", 1.0)
    with running(folder, CountingEmbedder(), clock=clock, config=msgspec.convert(SETTINGS, Config)) as made:
        yield made


def fill(core: Core) -> None:
    """Write what all kinds of forgetting find: a task, operations, an unused vector, what a session was given."""
    for text in ("Herons fish at dawn", "Storks nest on roofs", "Cranes dance in spring", "Owls hunt at night"):
        add(core, text)
    add(core, "Done: the nests were counted", source="task_completion")
    update(core, add(core, "Swifts sleep in the air").id, content="Swifts nest in walls")
    delete(core, add(core, "Gulls steal chips").id)
    preparing.context(core, core.sources, GetContext(task="herons", session="s")).result(30)


def round_of(jobs: Runner) -> None:
    for name in list_jobs():
        assert run(jobs, name).outcome == "done", name


def kept(core: Core) -> dict[str, Any]:
    """Return all that a job may forget."""
    with core.store.reading() as connection:
        tables = {
            "memories": "SELECT id, tier, content FROM memories ORDER BY id",
            "operations": "SELECT number FROM operations ORDER BY number",
            "history": "SELECT id FROM history ORDER BY id",
            "given": "SELECT id FROM given ORDER BY id",
            "vectors": "SELECT id FROM vec_embeddings ORDER BY id",
        }
        return {name: connection.execute(sql).fetchall() for name, sql in tables.items()}


def named(core: Core) -> list[str]:
    return [path.name for path in copies.list_copies(core.folder / copies.FOLDER)]


@pytest.mark.parametrize("days", [400, -400])
def test_a_round_of_all_jobs_under_a_wrong_clock_forgets_nothing(
    core: Core, jobs: Runner, clock: Any, days: float
) -> None:
    fill(core)
    round_of(jobs)
    before = kept(core)
    assert len(before["memories"]) == 6
    clock.jump(days * DAY_S)
    round_of(jobs)
    assert kept(core) == before
    clock.jump(-days * DAY_S)
    assert found(core, "the nests were counted") != []
    assert len(ask(core, List()).memories) == 6
    clock.advance(3600.0)
    round_of(jobs)
    assert kept(core) == before
    undo(core, ask(core, Operations(limit=1000)).operations[-1].id)
    assert core.clock.read_state().state == "steady"


def test_what_was_written_under_a_clock_that_was_ahead_is_the_newest_copy_only_until_there_is_a_newer_one(
    core: Core, jobs: Runner, clock: Any
) -> None:
    for text in ("Herons fish at dawn", "Storks nest on roofs", "Cranes dance in spring"):
        add(core, text)
        clock.advance(DAY_S)
        run(jobs, "backup")
    before = named(core)
    clock.jump(400 * DAY_S)
    add(core, "Owls hunt at night")
    run(jobs, "backup")
    assert named(core)[:3] == before, "no copy is deleted under a clock that jumped"
    clock.jump(-400 * DAY_S)
    add(core, "Swifts nest in walls")
    run(jobs, "backup")
    assert len(named(core)) == 3
    newest = copies.open_plain(copies.list_copies(core.folder / copies.FOLDER)[-1])
    assert newest.execute("SELECT count(*) FROM memories").get == 5
    newest.close()


def test_a_day_after_a_jump_what_has_expired_is_forgotten(core: Core, jobs: Runner, clock: Any) -> None:
    fill(core)
    clock.jump(400 * DAY_S)
    round_of(jobs)
    clock.advance(DAY_S)
    assert "Done: the nests were counted" not in found(core, "the nests were counted")
    assert run(jobs, "expire").counts == {"deleted": 1}
    assert run(jobs, "trim").counts["operations"] > 5


def test_after_a_month_off_what_has_expired_is_not_found_and_later_deleted(folder: Path, clock: Any) -> None:
    config = msgspec.convert(SETTINGS, Config)
    with running(folder, CountingEmbedder(), clock=clock, config=config) as core:
        fill(core)
    clock.reboot("second", off_s=60 * DAY_S)
    with running(folder, CountingEmbedder(), clock=clock, config=config) as core:
        jobs = Runner(core)
        assert "Done: the nests were counted" not in found(core, "the nests were counted")
        assert run(jobs, "expire").counts == {}
        clock.advance(DAY_S)
        assert run(jobs, "expire").counts == {"deleted": 1}
        jobs.close()

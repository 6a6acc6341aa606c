"""The job trim: runs, skipped turns, operations with their history, unused vectors, each at its limit."""

from typing import Any

import pytest

from memoryd.client.errors import NotFound
from memoryd.client.protocol import GetContext, Jobs, Operations
from memoryd.daemon.config import Config, JobsConfig
from memoryd.daemon.context import preparing
from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs.runner import Runner
from memoryd.daemon.store.turns import KEEP_SKIPPED
from memoryd.daemon.upkeep import trim
from moving import run
from workbench import add, ask, delete, found, undo, update

DAY_S = 86400.0


def configured(core: Core, **settings: Any) -> None:
    core.config = Config(jobs=JobsConfig(**settings))


def count(core: Core, table: str) -> int:
    with core.store.reading() as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").get)  # type: ignore[arg-type]


def test_the_latest_runs_of_each_job_are_kept(core: Core, jobs: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trim, "KEEP_RUNS", 2)
    for _ in range(5):
        run(jobs, "maintain")
    run(jobs, "embed")
    assert run(jobs, "trim").counts == {"runs": 3}
    assert [r.job for r in jobs.report(Jobs()).runs] == ["trim", "embed", "maintain", "maintain"]


def test_the_latest_skipped_turns_of_each_namespace_are_kept(core: Core, jobs: Runner) -> None:
    add(core, "x", "a")
    add(core, "x", "b")
    limit = KEEP_SKIPPED
    core.store.write(
        lambda t: t.connection.execute(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
            " INSERT INTO skipped (namespace, session, role, content, reason, at)"
            " SELECT spaces.id, '', 'user', i, 'too short', i FROM n, namespaces spaces",
            (limit + 7,),
        )
    ).result()
    assert run(jobs, "trim").counts == {"skipped turns": 14}
    with core.store.reading() as connection:
        assert connection.execute("SELECT min(at), count(*) FROM skipped").fetchall() == [(8.0, 2 * limit)]


def test_old_operations_go_with_their_history_and_can_no_longer_be_undone(core: Core, jobs: Runner, clock: Any) -> None:
    configured(core, history_days=100)
    old = add(core, "Herons fish at dawn")
    deleted = delete(core, old.id)
    undone = undo(core, deleted.operation)
    clock.advance(101 * DAY_S)
    new = update(core, old.id, importance=1.0)
    assert run(jobs, "trim").counts == {"operations": 3}
    assert (count(core, "operations"), count(core, "history")) == (1, 1)
    with pytest.raises(NotFound):
        undo(core, undone.operation)
    undo(core, new.operation)
    assert found(core, "herons") == ["Herons fish at dawn"]


def test_operations_beyond_the_number_to_keep_go_oldest_first(
    core: Core, jobs: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trim, "KEEP_OPERATIONS", 3)
    added = [add(core, f"Crane number {number}", dedup=False).operation for number in range(8)]
    assert run(jobs, "trim").counts == {"operations": 5}
    assert [one.id for one in ask(core, Operations())] == added[:4:-1]


def test_history_is_kept_for_ever_where_that_is_wanted(core: Core, jobs: Runner, clock: Any) -> None:
    configured(core, history_days=0)
    add(core, "Herons fish at dawn")
    clock.advance(10_000 * DAY_S)
    assert run(jobs, "trim").counts == {}


def test_what_a_session_was_given_long_ago_is_forgotten(core: Core, jobs: Runner, clock: Any) -> None:
    add(core, "a heron")
    for session in ("one", "two"):
        preparing.context(core, core.sources, GetContext(task="a heron", session=session)).result(30)
    clock.advance(300 * DAY_S)
    preparing.context(core, core.sources, GetContext(task="a heron", session="two", fresh=True)).result(30)
    clock.advance(200 * DAY_S)
    assert run(jobs, "trim").counts["notes of what a session was given"] == 1
    assert count(core, "given") == 1


def test_a_vector_goes_when_nothing_uses_it(core: Core, jobs: Runner, clock: Any) -> None:
    configured(core, history_days=10)
    id = add(core, "Herons fish at dawn").id
    update(core, id, content="Storks nest on roofs")
    assert run(jobs, "trim").counts == {}  # the history has the old text
    clock.advance(11 * DAY_S)
    assert run(jobs, "trim").counts == {"operations": 2}
    assert count(core, "vec_embeddings") == 2
    assert run(jobs, "trim").counts == {"vectors": 1}
    assert count(core, "vec_embeddings") == 1
    assert found(core, "storks", min_similarity=0.3) == ["Storks nest on roofs"]


def test_a_vector_that_is_used_again_stays(core: Core, jobs: Runner, clock: Any) -> None:
    configured(core, history_days=10)
    delete(core, add(core, "Herons fish at dawn").id)
    clock.advance(11 * DAY_S)
    run(jobs, "trim")
    planned = run(jobs, "trim", dry_run=True)
    assert [(s.action, s.target) for s in planned.steps] == [("forget", "1 vectors")]
    add(core, "Herons fish at dawn")
    assert run(jobs, "trim", plan=planned.plan).counts == {"vectors": 0}
    assert count(core, "vec_embeddings") == 1


def test_the_vector_of_a_turn_in_l0_stays(core: Core, jobs: Runner, clock: Any) -> None:
    configured(core, history_days=10)
    delete(core, add(core, "Herons fish at dawn").id)
    core.store.write(
        lambda t: t.connection.execute(
            "INSERT INTO turns"
            " (key, namespace, session, role, content, previous, content_hash, importance, source, created_at)"
            " VALUES ('k', 1, '', 'user', 'Herons fish at dawn', '', x'00', 0.5, 'conversation', 0)"
        )
    ).result()
    for _ in range(5):
        clock.advance(31 * DAY_S)
        run(jobs, "trim")
    assert count(core, "vec_embeddings") == 1


def test_a_deleted_successor_is_kept_while_something_is_superseded_through_it(
    core: Core, jobs: Runner, clock: Any
) -> None:
    configured(core, history_days=1)
    first = add(core, "The office closes at five")
    second = add(core, "This week the office closes at four", supersedes=first.id, dedup=False)
    third = add(core, "The office closes at six", supersedes=second.id, dedup=False)
    delete(core, second.id)
    clock.advance(2 * DAY_S)
    update(core, third.id, importance=1.0)
    assert run(jobs, "trim").counts == {"operations": 4}
    assert "deleted successors" not in run(jobs, "trim").counts
    assert found(core, "office closes") == ["The office closes at six"]
    delete(core, first.id)
    clock.advance(2 * DAY_S)
    update(core, third.id, importance=0.5)
    assert run(jobs, "trim").counts["operations"] == 2
    for _ in range(2):  # the first one, then the one that superseded it
        assert run(jobs, "trim").counts["deleted successors"] == 1
    assert count(core, "deleted_successors") == 0

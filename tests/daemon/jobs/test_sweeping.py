"""The sweep, promotion of quiet namespaces, caps and expiry: what moves when, as one operation that can be undone."""

from collections.abc import Iterator

import msgspec
import pytest

from conversing import (
    DAY_S,
    FACTS,
    HOUR_S,
    contents,
    everything,
    flows,
    judge,
    memories,
    observe,
    problems,
    ring,
    run,
    talk,
)
from memoryd.client.protocol import ExportMemories, History, ImportMemories, NewTurn
from memoryd.daemon.config import Config, LifetimeConfig, TiersConfig
from memoryd.daemon.conversations.promoting import PROMOTE
from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs.caps import CAPS
from memoryd.daemon.jobs.expiring import EXPIRE
from memoryd.daemon.jobs.sweeping import SWEEP
from memoryd.daemon.store import rows
from memoryd.daemon.store.history import NUMBER
from workbench import LIMIT_S, Clock, CountingEmbedder, add, ask, delete, found, running, search, undo, update


def access(core: Core, id: str) -> None:
    def job(transaction: object) -> None:
        connection = transaction.connection  # type: ignore[attr-defined]
        row = rows.read_ids(connection, [id])[id]
        rows.count_accesses(connection, [(row.row, 1, core.clock())])

    core.store.write(job).result(LIMIT_S)


def to_l1(core: Core) -> None:
    """Let everything leave L0, as after a quiet day."""
    judge(core)
    run(core, PROMOTE, kind="promote")


# The sweep -----------------------------------------------------------------------------------------------------------


def test_a_memory_moves_when_it_was_not_used_for_16_days_and_a_quarter(core: Core, clock: Clock) -> None:
    add(core, FACTS[0])
    clock.advance(16.25 * DAY_S)
    assert list(SWEEP.plan(core, clock.now)) == []
    clock.advance(0.01 * DAY_S)
    [step] = SWEEP.plan(core, clock.now)
    assert (step.action, step.reason) == ("move", "not used for 16.3 days, recency 0.20")
    _, counts = run(core, SWEEP)
    assert counts == {"moved": 1}
    assert contents(core, "L2") == [FACTS[0]]
    assert found(core, FACTS[0]) == [FACTS[0]]
    assert list(SWEEP.plan(core, clock.now)) == []


def test_an_access_or_a_change_is_a_use(core: Core, clock: Clock) -> None:
    used, changed, idle = (add(core, FACTS[number]).id for number in range(3))
    clock.advance(10 * DAY_S)
    access(core, used)
    update(core, changed, importance=0.9)
    clock.advance(10 * DAY_S)
    assert [step.target for step in SWEEP.plan(core, clock.now)] == [idle]


def test_pinned_memories_stay_and_expired_ones_wait_where_they_are(core: Core, clock: Clock) -> None:
    add(core, FACTS[0], pinned=True)
    add(core, FACTS[1], expires_at=clock.now + DAY_S)
    old = add(core, FACTS[2]).id
    add(core, FACTS[3], supersedes=old)
    clock.advance(40 * DAY_S)
    run(core, SWEEP)
    assert contents(core, "L1") == [FACTS[0], FACTS[1]]


def test_nothing_moves_before_five_minutes_however_short_the_half_life(folder: object, clock: Clock) -> None:
    config = Config(tiers=TiersConfig(recent_half_life_days=1e-6))
    with running(folder, CountingEmbedder(), clock=clock, config=config) as core:  # type: ignore[arg-type]
        add(core, FACTS[0])
        clock.advance(300)
        assert list(SWEEP.plan(core, clock.now)) == []
        clock.advance(1)
        assert len(list(SWEEP.plan(core, clock.now))) == 1


def test_what_was_used_or_pinned_since_the_plan_is_skipped(core: Core, clock: Clock) -> None:
    used, pinned, gone, moved = (add(core, FACTS[number]).id for number in range(4))
    clock.advance(20 * DAY_S)
    planned = list(SWEEP.plan(core, clock.now))
    access(core, used)
    update(core, pinned, pinned=True)
    delete(core, gone)
    _, counts = run(core, SWEEP, planned)
    assert counts == {"skipped": 3, "moved": 1}
    assert [row.id for row in memories(core, "L2")] == [moved]


@pytest.mark.parametrize("count", [0, 1, 60])
def test_a_sweep_is_one_operation_and_undo_restores_everything(core: Core, clock: Clock, count: int) -> None:
    for number in range(count):
        add(core, f"We decided that rule {number} holds for the ledger.", "acme" if number % 2 else "other")
    clock.advance(20 * DAY_S)
    before = everything(core)
    operation, counts = run(core, SWEEP)
    assert counts.get("moved", 0) == count
    if count:
        undo(core, operation)
    assert everything(core) == before


def test_the_history_keeps_of_a_move_the_former_tier_and_shows_the_rest_from_what_came_later(
    core: Core, clock: Clock
) -> None:
    id = add(core, FACTS[0], importance=0.7).id
    clock.advance(20 * DAY_S)
    operation, _ = run(core, SWEEP)
    with core.store.reading() as connection:
        [kept] = connection.execute(f"SELECT before FROM history WHERE operation = {NUMBER}", (operation,)).fetchall()
    assert msgspec.json.decode(kept[0]) == {"moved": {"namespace": 1, "type": "fact", "tier": "L1"}}
    update(core, id, content=FACTS[1])
    [made, moved, changed] = ask(core, History(id=id)).changes
    assert (made.changed["content"], made.changed["tier"]) == ((None, FACTS[0]), (None, "L1"))
    assert moved.changed == {"tier": ("L1", "L2")}
    assert changed.changed["content"] == (FACTS[0], FACTS[1])
    [change] = ask(core, History(operation=operation)).changes
    assert (change.preview, change.changed) == (FACTS[0], {"tier": ("L1", "L2")})
    [change] = ask(core, History(operation=made.operation)).changes
    assert change.changed["tier"] == (None, "L1")
    undo(core)
    back = undo(core, operation).operation
    assert contents(core, "L1") == [FACTS[0]]
    undo(core, back)
    assert contents(core, "L2") == [FACTS[0]]
    delete(core, id)
    [*_, last] = ask(core, History(id=id)).changes
    assert last.changed["tier"] == ("L2", None)


# Questions and answers -----------------------------------------------------------------------------------------------


def test_a_question_and_its_answer_move_each_by_itself_unchanged_and_stay_linked(core: Core, clock: Clock) -> None:
    asked, told = talk(core, FACTS[0], FACTS[1], session="s").ids
    clock.advance(25 * HOUR_S)
    to_l1(core)
    before = memories(core)
    clock.advance(10 * DAY_S)
    access(core, told)
    clock.advance(10 * DAY_S)
    operation, counts = run(core, SWEEP)
    assert counts == {"moved": 1}
    assert [row.id for row in memories(core, "L2")] == [asked]
    [hit] = search(core, FACTS[1], limit=1)
    assert (hit.id, [(one.id, one.kind, one.content) for one in hit.related]) == (
        told,
        [(asked, "prompt", FACTS[0])],
    )
    undo(core, operation)
    assert [(row.id, row.tier, row.content) for row in memories(core)] == [(r.id, "L1", r.content) for r in before]
    assert problems(core) == []


# Quiet namespaces ----------------------------------------------------------------------------------------------------


def test_turns_of_a_namespace_that_was_quiet_for_a_day_leave_l0_and_undo_puts_them_back(
    core: Core, clock: Clock
) -> None:
    observe(core, FACTS[0], "What is the weather like today?", namespace="quiet")
    observe(core, FACTS[1], namespace="busy")
    judge(core)
    clock.advance(24 * HOUR_S)
    observe(core, FACTS[2], namespace="busy")
    judge(core)
    assert list(PROMOTE.plan(core, clock.now)) == []
    clock.advance(1)
    before = everything(core)
    assert [step.action for step in PROMOTE.plan(core, clock.now)] == ["promote", "promote"]
    operation, counts = run(core, PROMOTE, kind="promote")
    assert counts == {"promoted": 2}
    assert (ring(core, "quiet"), ring(core, "busy")) == ([], [FACTS[1], FACTS[2]])
    assert (contents(core, "L1"), contents(core, "L2")) == ([FACTS[0]], ["What is the weather like today?"])
    assert problems(core) == []
    undone = undo(core, operation)
    assert everything(core) == before
    assert len(ring(core, "quiet")) == 2
    assert problems(core) == []
    undo(core, undone.operation)  # an undone undo does it again
    assert (ring(core, "quiet"), contents(core, "L1")) == ([], [FACTS[0]])
    assert problems(core) == []


def test_a_turn_that_left_since_the_plan_is_skipped(core: Core, clock: Clock) -> None:
    observe(core, FACTS[0])
    clock.advance(25 * HOUR_S)
    planned = list(PROMOTE.plan(core, clock.now))
    observe(core, *FACTS[1:21])
    _, counts = run(core, PROMOTE, planned)
    assert counts == {"skipped": 1}


# Caps ----------------------------------------------------------------------------------------------------------------


def test_l1_over_its_limit_passes_on_the_least_recent_then_the_least_important(folder: object, clock: Clock) -> None:
    config = Config(tiers=TiersConfig(max_recent=2))
    with running(folder, CountingEmbedder(), clock=clock, config=config) as core:  # type: ignore[arg-type]
        old = add(core, FACTS[0], "a").id
        clock.advance(10)
        add(core, FACTS[1], "a", importance=0.9)
        add(core, FACTS[2], "a", importance=0.1)
        add(core, FACTS[3], "a", importance=0.8)
        add(core, FACTS[4], "b")
        clock.advance(1)
        access(core, old)
        [first, second] = CAPS.plan(core, clock.now)
        assert first.reason == "L1 of a has 4, its limit is 2"
        operation, counts = run(core, CAPS, [first, second], kind="caps")
        assert counts == {"moved": 2}
        assert contents(core, "L1") == [FACTS[0], FACTS[1], FACTS[4]]
        assert list(CAPS.plan(core, clock.now)) == []
        undo(core, operation)
        assert len(contents(core, "L1")) == 5


def test_l2_over_its_limit_loses_the_weakest_by_confidence_and_recency(folder: object, clock: Clock) -> None:
    config = Config(tiers=TiersConfig(max_facts=2))
    with running(folder, CountingEmbedder(), clock=clock, config=config) as core:  # type: ignore[arg-type]
        add(core, FACTS[0], importance=0.9, metadata={"confidence": 0.2})
        add(core, FACTS[1], importance=0.3)
        add(core, FACTS[2], importance=0.1, pinned=True)
        add(core, FACTS[3], importance=0.1, metadata={"confidence": "high"})
        clock.advance(30 * DAY_S)
        add(core, FACTS[4], importance=0.16, created_at=clock.now - 20 * DAY_S)

        def registry(transaction: object) -> None:
            transaction.connection.execute("UPDATE memories SET tier = 'L2'")  # type: ignore[attr-defined]

        core.store.write(registry).result(LIMIT_S)
        before = everything(core)
        weakest = [step.target for step in CAPS.plan(core, clock.now)]
        by_id = {row.id: row.content for row in memories(core)}
        # 0.1 x 0.5, 0.2 x 0.5, 0.16 x 0.63, 0.3 x 0.5; the pinned one never goes
        assert [by_id[id] for id in weakest] == [FACTS[3], FACTS[0], FACTS[4]]
        operation, counts = run(core, CAPS, kind="caps")
        assert counts == {"deleted": 3}
        assert found(core, FACTS[3]) != [FACTS[3]]
        undo(core, operation)
        assert everything(core) == before


# Expiry --------------------------------------------------------------------------------------------------------------


SWARM = Config(lifetime=LifetimeConfig(days={"task_completion": 7, "session_summary": 3, "file_index": 30}))


@pytest.fixture
def swarm(folder: object, clock: Clock) -> Iterator[Core]:
    with running(folder, CountingEmbedder(), clock=clock, config=SWARM) as core:  # type: ignore[arg-type]
        yield core


def test_by_default_parts_of_files_alone_expire(core: Core, clock: Clock) -> None:
    for fact, source in zip(FACTS, ("task_completion", "session_summary", "file_index", "manual"), strict=False):
        add(core, fact, source=source)
    assert [row.expires_at for row in memories(core)] == [None, None, clock.now + 30 * DAY_S, None]


def test_the_source_of_a_memory_sets_its_time_to_live(swarm: Core, clock: Clock) -> None:
    core = swarm
    add(core, FACTS[0], source="task_completion")
    add(core, FACTS[1], source="manual")
    assert [row.expires_at for row in memories(core)] == [clock.now + 7 * DAY_S, None]
    clock.advance(7 * DAY_S - 1)
    assert found(core, FACTS[0])[0] == FACTS[0]
    clock.advance(1)
    assert FACTS[0] not in found(core, FACTS[0])


def test_a_given_time_a_pin_and_an_import_have_their_own_way(swarm: Core, clock: Clock) -> None:
    core = swarm
    add(core, FACTS[0], source="task_completion", expires_at=clock.now + 5)
    add(core, FACTS[1], source="task_completion", pinned=True)
    add(core, FACTS[2], source="task_completion", created_at=clock.now - DAY_S)
    assert [row.expires_at for row in memories(core)] == [clock.now + 5, None, clock.now + 6 * DAY_S]


def test_a_repetition_lives_as_long_as_the_longer_of_the_two(swarm: Core, clock: Clock) -> None:
    core = swarm
    add(core, FACTS[0], source="session_summary")
    clock.advance(DAY_S)
    add(core, FACTS[0], source="session_summary")
    assert memories(core)[0].expires_at == clock.now + 3 * DAY_S
    add(core, FACTS[0])
    assert memories(core)[0].expires_at is None


def test_what_had_expired_when_it_came_stays_for_the_grace(core: Core, clock: Clock) -> None:
    long_ago = clock.now - 60 * DAY_S
    first = add(core, FACTS[0], expires_at=long_ago).id
    [record] = ask(core, ExportMemories()).records
    times = {"created_at": long_ago, "updated_at": long_ago}
    second = msgspec.structs.replace(record, id="ab" * 16, content=FACTS[1], **times)
    ask(core, ImportMemories(records=[second]))
    assert list(EXPIRE.plan(core, clock.now)) == []
    clock.advance(30 * DAY_S + 1)
    assert {step.target for step in EXPIRE.plan(core, clock.now)} == {first, second.id}


def test_what_expired_is_deleted_after_the_grace_unless_it_was_pinned_or_prolonged(core: Core, clock: Clock) -> None:
    kept, pinned, longer, gone = (add(core, FACTS[n], expires_at=clock.now + 10).id for n in range(4))
    clock.advance(30 * DAY_S + 10)
    planned = list(EXPIRE.plan(core, clock.now))
    assert {step.target for step in planned} == {kept, pinned, longer, gone}
    assert planned[0].reason == "expired 30.0 days ago"
    update(core, pinned, pinned=True)
    update(core, longer, expires_at=clock.now + 10)
    update(core, kept, expires_at=None)
    operation, counts = run(core, EXPIRE, planned, kind="expire")
    assert counts == {"deleted": 1, "skipped": 3}
    assert gone not in [row.id for row in memories(core)]
    undo(core, operation)
    assert gone in [row.id for row in memories(core)]


def test_an_expired_turn_is_accounted_for(folder: object, clock: Clock) -> None:
    config = Config(lifetime=LifetimeConfig(days={"conversation": 1.0}))
    with running(folder, CountingEmbedder(), clock=clock, config=config) as core:  # type: ignore[arg-type]
        observe(core, *FACTS[:21])
        clock.advance(40 * DAY_S)
        run(core, EXPIRE, kind="expire")
        assert contents(core) == []
        assert flows(core)["gone: job:expire"] == 1
        assert problems(core) == []


def test_a_turn_observed_with_an_old_date_is_quiet_at_once(core: Core, clock: Clock) -> None:
    observe(core, NewTurn(role="user", content=FACTS[0], created_at=clock.now - 90 * DAY_S))
    _, counts = run(core, PROMOTE, kind="promote")
    assert counts == {"promoted": 1}
    _, counts = run(core, SWEEP)
    assert counts == {"moved": 1}
    assert memories(core)[0].created_at == clock.now - 90 * DAY_S

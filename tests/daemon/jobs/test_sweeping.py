"""The sweep, promotion of quiet namespaces, caps and expiry: what moves when, as one operation that can be undone."""

import math

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
from memoryd.client.protocol import NewTurn
from memoryd.daemon.config import Config, LifetimeConfig, TiersConfig
from memoryd.daemon.conversations.promoting import PROMOTE
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.work import Work
from memoryd.daemon.jobs import sweeping
from memoryd.daemon.jobs.caps import CAPS
from memoryd.daemon.jobs.expiring import EXPIRE
from memoryd.daemon.jobs.sweeping import SWEEP, cold_age_s, recency
from memoryd.daemon.store import rows
from workbench import LIMIT_S, Clock, CountingEmbedder, add, delete, found, running, undo, update, wait_until


def access(core: Core, id: str) -> None:
    def job(transaction: object) -> None:
        connection = transaction.connection  # type: ignore[attr-defined]
        row = rows.by_ids(connection, [id])[id]
        rows.accessed(connection, [(row.row, 1, core.clock())])

    core.store.write(job).result(LIMIT_S)


def to_l1(core: Core) -> None:
    """Let everything leave L0, as after a quiet day."""
    judge(core)
    run(core, PROMOTE, kind="promote")


# Recency -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("age_days", "half_life_days", "expected"),
    [(0, 7, 1.0), (7, 7, 0.5), (14, 7, 0.25), (3.5, 7, 0.70710678), (30, 30, 0.5), (-5, 7, 1.0), (16.2535, 7, 0.2)],
)
def test_recency_is_half_at_the_half_life(age_days: float, half_life_days: float, expected: float) -> None:
    assert recency(age_days * DAY_S, half_life_days) == pytest.approx(expected, abs=1e-5)


def test_the_line_of_one_fifth_is_reached_after_16_and_a_quarter_days() -> None:
    assert cold_age_s(0.2, 7.0) / DAY_S == pytest.approx(16.2535, abs=1e-4)
    assert cold_age_s(0.0, 7.0) == math.inf


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


@pytest.mark.parametrize("count", [0, 1, 2, 300])
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


# Pairs ---------------------------------------------------------------------------------------------------------------


def test_a_question_and_its_answer_become_one_memory_of_the_registry(core: Core, clock: Clock) -> None:
    question, answer = talk(core, FACTS[0], FACTS[1], session="s").ids
    clock.advance(25 * HOUR_S)
    to_l1(core)
    assert contents(core, "L1") == [FACTS[0], FACTS[1]]
    clock.advance(20 * DAY_S)
    operation, counts = run(core, SWEEP)
    assert counts == {"paired": 1}
    [row] = memories(core)
    assert row.content == f"User: {FACTS[0]}\nAssistant: {FACTS[1]}"
    assert (row.id, row.tier, row.turns) == (question, "L2", 2)
    assert msgspec.json.decode(row.metadata) == {"session": "s", "turns": [question, answer]}
    assert problems(core) == []
    wait_until(lambda: core.embedding.pending() == 0)
    assert found(core, FACTS[1]) == [row.content]
    del operation


def test_undo_of_a_pairing_restores_both_turns_exactly(core: Core, clock: Clock) -> None:
    talk(core, FACTS[0], FACTS[1], session="s")
    clock.advance(25 * HOUR_S)
    to_l1(core)
    other = add(core, FACTS[5]).id

    def link(transaction: object) -> None:
        transaction.connection.execute(  # type: ignore[attr-defined]
            "INSERT INTO links SELECT ?, id, 'contradicts', 1.0 FROM memories WHERE content = ?", (other, FACTS[1])
        )

    core.store.write(link).result(LIMIT_S)
    clock.advance(20 * DAY_S)
    access(core, other)
    before = everything(core)
    operation, counts = run(core, SWEEP)
    assert counts == {"paired": 1}
    assert len(everything(core)[2]) == 1, "the answer's link is the pair's"
    undo(core, operation)
    assert everything(core) == before
    assert FACTS[1] in found(core, FACTS[1])
    assert problems(core) == []


def test_undo_of_two_pairings_leaves_no_link_that_the_first_one_made(core: Core, clock: Clock) -> None:
    first, second = (talk(core, FACTS[n], FACTS[n + 1], session=f"{n}").ids for n in (0, 2))
    clock.advance(25 * HOUR_S)
    to_l1(core)

    def link(transaction: object) -> None:  # becomes one to the first question before the second one is recorded
        connection = transaction.connection  # type: ignore[attr-defined]
        connection.execute("INSERT INTO links VALUES (?, ?, 'shared_from', 1.0)", (second[0], first[1]))

    core.store.write(link).result(LIMIT_S)
    clock.advance(20 * DAY_S)
    before = everything(core)
    operation, counts = run(core, SWEEP)
    after = everything(core)
    assert counts == {"paired": 2}
    undone = undo(core, operation)
    assert everything(core) == before
    undo(core, undone.operation)
    assert everything(core) == after


def test_a_question_waits_for_an_answer_that_is_still_in_use_and_the_other_way_round(core: Core, clock: Clock) -> None:
    asked_1, told_1 = talk(core, FACTS[0], FACTS[1], session="a").ids
    asked_2, told_2 = talk(core, FACTS[2], FACTS[3], session="b").ids
    clock.advance(25 * HOUR_S)
    to_l1(core)
    clock.advance(10 * DAY_S)
    access(core, told_1)
    access(core, asked_2)
    clock.advance(10 * DAY_S)
    assert list(SWEEP.plan(core, clock.now)) == []
    clock.advance(10 * DAY_S)
    run(core, SWEEP)
    assert [row.id for row in memories(core, "L2")] == [asked_1, asked_2]
    del told_2


def test_a_turn_whose_partner_is_in_l2_deleted_or_pinned_moves_alone(core: Core, clock: Clock) -> None:
    observe(core, "What is the weather like?", session="a")
    observe(core, FACTS[0], role="assistant", session="a")
    asked, told = talk(core, FACTS[1], FACTS[2], session="b").ids
    pinned = talk(core, FACTS[3], FACTS[4], session="c").ids
    clock.advance(25 * HOUR_S)
    to_l1(core)
    delete(core, asked)
    update(core, pinned[1], pinned=True)
    clock.advance(20 * DAY_S)
    _, counts = run(core, SWEEP)
    assert counts == {"moved": 3}
    assert contents(core, "L2") == ["What is the weather like?", FACTS[0], FACTS[2], FACTS[3]]
    assert contents(core, "L1") == [FACTS[4]]
    assert problems(core) == []
    del told


@pytest.mark.parametrize("work", [SWEEP, CAPS], ids=["sweep", "caps"])
@pytest.mark.parametrize("end", ["superseded", "expired", "superseded for a while"])
@pytest.mark.parametrize("dead", [0, 1], ids=["question", "answer"])
def test_the_living_half_of_a_question_and_answer_is_found_and_the_other_is_not(
    folder: object, clock: Clock, work: Work, end: str, dead: int
) -> None:
    config = Config(tiers=TiersConfig(max_recent=1))
    with running(folder, CountingEmbedder(), clock=clock, config=config) as core:  # type: ignore[arg-type]
        ids = talk(core, FACTS[0], FACTS[1], session="s").ids
        clock.advance(25 * HOUR_S)
        to_l1(core)
        living = FACTS[1 - dead]
        if end == "expired":
            update(core, ids[dead], expires_at=clock.now + DAY_S)
        else:
            until = clock.now + DAY_S if end == "superseded for a while" else None
            successor = add(core, FACTS[2], supersedes=ids[dead], dedup=False, expires_at=until).id
        clock.advance(20 * DAY_S)
        back = {FACTS[dead]} if end == "superseded for a while" else set()
        assert living in found(core, living)
        assert set(found(core, FACTS[dead])) & {FACTS[dead]} == back
        _, counts = run(core, work)
        assert "paired" not in counts
        assert work is CAPS or living in contents(core, "L2")
        assert found(core, living)[0] == living
        assert set(found(core, FACTS[dead])) & {FACTS[dead]} == back
        assert not any(FACTS[dead] in content for content in contents(core, "L2") if content != FACTS[dead])
        if end != "expired":
            update(core, successor, expires_at=clock.now + DAY_S)
            assert found(core, living)[0] == living
        assert problems(core) == []


def test_a_turn_that_was_superseded_or_expired_since_the_plan_is_not_paired(core: Core, clock: Clock) -> None:
    first = talk(core, FACTS[0], FACTS[1], session="a").ids
    second = talk(core, FACTS[2], FACTS[3], session="b").ids
    clock.advance(25 * HOUR_S)
    to_l1(core)
    update(core, first[1], expires_at=clock.now + 20 * DAY_S)
    superseding = add(core, FACTS[4], supersedes=second[0], dedup=False)
    undone = undo(core, superseding.operation)
    clock.advance(19 * DAY_S)
    planned = list(SWEEP.plan(core, clock.now))
    assert [step.action for step in planned] == ["pair", "pair"]
    undo(core, undone.operation)  # brings back the row as it was: with its old time of change
    clock.advance(2 * DAY_S)
    assert "paired" not in run(core, SWEEP, planned)[1]
    assert found(core, FACTS[0])[0] == FACTS[0]
    assert found(core, FACTS[3])[0] == FACTS[3]


def test_what_an_answer_superseded_stays_superseded_by_the_pair(core: Core, clock: Clock) -> None:
    old = add(core, FACTS[5]).id
    ids = talk(core, FACTS[0], FACTS[1], session="s").ids
    clock.advance(25 * HOUR_S)
    to_l1(core)

    def supersede(transaction: object) -> None:  # as a dream does
        connection = transaction.connection  # type: ignore[attr-defined]
        rows.change(connection, rows.by_ids(connection, [old])[old].row, {"superseded_by": ids[1]})

    core.store.write(supersede).result(LIMIT_S)
    clock.advance(20 * DAY_S)
    before = everything(core)
    operation, counts = run(core, SWEEP)
    assert counts["paired"] == 1
    assert FACTS[5] not in found(core, FACTS[5])
    deleted = delete(core, ids[0])
    assert found(core, FACTS[5]) == [FACTS[5]]
    undo(core, deleted.operation)
    undo(core, operation)
    assert everything(core) == before
    assert FACTS[5] not in found(core, FACTS[5])
    delete(core, ids[1])
    assert found(core, FACTS[5])[0] == FACTS[5]


def test_added_memories_move_alone_and_unchanged(core: Core, clock: Clock) -> None:
    id = add(core, FACTS[0], metadata={"role": "user", "answers": "ab" * 16}, source="conversation").id
    before = memories(core)[0]
    clock.advance(20 * DAY_S)
    run(core, SWEEP)
    assert memories(core)[0] == msgspec.structs.replace(before, tier="L2")
    assert memories(core)[0].id == id


def test_a_pair_has_the_greater_importance_and_all_accesses(core: Core, clock: Clock) -> None:
    talk(core, FACTS[0], FACTS[1])
    clock.advance(25 * HOUR_S)
    to_l1(core)
    for row in memories(core):
        access(core, row.id)
        clock.advance(60)
    asked, told = memories(core)
    fields = sweeping.pair_fields(
        msgspec.structs.replace(asked, importance=0.6, expires_at=5.0),
        msgspec.structs.replace(told, importance=0.9, expires_at=7.0),
    )
    assert (fields["importance"], fields["access_count"], fields["last_accessed_at"]) == (0.9, 2, clock.now - 60)
    assert fields["expires_at"] == 7.0
    assert sweeping.pair_fields(asked, msgspec.structs.replace(told, expires_at=7.0))["expires_at"] is None


def test_two_turns_too_large_for_one_memory_move_as_two(core: Core, clock: Clock) -> None:
    large = "We decided " + "x" * 600_000
    observe(core, large)
    observe(core, large + "y", role="assistant")
    clock.advance(25 * HOUR_S)
    to_l1(core)
    clock.advance(20 * DAY_S)
    _, counts = run(core, SWEEP)
    assert counts == {"moved": 2}


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


def test_a_question_that_has_to_go_takes_its_answer_along(folder: object, clock: Clock) -> None:
    config = Config(tiers=TiersConfig(max_recent=3, ring=1))
    with running(folder, CountingEmbedder(), clock=clock, config=config) as core:  # type: ignore[arg-type]
        talk(core, FACTS[0], FACTS[1])
        clock.advance(1)
        observe(core, *FACTS[2:5])
        judge(core)
        _, counts = run(core, CAPS, kind="caps")
        assert counts == {"paired": 1}
        assert contents(core, "L2") == [f"User: {FACTS[0]}\nAssistant: {FACTS[1]}"]
        assert problems(core) == []


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


def test_without_a_limit_l2_keeps_everything(core: Core) -> None:
    add(core, FACTS[0])
    assert list(CAPS.plan(core, core.clock() + 1e9)) == []


# Expiry --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "days"), [("task_completion", 7), ("session_summary", 3), ("file_index", 30), ("manual", None)]
)
def test_the_source_of_a_memory_sets_its_time_to_live(core: Core, clock: Clock, source: str, days: int | None) -> None:
    add(core, FACTS[0], source=source)
    expected = None if days is None else clock.now + days * DAY_S
    assert memories(core)[0].expires_at == expected
    if days is not None:
        clock.advance(days * DAY_S - 1)
        assert found(core, FACTS[0]) == [FACTS[0]]
        clock.advance(1)
        assert found(core, FACTS[0]) == []


def test_a_given_time_a_pin_and_an_import_have_their_own_way(core: Core, clock: Clock) -> None:
    add(core, FACTS[0], source="task_completion", expires_at=clock.now + 5)
    add(core, FACTS[1], source="task_completion", pinned=True)
    add(core, FACTS[2], source="task_completion", created_at=clock.now - DAY_S)
    assert [row.expires_at for row in memories(core)] == [clock.now + 5, None, clock.now + 6 * DAY_S]


def test_a_repetition_lives_as_long_as_the_longer_of_the_two(core: Core, clock: Clock) -> None:
    add(core, FACTS[0], source="session_summary")
    clock.advance(DAY_S)
    add(core, FACTS[0], source="session_summary")
    assert memories(core)[0].expires_at == clock.now + 3 * DAY_S
    add(core, FACTS[0])
    assert memories(core)[0].expires_at is None


def test_times_to_live_are_settings(folder: object, clock: Clock) -> None:
    config = Config(lifetime=LifetimeConfig(days={"conversation": 2.0, "note": 1.0}))
    with running(folder, CountingEmbedder(), clock=clock, config=config) as core:  # type: ignore[arg-type]
        add(core, FACTS[50], source="task_completion")
        add(core, FACTS[51], source="note")
        observe(core, *FACTS[:21])
        assert [row.expires_at for row in memories(core)] == [None, clock.now + DAY_S, clock.now + 2 * DAY_S]


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


def test_no_job_mixes_two_namespaces(core: Core, clock: Clock) -> None:
    for namespace in ("acme", "acme/api", ""):
        talk(core, FACTS[0], FACTS[1], namespace=namespace, session="s")
    clock.advance(25 * HOUR_S)
    to_l1(core)
    clock.advance(20 * DAY_S)
    _, counts = run(core, SWEEP)
    assert counts == {"paired": 3}
    assert len({row.namespace for row in memories(core)}) == 3
    for namespace in ("acme", "acme/api", ""):
        assert flows(core, namespace)["observed"] == 2
    assert problems(core) == []


def test_a_turn_observed_with_an_old_date_is_quiet_at_once(core: Core, clock: Clock) -> None:
    observe(core, NewTurn(role="user", content=FACTS[0], created_at=clock.now - 90 * DAY_S))
    _, counts = run(core, PROMOTE, kind="promote")
    assert counts == {"promoted": 1}
    _, counts = run(core, SWEEP)
    assert counts == {"moved": 1}
    assert memories(core)[0].created_at == clock.now - 90 * DAY_S

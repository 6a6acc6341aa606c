"""The calls about tiers through a real server: observe, turns, skipped, tiers, consolidate, seed, jobs and undo."""

from typing import Any

import pytest

from conversing import FACTS, memories, problems
from memoryd.client.errors import Forbidden
from memoryd.client.protocol import AddToken, Consolidate, Observe, Progress, Verify
from memoryd.daemon.conversations import judging
from memoryd.daemon.core.core import Core
from memoryd.daemon.store.tiers import L3, TIERS, WAITING
from workbench import Clock, wait_until


def judged(core: Core) -> None:
    wait_until(lambda: judging.count_waiting(core) == {})


def test_the_example_of_the_manual_runs_as_written(daemon: Any) -> None:
    with daemon.client(("acme", "api", "alpha")) as memory:
        observed = memory.observe([{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}])
        assert [turn.outcome for turn in observed] == ["skipped", "skipped"]
        observed = memory.observe([{"role": "user", "content": FACTS[0]}, {"role": "assistant", "content": FACTS[1]}])
        assert (observed.accepted, len(observed.ids), len(observed)) == (2, 2, 2)


def test_a_client_sees_the_turns_within_its_reach(daemon: Any) -> None:
    with daemon.client("acme/api") as api, daemon.client("acme/web") as web, daemon.client("acme") as acme:
        api.observe([{"role": "user", "content": FACTS[0]}, {"role": "user", "content": "ok"}], session="a")
        acme.observe([{"role": "user", "content": FACTS[1]}], session="b")
        assert [turn.content for turn in api.turns()] == [FACTS[1], FACTS[0]]
        assert [turn.content for turn in web.turns()] == [FACTS[1]]
        assert [turn.content for turn in acme.turns(reach="subtree")] == [FACTS[1], FACTS[0]]
        assert [turn.content for turn in api.turns(session="a")] == [FACTS[0]]
        assert (api.turns(limit=1).total, len(api.turns(limit=1)), api.turns().ring) == (2, 1, 20)
        assert [turn.reason for turn in api.turns(skipped=True).skipped] == ["too short"]
        assert list(web.turns(skipped=True).skipped) == []
        assert web.tiers().flows == {"observed": 1}
        assert api.tiers().flows == {"observed": 3, "skipped: too short": 1}
        assert {one.namespace: one.tiers for one in api.tiers().namespaces} == {
            "acme": {"L0": 1},
            "acme/api": {"L0": 1},
        }


def test_a_turn_can_be_read_by_its_id_wherever_it_is(daemon: Any, core: Core) -> None:
    with daemon.client("acme") as client:
        id = client.observe([{"role": "user", "content": FACTS[0]}], session="s").ids[0]
        memory = client.get(id[:8])
        assert (memory.id, memory.tier, memory.content, memory.metadata) == (
            id,
            "L0",
            FACTS[0],
            {"role": "user", "session": "s"},
        )
        client.observe([{"role": "user", "content": fact} for fact in FACTS[1:21]])
        assert client.get(id).tier == "L1"


def test_tiers_tell_counts_bytes_times_and_limits(client: Any, core: Core, clock: Clock) -> None:
    client.observe([{"role": "user", "content": fact} for fact in FACTS[:23]])
    client.add("We use Valkey")
    report = client.tiers()
    levels = {tier.name: tier for tier in report.tiers}
    assert list(levels) == [name for name in TIERS if name not in (WAITING, L3)]  # of shared roots: where there are any
    assert (levels["L0"].count, levels["L0"].limit, levels["L1"].count, levels["L2"].count) == (20, 20, 4, 0)
    assert levels["L0"].ram_bytes > 20 * 40
    assert levels["L1"].oldest_at == levels["L1"].newest_at == clock.now
    assert report.flows["observed"] == 23
    judged(core)
    assert client.tiers().waiting == {}


def test_consolidation_empties_L0_alone_and_can_be_undone(client: Any, core: Core) -> None:
    client.observe([{"role": "user", "content": FACTS[0]}, {"role": "assistant", "content": FACTS[1]}], session="s")
    client.observe([{"role": "user", "content": "What is the weather like today?"}])
    client.add("We use Valkey")
    client.add("The pin stays", pinned=True)
    judged(core)
    foreseen = client.consolidate(dry_run=True)
    assert (foreseen.promoted, foreseen.dropped, foreseen.moved) == (3, 0, 0)
    assert {row.tier for row in memories(core)} == {"L1"}
    events: list[Progress] = []

    done = client.call(Consolidate(), events.append)
    assert (done.promoted, done.dropped, done.moved) == (3, 0, 0)
    assert {"judge", "promote"} <= {event.stage for event in events}
    assert sorted(row.tier for row in memories(core)) == ["L1", "L1", "L1", "L1", "L2"]
    assert client.turns().total == 0
    assert problems(core) == []
    client.undo(done.operation)
    assert client.turns().total == 3
    assert sorted(row.tier for row in memories(core)) == ["L1", "L1"]
    assert client.call(Verify()).problems == []


def test_consolidation_keeps_to_its_reach(daemon: Any, core: Core) -> None:
    with daemon.client("acme") as acme, daemon.client("other") as other:
        acme.observe([{"role": "user", "content": FACTS[0]}])
        other.observe([{"role": "user", "content": FACTS[1]}])
        other.add("We use Valkey")
        assert acme.consolidate().promoted == 1
        assert other.turns().total == 1
        assert [row.tier for row in memories(core) if row.turns == 0] == ["L1"]


def test_a_token_observes_into_its_own_namespace_and_may_not_consolidate(daemon: Any, client: Any) -> None:
    token = client.call(AddToken(name="alpha", namespace="acme/alpha")).token
    with daemon.client("acme/alpha", token=token) as alpha:
        assert alpha.observe([{"role": "user", "content": FACTS[0]}]).accepted == 1
        with pytest.raises(Forbidden):
            alpha.consolidate()
        with pytest.raises(Forbidden):
            alpha.call(Observe(namespace="acme/beta", turns=[]))

"""Following events: their order, what each follower sees, slow followers, ends."""

import logging
import threading
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import msgspec
import pytest

from memoryd.client import AsyncClient, Client, Forbidden, Unauthenticated, Unavailable
from memoryd.client.protocol import (
    Add,
    AddToken,
    Consolidate,
    Event,
    NewMemory,
    NewTurn,
    Observe,
    RevokeToken,
    RunJob,
    Share,
    Shutdown,
    Subscribed,
)
from memoryd.client.transport.subscription import Subscription
from memoryd.daemon.server import subscriptions
from waiting import wait_until
from wire import Wire, request
from workbench import Clock, Daemon

Start = Callable[..., "Daemon"]
IDLE_S = 0.3


def rest(followed: Subscription) -> list[Event]:
    """Return what comes until nothing came for a while."""
    followed._connection.wait_at_most(IDLE_S)
    return list(followed)


def told(events: list[Event]) -> list[tuple[str, str]]:
    return [(event.kind, event.text) for event in events]


@pytest.fixture
def followed(client: Client) -> Iterator[Subscription]:
    with client.subscribe() as subscription:
        yield subscription


# What ----------------------------------------------------------------------------------------------------------------


def test_a_change_has_the_time_at_which_it_was_made_however_late_it_is_told(
    daemon: "Daemon", client: Client, followed: Subscription, clock: "Clock", monkeypatch: pytest.MonkeyPatch
) -> None:
    def let_time_pass() -> None:
        daemon.core.store.write(lambda transaction: None).result()  # the one before is reported by then
        clock.advance(5)

    monkeypatch.setattr(subscriptions, "GATHER_S", 0.1)
    id = client.add("We use Valkey").id
    let_time_pass()
    client.delete(id)
    let_time_pass()
    added, deleted = next(followed), next(followed)
    assert deleted.at - added.at == 5
    assert deleted.at == clock() - 5


def test_a_memorys_life_is_told_in_order(client: Client, followed: Subscription) -> None:
    id = client.add("We use Valkey", type="decision").id
    client.update(id, content="We use Valkey 8")
    client.delete(id)
    client.undo()
    events = [next(followed) for _ in range(4)]
    assert told(events) == [
        ("created", "We use Valkey"),
        ("updated", "We use Valkey 8"),
        ("deleted", "We use Valkey 8"),
        ("created", "We use Valkey 8"),
    ]
    assert {(event.id, event.type, event.tier, event.namespace) for event in events} == {(id, "decision", "L1", "")}
    assert [event.by for event in events] == ["add", "update", "delete", "undo"]
    assert [event.operation for event in events] == [one.id for one in client.operations()][::-1]


def test_what_was_written_in_one_transaction_is_told_as_it_was_at_each_step(daemon: "Daemon", client: Client) -> None:
    with client.subscribe() as followed:
        blocked, going = threading.Event(), threading.Event()

        def hold(transaction: object) -> None:
            blocked.set()
            assert going.wait(60)

        held = daemon.core.store.write(hold)
        assert blocked.wait(60)
        id = "ab" * 16
        calls = (
            lambda one: one.call(Add(memory=NewMemory(content="It begins", id=id))),
            lambda one: one.update(id, importance=0.9),
            lambda one: one.delete(id),
        )
        threads = []
        for number, call in enumerate(calls, 1):  # all of them wait for the same transaction
            threads.append(threading.Thread(target=_with_client, args=(daemon, call)))
            threads[-1].start()
            wait_until(lambda number=number: client.status().queued["writes"] == number)  # type: ignore[misc]
        going.set()
        held.result(10)
        for thread in threads:
            thread.join()
        assert [event.kind for event in (next(followed), next(followed), next(followed))] == [
            "created",
            "updated",
            "deleted",
        ]


def _with_client(daemon: "Daemon", call: Callable[[Client], Any]) -> None:
    with daemon.client() as client:
        call(client)


def test_turns_are_told_when_they_come_and_when_they_become_memories(client: Client, followed: Subscription) -> None:
    text = "We decided to deploy on Tuesdays only, because Fridays broke twice in 2025"
    client.call(Observe(turns=[NewTurn(role="user", content=text), NewTurn(role="user", content="ok")], namespace="a"))
    first = next(followed)
    assert (first.kind, first.type, first.tier, first.namespace, first.text) == ("observed", "user", "L0", "a", text)
    wait_until(lambda: not any(client.tiers().waiting.values()))
    client.call(Consolidate())
    after = rest(followed)
    promoted = next(event for event in after if event.kind == "promoted")
    assert (promoted.id, promoted.came_from, promoted.tier) == (first.id, "L0", "L1")


def test_moves_between_tiers_and_namespaces_are_told(client: Client, followed: Subscription, clock: "Clock") -> None:
    id = _added(client, "We use Valkey", "acme/api")
    client.call(Share(ids=[id], to="acme", move=True))
    clock.advance(20 * 86400)
    client.call(RunJob(name="sweep"))
    events = rest(followed)
    assert [(event.kind, event.came_from, event.namespace, event.tier) for event in events if event.kind != "job"] == [
        ("created", "", "acme/api", "L1"),
        ("moved", "acme/api", "acme", "L1"),
        ("moved", "L1", "acme", "L2"),
    ]


def _added(client: Client, text: str, namespace: str = "", **fields: Any) -> str:
    return client.call(Add(memory=NewMemory(content=text, **fields), namespace=namespace)).id


def test_what_the_log_warns_of_is_told(client: Client, followed: Subscription) -> None:
    logging.getLogger("memoryd.daemon.embedding.embedder").warning("the model %s is %s", "mini", "failed")
    logging.getLogger("memoryd.daemon.server.server").info("nothing to see")
    event = next(followed)
    assert (event.kind, event.by, event.type) == ("warning", "embedding.embedder", "warning")
    assert event.text == "the model mini is failed"
    assert rest(followed) == []


def test_of_thousands_in_one_transaction_counts_are_told(client: Client, followed: Subscription) -> None:
    client.add_many(({"content": f"fact {number}"} for number in range(900)), dedup=False)
    assert [(event.kind, event.count) for event in islice(followed, 900)] == [("created", 1)] * 900
    client.undo()
    client.add("One more")
    events = [next(followed), next(followed)]
    assert [(event.kind, event.count, event.id == "") for event in events] == [
        ("deleted", 900, True),
        ("created", 1, False),
    ]


def test_what_was_taken_back_is_never_told(daemon: "Daemon", client: Client, followed: Subscription) -> None:
    with pytest.raises(Exception, match="abcd"):
        client.call(Add(memory=NewMemory(content="It fails", supersedes="abcd")))
    client.add("It works")
    assert told(rest(followed)) == [("created", "It works")]


# Which ---------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_filters_leave_only_what_was_asked_for(daemon: "Daemon", client: Client) -> None:
    with (
        client.subscribe(["deleted", "job"]) as kinds,
        daemon.client("acme/api") as placed,
        placed.subscribe() as visible,
        placed.subscribe(reach="exact") as exact,
        daemon.client("acme").subscribe(reach="subtree") as subtree,
        placed.subscribe(["job"]) as jobs,
    ):
        ids = [_added(client, f"in {place or 'root'}", place) for place in ("", "acme", "acme/api", "acme/api/x", "b")]
        client.delete(ids[2])
        client.call(RunJob(name="sweep"))
        assert [event.kind for event in rest(kinds)] == ["deleted", "job"]
        assert told(rest(visible)) == [
            ("created", "in root"),
            ("created", "in acme"),
            ("created", "in acme/api"),
            ("deleted", "in acme/api"),
        ]
        assert told(rest(exact)) == [("created", "in acme/api"), ("deleted", "in acme/api")]
        assert [event.namespace for event in rest(subtree)] == ["acme", "acme/api", "acme/api/x", "acme/api"]
        assert [event.by for event in rest(jobs)] == ["sweep"]


def test_a_bound_follower_is_told_only_of_what_its_token_may_see(daemon: "Daemon", client: Client) -> None:
    alpha, lead = (
        client.call(AddToken(name=name, namespace=f"acme/api/{name}", role="agent")).token for name in ("alpha", "lead")
    )
    with (
        daemon.client(token=alpha) as bound,
        bound.subscribe() as mine,
        daemon.client(token=lead).subscribe() as other,
    ):
        shared = _added(client, "shared with all", "acme")
        _added(client, "of alpha alone", "acme/api/alpha")
        secret = _added(client, "of lead alone", "acme/api/lead")
        client.call(Share(ids=[secret], to="acme/api", move=True))  # it comes into alpha's sight
        client.call(Share(ids=[secret], to="acme", move=True))
        _added(client, "nobody's", "beta")
        client.call(RunJob(name="sweep"))
        logging.getLogger("memoryd.daemon").warning("the secret is axolotl")
        client.delete(shared)
        assert [(event.kind, event.text, event.came_from) for event in rest(mine)] == [
            ("created", "shared with all", ""),
            ("created", "of alpha alone", ""),
            ("created", "of lead alone", ""),
            ("moved", "of lead alone", "acme/api"),
            ("deleted", "shared with all", ""),
        ]
        assert [(event.kind, event.text) for event in rest(other)] == [
            ("created", "shared with all"),
            ("created", "of lead alone"),
            ("moved", "of lead alone"),
            ("moved", "of lead alone"),
            ("deleted", "shared with all"),
        ]
        for options in ({"reach": "all"}, {"kinds": ["job", "warning"], "reach": "all"}):
            with pytest.raises(Forbidden):
                bound.subscribe(**options)  # type: ignore[arg-type]
        with bound.subscribe(["job", "warning", "notice"], idle_s=IDLE_S) as jobs:
            client.call(RunJob(name="sweep"))
            assert list(jobs) == []


def test_what_moves_out_of_sight_is_deleted_for_who_stays(daemon: "Daemon", client: Client) -> None:
    with daemon.client("a/b").subscribe(reach="exact") as followed:
        id = _added(client, "A fact", "a/b")
        client.call(Share(ids=[id], to="a", move=True))
        assert [(event.kind, event.namespace, event.came_from) for event in rest(followed)] == [
            ("created", "a/b", ""),
            ("deleted", "a/b", ""),
        ]


def test_a_revoked_token_ends_its_subscription(daemon: "Daemon", client: Client) -> None:
    token = client.call(AddToken(name="alpha", namespace="a")).token
    with daemon.client(token=token) as bound, bound.subscribe() as followed:
        client.call(RevokeToken(name="alpha"))
        _added(client, "after that", "a")
        with pytest.raises(Unauthenticated):
            next(followed)


# How long ------------------------------------------------------------------------------------------------------------


def test_a_limit_ends_it_with_its_counts(client: Client) -> None:
    with client.subscribe(limit=2) as followed:
        client.add_many([{"content": f"fact {number}"} for number in range(5)])
        assert len(list(followed)) == 2
        assert followed.result == Subscribed(events=2, missed=0)
    with pytest.raises(Exception, match="limit"):
        client.subscribe(limit=0)


def test_a_pause_ends_it_for_who_wants_that(client: Client) -> None:
    with client.subscribe(idle_s=0.5) as followed:
        client.add("A fact")
        assert told(list(followed)) == [("created", "A fact")]
        assert list(followed) == []


def test_it_can_be_closed_while_somebody_waits(client: Client) -> None:
    followed = client.subscribe()
    found: list[list[Event]] = []
    waiting = threading.Thread(target=lambda: found.append(list(followed)))
    waiting.start()
    followed.close()
    waiting.join(10)
    assert found == [[]]


def test_a_stop_of_the_daemon_ends_it_at_once(start_daemon: Start) -> None:
    daemon = start_daemon()
    with daemon.client() as client, client.subscribe() as followed:
        client.call(Shutdown())
        with pytest.raises(Unavailable, match="stopping"):
            next(followed)
    daemon.stop()
    with pytest.raises(Unavailable):
        daemon.client().subscribe()


def test_nobody_is_told_and_nothing_collected_after_the_last_one_has_gone(daemon: "Daemon", client: Client) -> None:
    events = daemon.core.events
    with client.subscribe(), client.subscribe():
        assert events._listener is not None
        assert daemon.core.store.writer.follower is not None
        daemon_now = client.stats().daemon
        assert daemon_now is not None
        assert sorted(one.subscriptions for one in daemon_now.clients) == [0, 1, 1]
    wait_until(lambda: len(daemon.server.subscriptions) == 0)
    assert events._listener is None
    assert daemon.core.store.writer.follower is None
    assert events._log not in logging.getLogger("memoryd").handlers
    client.add("Unheard")
    assert daemon.server.subscriptions._pending == []
    assert "subscribe" not in client.stats().methods


# How many, how slow --------------------------------------------------------------------------------------------------


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Buffers so small that a follower who does not read is noticed after some events."""
    monkeypatch.setattr(subscriptions, "MAX_WAITING", 10)
    monkeypatch.setattr("memoryd.daemon.server.connection._WRITE_HIGH_WATER", 1024)


@pytest.mark.usefixtures("narrow")
def test_a_slow_follower_is_told_how_much_it_missed_and_slows_nobody(
    start_daemon: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoryd.daemon.server.connection.SLOW_READER_S", 600.0)
    daemon = start_daemon()
    with daemon.client() as client, Wire(daemon.socket) as slow, client.subscribe() as quick:
        assert slow.ask({"method": "subscribe"})[2]["kind"] == "started"
        total = 0
        while not any(one._missed_now for one in daemon.server.subscriptions._all):
            client.add_many([{"content": f"{'x' * 200} {total} {number}"} for number in range(200)], dedup=False)
            assert [next(quick).kind for _ in range(200)] == ["created"] * 200
            total += 200
            assert total < 20_000
        events = missed = 0
        while events + missed < total:
            frame = slow.receive()
            assert frame is not None
            event = msgspec.convert(frame[2], Event)
            events += event.kind == "created"
            missed += event.count if event.kind == "missed" else 0
        assert missed > 0
        client.add("It goes on")
        assert (slow.receive() or [0, 0, {}])[2]["text"] == "It goes on"


@pytest.mark.slow
@pytest.mark.usefixtures("narrow")
def test_who_never_reads_is_dropped_as_any_slow_reader(
    start_daemon: Start, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoryd.daemon.server.connection.SLOW_READER_S", 0.2)
    daemon = start_daemon()
    with daemon.client() as client, Wire(daemon.socket) as deaf:
        deaf.send(request({"method": "subscribe"}))
        wait_until(lambda: len(daemon.server.subscriptions) == 1)
        while len(daemon.server.subscriptions):
            client.add_many([{"content": f"{'x' * 240} {number}"} for number in range(250)], dedup=False)
        assert "dropped a client that did not read its replies" in caplog.text
        assert client.status().connections == 1


def test_a_follower_that_vanishes_is_forgotten(daemon: "Daemon", client: Client) -> None:
    with Wire(daemon.socket) as wire:
        assert wire.ask({"method": "subscribe"})[2]["kind"] == "started"
        assert len(daemon.server.subscriptions) == 1
    wait_until(lambda: len(daemon.server.subscriptions) == 0)
    client.add("A fact")


# With asyncio --------------------------------------------------------------------------------------------------------


async def test_an_asynchronous_client_follows_while_it_calls(daemon: "Daemon") -> None:
    async with (
        AsyncClient(socket=daemon.socket, autostart=False) as client,
        client.subscribe(limit=2) as followed,
    ):
        added = await client.add("A fact")
        await client.delete(added.id)
        assert [event.kind async for event in followed] == ["created", "deleted"]
        assert followed.result == Subscribed(events=2, missed=0)


async def test_an_asynchronous_follower_ends_by_a_pause_and_by_its_limit(daemon: "Daemon") -> None:
    async with AsyncClient(socket=daemon.socket, autostart=False) as client:
        assert [event async for event in client.subscribe(idle_s=0.05)] == []
        with pytest.raises(Exception, match="kinds"):
            await anext(client.subscribe("nothing"))


async def test_an_asynchronous_follower_hears_of_a_stop(start_daemon: Start) -> None:
    daemon = start_daemon()
    async with AsyncClient(socket=daemon.socket, autostart=False) as client, client.subscribe() as followed:
        await client.call(Shutdown())
        with pytest.raises(Unavailable):
            await anext(followed)
        with pytest.raises(StopAsyncIteration):
            await anext(followed)

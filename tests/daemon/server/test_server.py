"""The socket's side in the test process: who may come in, how much may wait, what happens to those who do not read."""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from memoryd.client import AsyncClient, Client, Internal, Unavailable, linux
from memoryd.client.protocol import List, Page, Progress, Shutdown
from memoryd.daemon.memories.batches import PART, UNCOMPARED
from memoryd.daemon.registry import HANDLERS
from memoryd.daemon.server import connection
from waiting import wait_until
from wire import Wire, request
from workbench import Daemon

Start = Callable[..., "Daemon"]


def add(text: str, request_id: int) -> bytes:
    return request({"method": "add", "memory": {"content": text}, "dedup": False}, request_id)


def replies(wire: Wire, count: int) -> list[list[Any]]:
    found = [wire.receive() for _ in range(count)]
    return [reply for reply in found if reply is not None]


# Who -----------------------------------------------------------------------------------------------------------------


def test_the_user_at_the_other_end_is_who_the_kernel_says() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert linux.find_peer(ours) == linux.Peer(os.getpid(), os.getuid())


def test_another_user_is_turned_away_without_a_reply(
    daemon: "Daemon", client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client.add("private")
    monkeypatch.setattr(connection, "find_peer", lambda _: linux.Peer(1, os.getuid() + 1))
    with Wire(daemon.socket) as foreign:
        foreign.send(request({"method": "list"}))
        assert foreign.receive() is None
    assert "refused a connection of another user" in caplog.text
    monkeypatch.undo()
    assert client.status().connections == 1


# How much ------------------------------------------------------------------------------------------------------------


def test_a_full_lane_answers_busy_at_once_and_forgets_no_accepted_call(narrow: Start) -> None:
    daemon = narrow(2, 3)
    daemon.embedder.gate.clear()
    with Wire(daemon.socket) as wire:
        for number in range(1, 11):
            wire.send(add(f"note {number}", number))
        refused = replies(wire, 5)
        assert {(reply[2], reply[4]["retry_after_ms"]) for reply in refused} == {("busy", 100)}
        daemon.embedder.gate.set()
        accepted = replies(wire, 5)
        assert {reply[0] for reply in accepted} == {0}
        assert sorted(reply[1] for reply in refused + accepted) == list(range(1, 11))
    with daemon.client() as client:
        assert client.stats().memories == 5


def test_a_daemon_whose_workers_are_all_held_still_tells_how_it_is(narrow: Start) -> None:
    daemon = narrow(1, 1)
    daemon.embedder.gate.clear()
    with Wire(daemon.socket) as wire, daemon.client(timeout_s=20) as client:
        wire.send(add("one", 1) + add("two", 2))
        wait_until(lambda: client.status().queued["interactive"] == 2)
        daemon.embedder.gate.set()
        assert len(replies(wire, 2)) == 2


def test_an_import_holds_up_no_search_of_others(start_daemon: Start) -> None:
    daemon = start_daemon()
    started = threading.Event()

    class Held(Exception):
        pass

    def hold(texts: Any) -> Any:
        started.set()
        assert daemon.embedder.gate.wait(60)
        raise Held

    daemon.embedder.embed_texts, embed = hold, daemon.embedder.embed_texts  # type: ignore[method-assign]
    daemon.embedder.gate.clear()
    with Wire(daemon.socket) as importer, daemon.client() as client:
        importer.send(request({"method": "add_many", "memories": [{"content": f"note {n}"} for n in range(8)]}))
        assert started.wait(60)
        daemon.embedder.embed_texts = embed  # type: ignore[method-assign]
        assert client.list().total == 0
        assert client.status().queued["bulk"] == 1
        daemon.embedder.gate.set()
        kinds = [(importer.receive() or [9])[0] for _ in range(2)]
        assert kinds == [2, 0]  # the texts that failed wait in the queue of embeddings


def test_a_connection_with_as_many_calls_as_it_may_have_is_not_read_further(
    narrow: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MAX_IN_FLIGHT", 2)
    daemon = narrow(8)
    daemon.embedder.gate.clear()
    with Wire(daemon.socket) as wire, daemon.client() as client:
        wire.send(b"".join(add(f"note {number}", number) for number in range(1, 41)))
        wait_until(lambda: daemon.embedder.held == 2)
        for number in range(41, 61):
            wire.send(add(f"note {number}", number))
        for _ in range(5):
            assert client.status().queued["interactive"] == 2
        daemon.embedder.gate.set()
        answered = replies(wire, 60)
        assert sorted(reply[1] for reply in answered) == list(range(1, 61))
        assert {reply[0] for reply in answered} == {0}


def test_one_connection_too_many_is_told_to_come_again(start_daemon: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MAX_CONNECTIONS", 2)
    daemon = start_daemon()
    with Wire(daemon.socket) as one, Wire(daemon.socket) as two:
        assert one.ask({"method": "status"})[0] == two.ask({"method": "status"})[0] == 0
        with Wire(daemon.socket) as three:
            assert three.receive() == [1, 0, "busy", "The daemon has too many connections.", {"retry_after_ms": 500}]
            assert three.receive() is None
        assert one.ask({"method": "status"})[0] == 0
    wait_until(lambda: not daemon.server.connections)
    with daemon.client() as client:
        assert client.status().connections == 1


@pytest.mark.parametrize("kind", [Client, AsyncClient])
async def test_a_client_waits_for_its_turn_while_there_are_too_many(
    start_daemon: Start, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MAX_CONNECTIONS", 1)
    daemon = start_daemon()
    other = Wire(daemon.socket)
    other.ask({"method": "status"})

    def leave() -> None:
        wait_until(lambda: bool(daemon.server.leaving))
        other.socket.close()

    leaving = threading.Thread(target=leave)
    leaving.start()
    waiting = kind(socket=daemon.socket, autostart=False)
    answer = waiting.add("at last")
    assert (await answer if kind is AsyncClient else answer).outcome == "created"
    leaving.join()
    closed = waiting.close()
    if kind is AsyncClient:
        await closed


def test_a_client_that_does_not_read_is_dropped_and_others_are_served(
    start_daemon: Start, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "SLOW_READER_S", 0.2)
    daemon = start_daemon()
    with daemon.client() as client:
        client.add("x" * 1_000_000)
        with Wire(daemon.socket) as deaf:
            deaf.send(b"".join(request({"method": "list"}, number) for number in range(1, 20)))
            wait_until(lambda: "did not read its replies" in caplog.text)
            wait_until(lambda: len(daemon.server.connections) == 1)
        assert client.list().total == 1


def test_a_client_that_reads_late_but_in_time_gets_everything(
    start_daemon: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "SLOW_READER_S", 60.0)
    monkeypatch.setattr(connection, "MAX_IN_FLIGHT", 4)
    daemon = start_daemon()
    with daemon.client() as client:
        client.add("x" * 1_000_000)
    with Wire(daemon.socket) as late:
        late.send(b"".join(request({"method": "list"}, number) for number in range(1, 20)))
        wait_until(lambda: any(connection._slow for connection in daemon.server.connections.copy()))
        assert sorted(reply[1] for reply in replies(late, 19)) == list(range(1, 20))


def test_what_a_client_sent_before_it_left_is_done(start_daemon: Start) -> None:
    daemon = start_daemon()
    daemon.embedder.gate.clear()
    with Wire(daemon.socket) as wire:
        wire.send(add("left behind", 1))
        wait_until(lambda: daemon.embedder.held == 1)
    daemon.embedder.gate.set()
    with daemon.client() as client:
        wait_until(lambda: client.stats().memories == 1)


def test_what_a_client_that_left_has_waiting_is_not_done(narrow: Start) -> None:
    daemon = narrow(1)
    daemon.embedder.gate.clear()
    with Wire(daemon.socket) as wire, daemon.client() as client:
        wire.send(b"".join(add(f"note {number}", number) for number in range(1, 6)))
        wait_until(lambda: client.status().queued["interactive"] == 5)
        wire.socket.close()
        wait_until(lambda: client.status().queued["interactive"] == 1)
        daemon.embedder.gate.set()
        wait_until(lambda: client.stats().memories > 0)
        wait_until(lambda: client.status().queued["interactive"] == 0)
        assert [memory.content for memory in client.list()] == ["note 1"]


# Long calls ----------------------------------------------------------------------------------------------------------


class CallInParts:
    """The handler of a call that reads in five parts, each of which ends when a test lets it."""

    def __init__(self) -> None:
        self.begun = 0
        self.steps = threading.Semaphore(0)

    def __call__(self, context: Any, call: Any) -> Iterator[None]:
        del context, call
        for _ in range(5):
            self.begun += 1
            assert self.steps.acquire(timeout=60)
            yield
        return Page(memories=[], total=5)


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> CallInParts:
    made = CallInParts()
    monkeypatch.setitem(HANDLERS, List, made)
    return made


def test_others_are_served_between_the_parts_of_a_long_call(narrow: Start, parts: CallInParts) -> None:
    daemon = narrow(1)
    with Wire(daemon.socket) as wire, daemon.client() as client, daemon.client() as other:
        wire.send(request({"method": "list"}, 1))
        for number in range(1, 4):
            wait_until(lambda number=number: parts.begun == number)  # type: ignore[misc]
            asked = threading.Thread(target=other.search, args=("x",))
            asked.start()
            wait_until(lambda: client.status().queued["interactive"] == 2)
            parts.steps.release()
            asked.join(20)
            assert not asked.is_alive()
        parts.steps.release(2)
        assert (wire.receive() or [])[2]["total"] == 5


def test_a_long_call_is_not_carried_out_to_its_end_for_a_client_that_left(
    start_daemon: Start, parts: CallInParts
) -> None:
    daemon = start_daemon()
    with Wire(daemon.socket) as wire:
        wire.send(request({"method": "list"}, 1))
        wait_until(lambda: parts.begun == 1)
    wait_until(lambda: not daemon.server.connections)
    parts.steps.release(5)
    with daemon.client() as client:
        wait_until(lambda: client.status().queued["interactive"] == 0)
    assert parts.begun == 1


# Failures and the end ------------------------------------------------------------------------------------------------


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(context: Any, call: Any) -> Any:
        raise ZeroDivisionError("a secret of the daemon")

    monkeypatch.setitem(HANDLERS, List, fail)


@pytest.mark.usefixtures("failing")
def test_a_failure_of_the_daemon_is_a_sentence_for_the_client_and_a_trace_in_the_log(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(Internal) as raised:
        client.list()
    assert raised.value.message == "The daemon failed: ZeroDivisionError. Its log has the details."
    assert "a secret of the daemon" in caplog.text
    methods = client.stats().methods
    assert (methods["list"].calls, methods["list"].errors) == (1, 1)


def test_a_stop_answers_the_calls_under_way_and_refuses_new_ones(start_daemon: Start) -> None:
    daemon = start_daemon()
    daemon.embedder.gate.clear()
    with Wire(daemon.socket) as wire, Wire(daemon.socket) as other:
        wire.send(add("under way", 1))
        wait_until(lambda: daemon.embedder.held == 1)
        assert other.ask({"method": "shutdown"}, 2) == [0, 2, {"message": "stopping"}]
        wait_until(lambda: daemon.server.draining)
        assert other.ask({"method": "status"}, 3)[2:4] == ["unavailable", "The daemon is stopping."]
        daemon.embedder.gate.set()
        assert (wire.receive() or [])[:2] == [0, 1]
        assert (wire.receive() or [])[:3] == [1, 0, "unavailable"]  # nothing after this was carried out
        assert wire.receive() is None
    daemon.stop()
    with pytest.raises(Unavailable):
        daemon.client().status()


def test_a_stop_ends_a_call_in_parts_once_its_time_is_over_and_says_what_is_stored(
    start_daemon: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoryd.daemon.server.server.DRAIN_S", 0.01)
    monkeypatch.setattr("memoryd.daemon.server.server._PART_S", 30.0)  # a busy machine may need longer for a part
    daemon = start_daemon()
    memories = [{"content": f"note {number}"} for number in range(5_000)]

    def stop(event: Progress) -> None:
        if event.done == 5 * UNCOMPARED:
            daemon._loop.call_soon_threadsafe(daemon._stop.set)

    told = r"^The first [\d,]+ of 5,000 are stored, the rest is not: The daemon is stopping"
    with daemon.client() as client, pytest.raises(Unavailable, match=told):
        client.add_many(memories, dedup=False, on_progress=stop)
    with daemon.core.store.reading() as connection:
        stored = connection.execute("SELECT count(*) FROM memories").get
    assert stored in range(UNCOMPARED, 5_000, UNCOMPARED)


def test_a_stop_ends_a_long_call_that_only_reads_at_once(start_daemon: Start, parts: CallInParts) -> None:
    daemon = start_daemon()
    with Wire(daemon.socket) as wire, daemon.client() as client:
        wire.send(request({"method": "list"}))
        wait_until(lambda: parts.begun == 1)
        client.call(Shutdown())
        wait_until(lambda: daemon.server.draining)
        parts.steps.release(5)
        received = wire.receive() or []
        assert (received[0], received[2], received[-1]) == (1, "unavailable", {"retry_after_ms": 100})


def test_a_call_in_parts_ends_when_its_client_leaves(start_daemon: Start) -> None:
    daemon = start_daemon()
    with Wire(daemon.socket) as wire:
        wire.send(request({"method": "add_many", "memories": [{"content": f"n {n}"} for n in range(3_000)]}))
        assert (wire.receive() or [])[0] == 2  # progress
    wait_until(lambda: daemon.server.facts.queued()["bulk"] == 0)
    with daemon.client() as client:
        [operation] = client.operations().operations
        assert operation.memories in range(0, 3_000, PART)
        client.undo(operation.id)
        assert client.list().total == 0


def test_a_stop_sends_a_long_reply_to_its_end(start_daemon: Start) -> None:
    daemon = start_daemon()
    with daemon.client() as client:
        client.add_many(({"content": f"{number} " + "x" * 1_000_000} for number in range(7)), dedup=False)
        with Wire(daemon.socket) as wire:
            wire.send(request({"method": "list"}, 1))
            wait_until(lambda: any(connection._slow for connection in daemon.server.connections))
            client.call(Shutdown())
            wait_until(lambda: daemon.server.draining)
            assert (wire.receive() or [0, 0, {}])[2]["total"] == 7


@pytest.mark.slow
def test_a_stop_does_not_wait_for_ever_for_who_does_not_read(
    start_daemon: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoryd.daemon.server.server.DRAIN_S", 0.2)
    monkeypatch.setattr(connection, "SLOW_READER_S", 600.0)
    daemon = start_daemon()
    with daemon.client() as client:
        client.add_many(({"content": f"{number} " + "x" * 1_000_000} for number in range(7)), dedup=False)
    with Wire(daemon.socket) as deaf:
        deaf.send(request({"method": "list"}, 1))
        wait_until(lambda: any(connection._slow for connection in daemon.server.connections))
        daemon.stop()
    assert not daemon._thread.is_alive()

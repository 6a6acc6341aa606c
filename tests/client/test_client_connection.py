"""The clients and their connections: what they do when it breaks, is slow, is full, or belongs to two threads."""

import asyncio
import gc
import inspect
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scripted_peer import Peer, breaks, says, scripted

from each import each
from memoryd.client import (
    AsyncClient,
    BadFrame,
    Busy,
    Client,
    Internal,
    Invalid,
    NotFound,
    TimedOut,
    Unavailable,
    VersionMismatch,
)
from memoryd.client.protocol import Progress
from memoryd.client.transport import aio, exchange
from wire import Wire, request
from workbench import Daemon, Process

Start = Callable[..., "Daemon"]
GONE = {"hits": []}
KINDS = [Client, AsyncClient]


async def _result(answer: Any) -> Any:
    """Return the result of a call of either client; a blocking one has it already."""
    return await answer if inspect.isawaitable(answer) else answer


@pytest.fixture
def path(folder: Path) -> Path:
    return folder / "s"


@pytest.fixture(params=KINDS)
async def client(request: pytest.FixtureRequest, path: Path) -> AsyncIterator[Any]:
    """A client of either kind for a scripted server."""
    made = request.param(socket=path, autostart=False, timeout_s=20)
    yield made
    await _result(made.close())


# Broken connections --------------------------------------------------------------------------------------------------


async def test_a_read_is_sent_again_when_the_connection_breaks(client: Any, path: Path) -> None:
    with scripted(path, breaks, says(GONE)) as server:
        assert len(await _result(client.search("x"))) == 0
        assert len(server.requests) == 2
        await _result(client.close())


async def test_a_read_is_sent_no_third_time(client: Any, path: Path) -> None:
    with scripted(path, breaks, breaks, says(GONE)) as server:
        with pytest.raises(Unavailable, match=r"broke again: .*\. The call only reads: repeat it\.$"):
            await _result(client.search("x"))
        assert len(server.requests) == 2


def ends(peer: Peer) -> None:
    """End the connection before a word, as the socket of a daemon that was killed does until its process is gone."""


async def test_a_call_that_no_daemon_has_begun_is_sent_until_one_answers(client: Any, path: Path) -> None:
    added = {"id": "", "outcome": "created", "embedded": True, "operation": ""}
    with scripted(path, breaks, *[ends] * 3, says(GONE)) as server:
        assert len(await _result(client.search("x"))) == 0
        assert len(server.requests) == 2
        await _result(client.close())
    path.unlink()
    with scripted(path, *[ends] * 3, says(added)) as server:
        assert (await _result(client.add("x"))).outcome == "created"
        assert len(server.requests) == 1
        await _result(client.close())


async def test_a_call_that_no_daemon_ever_begins_has_changed_nothing(
    client: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "ENDING_S", 0.05)
    with scripted(path, *[ends] * 1000), pytest.raises(Unavailable, match="Nothing was changed: repeat it"):
        await _result(client.add("x"))


async def test_a_write_is_sent_once_and_its_caller_told_that_it_may_have_been_done(client: Any, path: Path) -> None:
    with scripted(path, breaks, says({})) as server:
        with pytest.raises(Unavailable, match="may or may not have been made"):
            await _result(client.add("x"))
        assert len(server.requests) == 1


async def test_a_reply_cut_off_half_way_is_a_broken_connection(client: Any, path: Path) -> None:
    def half(peer: Peer) -> None:
        peer.request()
        peer._stream.sendall(b"\x00\x00\x00\x10\x93")

    with scripted(path, half), pytest.raises(Unavailable):
        await _result(client.add("x"))


async def test_an_error_about_the_whole_stream_is_raised_as_what_it_says(client: Any, path: Path) -> None:
    def refuses(peer: Peer) -> None:
        peer.request()
        peer.reply(1, 0, "bad_frame", "That was no frame.", {})

    with scripted(path, refuses), pytest.raises(BadFrame, match="That was no frame"):
        await _result(client.add("x"))


@pytest.mark.parametrize("reply", [(0, 1, "no map"), (0, 1, {"id": 5}), (2, 1, {"stage": 1})])
async def test_a_reply_that_is_none_raises_an_error_of_memoryd(client: Any, path: Path, reply: Any) -> None:
    def babbles(peer: Peer) -> None:
        _, number, _ = peer.request()
        peer.reply(reply[0], number, *reply[2:])

    with scripted(path, babbles), pytest.raises(BadFrame, match="cannot be read"):
        await _result(client.add("x"))


async def test_an_error_code_of_a_newer_daemon_is_internal_with_its_sentence(client: Any, path: Path) -> None:
    def refuses(peer: Peer) -> None:
        _, number, _ = peer.request()
        peer.reply(1, number, "of_tomorrow", "Not today.", {"n": 1})

    with scripted(path, refuses), pytest.raises(Internal, match="Not today"):
        await _result(client.add("x"))


async def test_a_daemon_of_another_version_is_told_apart_with_what_to_do(
    path: Path, daemon: "Daemon", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoryd.client.transport.exchange.PROTOCOL_VERSION", 2)
    with daemon.client() as newer, pytest.raises(VersionMismatch, match="memctl down && memctl up"):
        newer.search("x")
    monkeypatch.setattr("memoryd.client.transport.exchange.PROTOCOL_VERSION", 0)
    with daemon.client() as older, pytest.raises(VersionMismatch, match="upgrade the client"):
        older.search("x")


@pytest.mark.slow
async def test_a_restarted_daemon_costs_no_failed_call(process: "Process") -> None:
    with process.client() as blocking:
        aio = AsyncClient(socket=process.socket, autostart=False)
        for number in range(2):
            blocking.add(f"by the one, {number}")
            await aio.add(f"by the other, {number}")
            process.stop()
            process.start()
        blocking.add("by the one, at last")
        await aio.add("by the other, at last")
        assert blocking.list().total == (await aio.list()).total == 6
        await aio.close()


async def test_a_call_to_a_daemon_that_is_stopping_is_sent_to_its_successor(client: Any, path: Path) -> None:
    def stops(peer: Peer) -> None:
        _, number, _ = peer.request()
        peer.reply(1, number, "unavailable", "The daemon is stopping.", {"retry_after_ms": 100})  # it closes meanwhile

    with scripted(path, stops, says({"id": "", "outcome": "created", "embedded": True, "operation": ""})) as server:
        assert (await _result(client.add("x"))).outcome == "created"
        assert len(server.requests) == 2
        await _result(client.close())


async def test_a_daemon_that_says_why_it_stops_just_before_a_write_is_heard(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, stopped = threading.Event(), threading.Event()

    def stops(peer: Peer) -> None:
        _, number, _ = peer.request()
        peer.reply(0, number, GONE)
        assert asked.wait(60)
        peer.reply(1, 0, "unavailable", "The daemon is stopping.", {"retry_after_ms": 100})

    def succeeds(peer: Peer) -> None:
        stopped.set()
        says({"id": "", "outcome": "created", "embedded": True, "operation": ""})(peer)

    def looks_open(stream: Any) -> bool:
        """Answer what was true a moment ago, as a look at a stream always does."""
        if not asked.is_set():
            asked.set()
            with socket.socket(socket.AF_UNIX) as next_one:  # it is served when the stream has ended
                next_one.connect(str(path))
                assert stopped.wait(60)
            return False
        return was_closed(stream)

    async with AsyncClient(socket=path, autostart=False, timeout_s=20) as client:
        with scripted(path, stops, succeeds, succeeds):
            await client.search("x")
            was_closed = aio._Stream.is_closed
            monkeypatch.setattr(aio._Stream, "is_closed", looks_open)
            assert (await client.add("x")).outcome == "created"
            await client.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_without_a_daemon_and_autostart_the_error_names_memctl_up(folder: Path, kind: Any) -> None:
    (folder / "file").write_text("no socket")
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(folder / "stale"))
    for name in ("nobody", "file", "stale"):
        with pytest.raises(Unavailable, match=f"No daemon answers at .*{name}; start one with `memctl up`"):
            await _result(kind(socket=folder / name, autostart=False).status())


@pytest.mark.parametrize("kind", KINDS)
async def test_a_daemon_that_takes_no_connection_is_a_time_out(folder: Path, kind: Any) -> None:
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as first:
        listener.bind(str(folder / "s"))
        listener.listen(0)
        first.connect(str(folder / "s"))  # the queue is full
        with pytest.raises(TimedOut, match="took no connection"):
            await _result(kind(socket=folder / "s", autostart=False, timeout_s=0.1).status())


# Slow and full daemons -----------------------------------------------------------------------------------------------


async def test_a_late_reply_is_a_time_out_and_never_answers_another_call(start_daemon: Start) -> None:
    daemon = start_daemon()
    daemon.embedder.gate.clear()
    blocking = daemon.client(timeout_s=0.1)
    aio = AsyncClient(socket=daemon.socket, autostart=False, timeout_s=0.1)
    for client in (blocking, aio):
        with pytest.raises(TimedOut, match=r"did not reply within 0\.1 s; a change may or may not have been made"):
            await _result(client.add("late"))
        client.timeout_s = 30
    daemon.embedder.gate.set()
    for client in (blocking, aio):
        assert (await _result(client.status())).protocol == 1
        assert (await _result(client.add(f"later {client}"))).outcome == "created"
        await _result(client.close())


@pytest.mark.parametrize("kind", KINDS)
async def test_a_read_without_a_reply_is_not_said_to_have_changed_anything(folder: Path, kind: Any) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(folder / "s"))
        silent.listen()
        client = kind(socket=folder / "s", autostart=False, timeout_s=0.1)
        with pytest.raises(TimedOut, match=r"did not reply within 0\.1 s\. The call only reads: repeat it\."):
            await _result(client.list())
        await _result(client.close())


@each("kind", KINDS)
@each("timeout_s", [0, -1, float("nan"), float("inf"), None, "5", True])
def test_a_time_limit_that_is_none_is_refused_when_the_client_is_made(kind: Any, timeout_s: Any) -> None:
    with pytest.raises(Invalid, match="`timeout_s` must be a number of seconds above 0"):
        kind("", timeout_s=timeout_s)


@pytest.mark.slow
async def test_progress_keeps_a_long_call_from_timing_out(client: Any, path: Path) -> None:
    client.timeout_s = 1.5
    added = {"results": [], "created": 0, "merged": 0, "operations": []}

    def works(peer: Peer) -> None:
        _, number, _ = peer.request()
        for done in range(4):
            assert not server.over.wait(0.6)
            peer.reply(2, number, {"stage": "embed", "done": done, "total": 4})
        peer.reply(0, number, added)

    with scripted(path, works) as server:
        seen: list[Progress] = []
        await _result(client.add_many([{"content": "x"}], on_progress=seen.append))
        assert [event.done for event in seen] == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", KINDS)
async def test_busy_is_tried_again_and_raised_when_the_time_is_over(narrow: Start, kind: Any) -> None:
    daemon = narrow(1, 1)
    daemon.embedder.gate.clear()
    client = kind(socket=daemon.socket, autostart=False, timeout_s=0.3)
    with Wire(daemon.socket) as wire:
        for number in (1, 2, 3):
            wire.send(request({"method": "add", "memory": {"content": f"number {number}"}}, number))
        refused = wire.receive()
        assert refused is not None
        assert (refused[1], refused[2], refused[4]) == (3, "busy", {"retry_after_ms": 100})
        with pytest.raises(Busy, match="2 interactive calls"):
            await _result(client.add("no room"))
        client.timeout_s = 30
        opener = threading.Thread(target=_open_after_a_refusal, args=(daemon,))
        opener.start()
        assert (await _result(client.add("room at last"))).outcome == "created"
        opener.join()
        assert sorted((wire.receive() or [])[1] for _ in range(2)) == [1, 2]
    await _result(client.close())


def _open_after_a_refusal(daemon: "Daemon") -> None:
    refused = daemon.server.meters.read()["add"].errors
    for _ in range(10_000):
        if daemon.server.meters.read()["add"].errors > refused:
            break
        daemon.embedder.gate.wait(0.003)
    daemon.embedder.gate.set()


# Many callers --------------------------------------------------------------------------------------------------------


def test_eight_threads_may_share_a_client(client_of_threads: Client) -> None:
    failures: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            for number in range(50):
                text = f"thread {thread} note {number}"
                id = client_of_threads.add(text, dedup=False).id
                assert client_of_threads.get(id).content == text
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert client_of_threads.stats().memories == 400


@pytest.fixture
def client_of_threads(daemon: "Daemon") -> Iterator[Client]:
    with daemon.client() as client:
        yield client


FORK = """
import os, sys
from memoryd.client import Client
client = Client("parent", autostart=False)
client.add("before the fork")
child = os.fork()
if child == 0:
    client.namespace = "child"
who = "parent" if child else "child"
for number in range(100):
    id = client.add(f"{who} {number}", dedup=False).id
    assert client.get(id).content == f"{who} {number}"
    client.get(id)
assert client.list(reach="exact").total == (101 if child else 100)
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert client.list(reach="exact").total == 101
print("fine")
"""


def test_parent_and_child_may_use_one_client_after_a_fork(process: "Process") -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORK], env=process.environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == ("fine\n", "")


def test_a_call_that_runs_while_the_client_is_closed_closes_its_connection_when_it_ends(path: Path) -> None:
    asked, closed, ended = threading.Event(), threading.Event(), threading.Event()

    def answers_late(peer: Peer) -> None:
        _, number, _ = peer.request()
        asked.set()
        closed.wait(60)
        peer.reply(0, number, GONE)
        if peer._stream.recv(1) == b"":
            ended.set()

    client = Client(socket=path, autostart=False, timeout_s=20)
    with scripted(path, answers_late):
        thread = threading.Thread(target=client.search, args=("x",))
        thread.start()
        asked.wait(60)
        client.close()
        closed.set()
        thread.join(20)
        assert ended.wait(60)


# AsyncClient ---------------------------------------------------------------------------------------------------------


async def test_a_hundred_calls_under_way_each_get_their_own_reply_in_whatever_order(path: Path) -> None:
    def backwards(peer: Peer) -> None:
        for _, number, call in reversed([peer.request() for _ in range(100)]):
            peer.reply(1, number, "not_found", call["id"], {})

    with scripted(path, backwards):
        async with AsyncClient(socket=path, autostart=False) as client:
            answers = await asyncio.gather(*(client.get(f"{n:04}") for n in range(100)), return_exceptions=True)
    assert [(type(answer), str(answer)) for answer in answers] == [(NotFound, f"{n:04}") for n in range(100)]


async def test_a_hundred_calls_under_way_at_a_real_daemon_are_all_right(daemon: "Daemon") -> None:
    async with AsyncClient(socket=daemon.socket, autostart=False) as client:
        added = await asyncio.gather(*(client.add(f"note {number}", dedup=False) for number in range(100)))
        found = await asyncio.gather(*(client.get(one.id) for one in added), *(client.status() for _ in range(100)))
        assert [one.content for one in found[:100]] == [f"note {number}" for number in range(100)]
        assert daemon.server.connections.__len__() == 1


async def test_a_quick_call_overtakes_a_slow_one_on_the_same_connection(start_daemon: Start) -> None:
    daemon = start_daemon()
    async with AsyncClient(socket=daemon.socket, autostart=False) as client:
        daemon.embedder.gate.clear()
        slow = asyncio.ensure_future(client.add("slow"))
        assert (await client.status()).memories == 0
        assert not slow.done()
        daemon.embedder.gate.set()
        assert (await slow).outcome == "created"


async def test_a_cancelled_call_disturbs_no_other(start_daemon: Start) -> None:
    daemon = start_daemon()
    async with AsyncClient(socket=daemon.socket, autostart=False) as client:
        daemon.embedder.gate.clear()
        calls = [asyncio.ensure_future(client.add(f"note {number}", dedup=False)) for number in range(3)]
        await client.status()  # by now all three are sent
        calls[1].cancel()
        with pytest.raises(asyncio.CancelledError):
            await calls[1]
        daemon.embedder.gate.set()
        assert [(await calls[number]).outcome for number in (0, 2)] == ["created", "created"]
        assert (await client.status()).protocol == 1


async def test_what_is_wrong_with_arguments_is_raised_when_it_is_awaited(daemon: "Daemon") -> None:
    async with AsyncClient(socket=daemon.socket, autostart=False) as client:
        calls = [client.add("fine"), client.add("bad", importance=3), client.search("x", no_such_thing=1)]
        fine, *bad = await asyncio.gather(*calls, return_exceptions=True)
    assert fine.outcome == "created"
    assert [type(error) for error in bad] == [Invalid, Invalid]


def test_an_asynchronous_client_in_a_second_event_loop_says_what_to_do(daemon: "Daemon") -> None:
    async def ask(client: AsyncClient, ends: bool) -> None:
        await client.status()
        if ends:
            await client.close()

    client = AsyncClient(socket=daemon.socket, autostart=False)
    asyncio.run(ask(client, ends=True))
    asyncio.run(ask(client, ends=False))
    with pytest.raises(RuntimeError, match="another event loop; make one in each"):
        asyncio.run(ask(client, ends=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # of what was left open in the first loop
        asyncio.run(client.close())
        gc.collect()
    asyncio.run(ask(client, ends=True))


async def test_closing_a_client_ends_the_calls_under_way_at_once(start_daemon: Start) -> None:
    daemon = start_daemon()
    client = AsyncClient(socket=daemon.socket, autostart=False, timeout_s=1000)
    await client.status()
    daemon.embedder.gate.clear()
    slow = asyncio.ensure_future(client.add("slow"))
    await client.status()
    await client.close()
    with pytest.raises(Unavailable, match="closed"):
        await slow
    daemon.embedder.gate.set()
    assert (await client.status()).protocol == 1
    await client.close()


# Import --------------------------------------------------------------------------------------------------------------

HEAVY = (
    "asyncio numpy apsw onnxruntime apscheduler tokenizers sqlite_vec subprocess tempfile pathlib shutil random logging"
    " json concurrent threading urllib"
)


def test_importing_and_making_a_client_loads_nothing_heavy(folder: Path) -> None:
    code = f"import sys\nfrom memoryd.client import Client\nClient(socket={str(folder / 's')!r}, autostart=False)\n"
    code += f"print([name for name in {HEAVY.split()} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_the_asynchronous_client_is_loaded_on_first_use() -> None:
    import memoryd.client

    assert memoryd.client.AsyncClient is AsyncClient
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        memoryd.client.Nothing  # noqa: B018

"""Connections that say nothing, speak slowly or too much, or are idle: they lock nobody out and take little room."""

import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import pytest

from memoryd.client.transport.frames import FrameReader
from memoryd.daemon.server import connection
from waiting import wait_until
from wire import Wire, request
from workbench import Daemon

Start = Callable[..., "Daemon"]
STATUS = {"method": "status"}


@pytest.fixture
def start(start_daemon: Start, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Start a daemon with other limits of a connection: `start({"IDLE_S": 0.0, "MAX_CONNECTIONS": 1})`."""

    def started(limits: dict[str, float], **sections: dict[str, object]) -> "Daemon":
        for name, limit in limits.items():
            monkeypatch.setattr(connection, name, limit)
        return start_daemon(**sections)

    return started


def begin(size: int, sent: int) -> bytes:
    """Return the beginning of a frame."""
    return struct.pack(">I", size) + b"x" * sent


def test_connections_that_say_nothing_make_room_for_a_client(start: Start) -> None:
    daemon = start({"IDLE_S": 0.0, "MAX_CONNECTIONS": 8})
    with ExitStack() as stack:
        for _ in range(20):
            wire = stack.enter_context(Wire(daemon.socket))
            wire.send(begin(100, 3))
        with daemon.client() as client:
            assert client.add("still served").outcome == "created"


def test_a_client_whose_idle_connection_was_given_up_comes_again(start: Start) -> None:
    daemon = start({"IDLE_S": 0.0, "MAX_CONNECTIONS": 1})
    with daemon.client() as one, daemon.client() as two:
        for number in range(5):
            assert one.add(f"one {number}", dedup=False).outcome == "created"
            assert two.add(f"two {number}", dedup=False).outcome == "created"


def test_who_makes_no_call_is_sent_away(start: Start) -> None:
    daemon = start({"FIRST_CALL_S": 0.05})
    with Wire(daemon.socket) as silent, Wire(daemon.socket) as speaking:
        assert speaking.ask(STATUS)[0] == 0
        assert silent.receive() == [1, 0, "unavailable", "No call was made within 0.05 s.", {"retry_after_ms": 100}]
        assert speaking.ask(STATUS)[0] == 0


def test_who_gives_no_token_is_sent_away(start: Start) -> None:
    daemon = start({"FIRST_CALL_S": 0.05}, access={"require_token": True})
    with Wire(daemon.socket) as wire:
        wire.send(request(STATUS, 1))
        told, last = wire.receive(), wire.receive()
        assert told is not None
        assert last is not None
        assert (told[0], last[2]) == (0, "unavailable")


def test_who_sends_a_byte_at_a_time_is_sent_away(start: Start) -> None:
    daemon = start({"FRAME_S": 0.1})
    with Wire(daemon.socket) as slow, Wire(daemon.socket) as other:
        assert slow.ask(STATUS)[0] == 0
        with sending_bytes([slow]):
            assert slow.receive() == [1, 0, "bad_frame", "A frame was not complete after 0.1 s.", {}]
        assert other.ask(STATUS)[0] == 0


def test_connections_that_send_a_byte_at_a_time_make_room_for_a_client(start: Start) -> None:
    daemon = start({"IDLE_S": 0.1, "MAX_CONNECTIONS": 4})
    with ExitStack() as stack:
        wires = [stack.enter_context(Wire(daemon.socket)) for _ in range(4)]
        assert [wire.ask(STATUS)[0] for wire in wires] == [0] * 4
        stack.enter_context(sending_bytes(wires))
        with daemon.client(timeout_s=10) as client:
            assert client.add("still served").outcome == "created"


def test_a_call_that_there_is_no_memory_for_is_refused(start_daemon: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    class Reader(FrameReader):
        def feed(self, data: bytes = b"") -> Iterator[bytes]:
            if len(data) > 20_000:
                raise MemoryError
            return super().feed(data)

    monkeypatch.setattr(connection, "FrameReader", Reader)
    daemon = start_daemon()
    with Wire(daemon.socket) as wire, Wire(daemon.socket) as other:
        assert wire.ask(STATUS)[0] == 0
        wire.send(begin(50_000, 50_000))
        told = wire.receive()
        assert told is not None
        assert told[2:4] == ["busy", "The daemon has not enough memory for this call."]
        assert other.ask(STATUS)[0] == 0


LIMITED = """
import resource
from memoryd.daemon.server import envelope
large = ["x" * 100_000 for _ in range(160)]
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
for spare in range(0, 80_000_000, 4_000_000):
    resource.setrlimit(resource.RLIMIT_AS, (size + spare, -1))
    print(envelope.answer(1, large).failed)
"""


def test_a_reply_that_there_is_no_memory_for_ends_no_process() -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True)
    assert (done.returncode, set(done.stdout.split())) == (0, {"True", "False"}), done.stderr


@contextmanager
def sending_bytes(wires: Sequence[Wire]) -> Iterator[None]:
    """Send the bytes of an endless frame over some connections, one at a time."""
    ending = threading.Event()

    def send() -> None:
        for wire in wires:
            wire.send(begin(15_000_000, 1))
        while not ending.wait(0.01):
            for wire in wires:
                wire.send(b"x")

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


def test_large_frames_need_a_token_where_one_is_required(start_daemon: Start) -> None:
    daemon = start_daemon(access={"require_token": True})
    with Wire(daemon.socket) as wire:
        wire.send(begin(15_000_000, connection.MAX_UNKNOWN_BYTES + 1))
        reply = wire.receive()
        assert reply is not None
        assert reply[2:4] == ["bad_frame", "A frame of more than 65536 bytes came before a token."]


def test_unfinished_frames_take_a_bounded_room_together(start_daemon: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MAX_RECEIVED_BYTES", 1_000_000)
    daemon = start_daemon()
    with ExitStack() as stack:
        wires = [stack.enter_context(Wire(daemon.socket)) for _ in range(6)]
        for wire in wires:
            wire.send(begin(15_000_000, 300_000))
        wait_until(lambda: len(daemon.server.connections) == 3)
        assert daemon.server.received_bytes <= 1_000_000
        with daemon.client() as client:
            assert client.add("still served").outcome == "created"
    wait_until(lambda: daemon.server.received_bytes == 0)

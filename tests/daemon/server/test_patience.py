"""Connections that say nothing, speak slowly or too much, or are idle: they lock nobody out and take little room."""

import struct
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from memoryd.daemon.server import connection
from waiting import wait_until
from wire import Wire, request

if TYPE_CHECKING:
    from conftest import Daemon

Start = Callable[..., "Daemon"]
STATUS = {"method": "status"}


def begin(size: int, sent: int) -> bytes:
    """Return the beginning of a frame."""
    return struct.pack(">I", size) + b"x" * sent


def test_connections_that_say_nothing_make_room_for_a_client(
    start_daemon: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "IDLE_S", 0.0)
    daemon = start_daemon(server={"max_connections": 8})
    with ExitStack() as stack:
        for _ in range(20):
            wire = stack.enter_context(Wire(daemon.socket))
            wire.send(begin(100, 3))
        with daemon.client() as client:
            assert client.add("still served").outcome == "created"


def test_a_client_whose_idle_connection_was_given_up_comes_again(
    start_daemon: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "IDLE_S", 0.0)
    daemon = start_daemon(server={"max_connections": 1})
    with daemon.client() as one, daemon.client() as two:
        for number in range(5):
            assert one.add(f"one {number}", dedup=False).outcome == "created"
            assert two.add(f"two {number}", dedup=False).outcome == "created"


def test_who_makes_no_call_is_sent_away(start_daemon: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "FIRST_CALL_S", 0.05)
    daemon = start_daemon()
    with Wire(daemon.socket) as silent, Wire(daemon.socket) as speaking:
        assert speaking.ask(STATUS)[0] == 0
        assert silent.receive() == [1, 0, "unavailable", "No call was made within 0.05 s.", {"retry_after_ms": 100}]
        assert speaking.ask(STATUS)[0] == 0


def test_who_gives_no_token_is_sent_away(start_daemon: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "FIRST_CALL_S", 0.05)
    daemon = start_daemon(access={"require_token": True})
    with Wire(daemon.socket) as wire:
        wire.send(request(STATUS, 1))
        told, last = wire.receive(), wire.receive()
        assert told is not None
        assert last is not None
        assert (told[0], last[2]) == (0, "unavailable")


def test_a_frame_that_takes_too_long_ends_the_stream(start_daemon: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "FRAME_S", 0.1)
    daemon = start_daemon()
    with Wire(daemon.socket) as wire:
        assert wire.ask(STATUS)[0] == 0
        wire.send(begin(100, 3))
        assert wire.receive() == [1, 0, "bad_frame", "A frame was not complete after 0.1 s.", {}]


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

"""What the daemon refuses at the wire: each with a code and one sentence, and it goes on serving."""

import logging
import math
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from each import each
from memoryd.client import Client
from memoryd.client.protocol import MAX_FRAME_BYTES
from wire import Wire, packed, request
from workbench import Daemon

pack = msgspec.msgpack.encode
NAN = msgspec.Raw(b"\xca\x7f\xc0\x00\x00")
INVALID_UTF8 = msgspec.Raw(b"\xa2\xff\xfe")
LONE_SURROGATE = msgspec.Raw(b"\xa3\xed\xa0\x80")
DEEP = msgspec.Raw(b"\x91" * 100_000 + b"\xc0")


@pytest.fixture
def wire(daemon: "Daemon") -> Iterator[Wire]:
    with Wire(daemon.socket) as connected:
        yield connected


@pytest.fixture
def unchanged(client: Client, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """What is stored, and every history, is the same after the test as before; the daemon answers and logs no error."""
    kept = client.add("what was there before", type="decision").id
    before = _everything(client, kept)
    yield
    assert _everything(client, kept) == before
    assert [record.message for record in caplog.records if record.levelno >= logging.ERROR or record.exc_info] == []
    assert [record.message for record in caplog.records if "\n" in record.message] == []


def _everything(client: Client, kept: str) -> Any:
    stats = client.stats()
    stats.methods, stats.daemon, stats.database_bytes = (
        {},
        None,
        0,
    )  # the write-ahead log also grows by what is taken back
    return (stats, list(client.list(limit=1000)), client.operations(1000), client.history(kept))


FRAMES: dict[str, bytes] = {
    "an empty frame": b"",
    "bytes that are no msgpack": b"\xc1\xc1\xc1",
    "text instead of an array": b"hello, world",
    "a truncated value": pack([1, 1, {"method": "status"}])[:-3],
    "more than one value": pack([1, 1, {"method": "status"}]) + b"\xc0",
    "a map instead of an array": pack({"version": 1}),
    "an array that is too short": pack([1, 1]),
    "a version that is no number": pack(["1", 1, {"method": "status"}]),
    "an id that is no number": pack([1, "1", {"method": "status"}]),
    "an id that is beyond 64 bits": b"\x93\x01\xcb\x7f\xef\xff\xff\xff\xff\xff\xff\x80",
    "nesting that never ends": b"\x91" * 200_000,
}


@pytest.mark.usefixtures("unchanged")
@each("payload", FRAMES.values(), ids=FRAMES)
def test_a_frame_that_is_no_request_gets_bad_frame_and_the_stream_goes_on(wire: Wire, payload: bytes) -> None:
    wire.send(packed(payload))
    _is_refused(wire.receive(), 0, "bad_frame")
    assert wire.ask({"method": "status"}, 2)[:2] == [0, 2]


CALLS: dict[str, tuple[Any, str]] = {
    "a list": ([1, 2], "bad_frame"),
    "nothing": (None, "bad_frame"),
    "no method": ({}, "bad_frame"),
    "a method that is a list": ({"method": ["search"]}, "bad_frame"),
    "a method that is null": ({"method": None}, "bad_frame"),
    "keys that are no text": ({1: 2, "method": "status"}, "bad_frame"),
    "invalid UTF-8": ({"method": "search", "query": INVALID_UTF8}, "bad_frame"),
    "a lone surrogate": ({"method": "add", "memory": {"content": LONE_SURROGATE}}, "bad_frame"),
    "an unknown method": ({"method": "forget_everything"}, "unknown_method"),
    "an unknown method of a megabyte": ({"method": "x" * 2**20}, "unknown_method"),
    "a method in the wrong case": ({"method": "Search", "query": "x"}, "unknown_method"),
    "an unknown field": ({"method": "search", "query": "x", "colour": "red"}, "invalid"),
    "an unknown field of a megabyte": ({"method": "search", "query": "x", "y" * 2**20: "red"}, "invalid"),
    "an unknown field of a memory": ({"method": "add", "memory": {"content": "x", "colour": 1}}, "invalid"),
    "a missing field": ({"method": "search"}, "invalid"),
    "a number for text": ({"method": "search", "query": 5}, "invalid"),
    "text for a number": ({"method": "search", "query": "x", "limit": "5"}, "invalid"),
    "a fraction for an integer": ({"method": "search", "query": "x", "limit": 1.5}, "invalid"),
    "a limit of 0": ({"method": "search", "query": "x", "limit": 0}, "invalid"),
    "a limit of -1": ({"method": "list", "limit": -1}, "invalid"),
    "a limit over 1000": ({"method": "list", "limit": 1001}, "invalid"),
    "an offset of -1": ({"method": "list", "offset": -1}, "invalid"),
    "a deadline of 0": ({"method": "search", "query": "x", "deadline_ms": 0}, "invalid"),
    "more types than a filter takes": ({"method": "list", "type": ["x"] * 1001}, "invalid"),
    "more conditions than a filter takes": ({"method": "list", "where": {str(n): n for n in range(101)}}, "invalid"),
    "an unknown reach": ({"method": "list", "reach": "everything"}, "invalid"),
    "an unknown tier": ({"method": "list", "tier": ["L9"]}, "invalid"),
    "an unknown order": ({"method": "list", "sort": "colour"}, "invalid"),
    "a time that is text": ({"method": "list", "after": "2026-03-31"}, "invalid"),
    "a time before 1970": ({"method": "list", "after": -1.0}, "invalid"),
    "a time after the year 9999": ({"method": "list", "before": 1e18}, "invalid"),
    "a time that is NaN": ({"method": "list", "before": NAN}, "invalid"),
    "a namespace that is a list": ({"method": "list", "namespace": ["acme"]}, "invalid"),
    "a namespace with an empty part": ({"method": "list", "namespace": "acme//api"}, "invalid"),
    "a namespace with a slash in front": ({"method": "list", "namespace": "/acme"}, "invalid"),
    "a namespace with a slash behind": ({"method": "stats", "namespace": "acme/"}, "invalid"),
    "a namespace with a NUL": ({"method": "get", "namespace": "ac\0me", "id": "abcd"}, "invalid"),
    "a namespace that is too deep": ({"method": "history", "namespace": "a/" * 20 + "a", "id": "abcd"}, "invalid"),
    "an id that is too short": ({"method": "get", "id": "abc"}, "invalid"),
    "an empty id": ({"method": "get", "id": ""}, "invalid"),
    "an id with a wildcard": ({"method": "get", "id": "%%%%"}, "invalid"),
    "an id with the other wildcard": ({"method": "update", "id": "____", "pinned": True}, "invalid"),
    "an id of a megabyte": ({"method": "get", "id": "f" * 2**20}, "invalid"),
    "an id that nothing has": ({"method": "get", "id": "ffffffff"}, "not_found"),
    "a history that nothing has": ({"method": "history", "id": "ffffffff"}, "not_found"),
    "a deletion that nothing has": ({"method": "delete", "ids": ["ffffffff"]}, "not_found"),
    "a deletion of nothing": ({"method": "delete", "ids": []}, "invalid"),
    "a deletion with a wildcard": ({"method": "delete", "ids": ["*"]}, "invalid"),
    "an update of nothing": ({"method": "update", "id": "ffffffff"}, "invalid"),
    "an operation that never was": ({"method": "undo", "operation": "0" * 32}, "not_found"),
    "an operation by its number": ({"method": "undo", "operation": 1}, "invalid"),
    "an operation of 2 digits": ({"method": "undo", "operation": "12"}, "invalid"),
    "an offset beyond 64 bits": ({"method": "list", "offset": 2**64 - 1}, "invalid"),
    "a trace that is not kept": ({"method": "get_trace", "id": "zzzz"}, "not_found"),
    "a trace of a name of 1 MiB": ({"method": "get_trace", "id": "z" * 2**20}, "not_found"),
    "a model that is not there": ({"method": "use_model", "name": "of-tomorrow"}, "model_unavailable"),
    "a model with a path as name": ({"method": "use_model", "name": "../../etc"}, "model_unavailable"),
    "empty content": ({"method": "add", "memory": {"content": ""}}, "invalid"),
    "white space as content": ({"method": "add", "memory": {"content": " \n\t "}}, "invalid"),
    "content with a NUL": ({"method": "add", "memory": {"content": "a\0b"}}, "invalid"),
    "content over 1 MiB": ({"method": "add", "memory": {"content": "x" * (2**20 + 1)}}, "invalid"),
    "binary content": ({"method": "add", "memory": {"content": b"bytes"}}, "invalid"),
    "null as content": ({"method": "add", "memory": {"content": None}}, "invalid"),
    "an importance above 1": ({"method": "add", "memory": {"content": "x", "importance": 1.5}}, "invalid"),
    "an importance that is NaN": ({"method": "add", "memory": {"content": "x", "importance": NAN}}, "invalid"),
    "an importance that is infinite": (
        {"method": "add", "memory": {"content": "x", "importance": math.inf}},
        "invalid",
    ),
    "a given id that is no id": ({"method": "add", "memory": {"content": "x", "id": "abc"}}, "invalid"),
    "a successor of nothing": ({"method": "add", "memory": {"content": "x", "supersedes": "ffffffff"}}, "not_found"),
    "a type without letters": ({"method": "add", "memory": {"content": "x", "type": " "}}, "invalid"),
    "a type of two lines": ({"method": "add", "memory": {"content": "x", "type": "a\nb"}}, "invalid"),
    "metadata that is a list": ({"method": "add", "memory": {"content": "x", "metadata": [1]}}, "invalid"),
    "metadata that is text": ({"method": "add", "memory": {"content": "x", "metadata": "a=b"}}, "invalid"),
    "a bad memory among good ones": (
        {"method": "add_many", "memories": [{"content": "x"}, {"content": ""}]},
        "invalid",
    ),
    "a threshold of 2": ({"method": "add", "memory": {"content": "x"}, "dedup_threshold": 2}, "invalid"),
}

METADATA: dict[str, Any] = {
    "NaN": {"a": NAN},
    "an infinite number": {"a": [1, math.inf]},
    "binary data": {"a": b"\xff"},
    "an extension": {"a": {"b": msgspec.msgpack.Ext(5, b"x")}},
    "a timestamp": {"a": msgspec.Raw(b"\xd6\xff\x00\x00\x00\x00")},
    "keys that are numbers": {"a": {1: 2}},
    "keys with a NUL": {"a\0": 1},
    "text with a NUL": {"a": ["b\0"]},
    "too many levels": {"a": msgspec.Raw(b"\x91" * 50 + b"\xc0")},
    "more levels than recursion walks": {"a": msgspec.Raw(b"\x81\xa1b" * 800 + b"\xc0")},
    "more lists than recursion walks": {"a": msgspec.Raw(b"\x91" * 800 + b"\xc0")},
    "too many bytes": {"a": "x" * 2**17},
}


@pytest.mark.slow
@pytest.mark.usefixtures("unchanged")
@each(("call", "code"), CALLS.values(), ids=CALLS)
def test_a_wrong_call_gets_its_code_and_changes_nothing(wire: Wire, call: Any, code: str) -> None:
    _is_refused(wire.ask(call, 5), 5, code)
    assert wire.ask({"method": "status"}, 6)[:2] == [0, 6]


@pytest.mark.usefixtures("unchanged")
@each("metadata", METADATA.values(), ids=METADATA)
@each("method", ["add", "add_many", "update", "tag", "import_memories"])
def test_metadata_that_json_cannot_hold_is_refused(client: Client, wire: Wire, method: str, metadata: Any) -> None:
    there = client.list()[0].id
    [record] = client.export_memories()
    calls: dict[str, dict[str, Any]] = {
        "add": {"memory": {"content": "x", "metadata": metadata}},
        "import_memories": {"records": [{**msgspec.to_builtins(record), "metadata": metadata}]},
        "add_many": {"memories": [{"content": "x", "metadata": metadata}]},
        "update": {"id": there, "metadata": metadata},
        "tag": {"id": there, "values": metadata},
    }
    _is_refused(wire.ask({"method": method, **calls[method]}, 5), 5, "invalid")


@pytest.mark.usefixtures("unchanged")
@each("name", ["NaN", "binary data", "an extension", "a timestamp", "keys with a NUL", "too many levels"])
@each("method", ["search", "list"])
def test_a_filter_on_what_metadata_cannot_hold_is_refused(wire: Wire, method: str, name: str) -> None:
    query = {"query": "x"} if method == "search" else {}
    _is_refused(wire.ask({"method": method, **query, "where": {"key": {"$eq": METADATA[name]}}}, 5), 5, "invalid")


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("where", ["metadata", "neither"])
def test_nesting_too_deep_for_any_parser_inside_a_call_is_refused(wire: Wire, where: str) -> None:
    for request_id in (5, 2**63 - 1):  # in one byte and in nine
        asked = {"method": "search", "query": "x", where: {"a": DEEP}}
        _is_refused(wire.ask(asked, request_id), request_id, "invalid")
    _is_refused(wire.ask(DEEP, 5), 5, "bad_frame")


@pytest.mark.parametrize(
    "call",
    [
        {"method": "get", "id": "abcd"},
        {"method": "update", "id": "abcd", "pinned": True},
        {"method": "tag", "id": "abcd", "tags": ["x"]},
        {"method": "delete", "ids": ["abcd"]},
        {"method": "history", "id": "abcd"},
    ],
    ids=lambda call: call["method"],
)
def test_an_ambiguous_prefix_is_refused_with_its_candidates(client: Client, wire: Wire, call: Any) -> None:
    ids = ["abcd" + "0" * 27 + digit for digit in "12"]
    for number, id in enumerate(ids):
        client.add(f"number {number}", id=id)
    before = _everything(client, ids[0])
    reply = wire.ask(call, 5)
    _is_refused(reply, 5, "ambiguous_id")
    assert reply[4]["candidates"] == ids
    assert _everything(client, ids[0]) == before


@pytest.mark.usefixtures("unchanged")
@each("version", [0, 2, 99, -1])
def test_another_version_of_the_protocol_is_refused_with_what_to_do(wire: Wire, version: int) -> None:
    reply = wire.ask({"method": "of_tomorrow", "colour": "red"}, 5, version)
    _is_refused(reply, 5, "version_mismatch")
    assert ("memctl down" if version > 1 else "upgrade the client") in reply[3]
    assert reply[4]["protocol"] == 1


def test_status_and_shutdown_are_answered_whatever_the_version(daemon: "Daemon", wire: Wire) -> None:
    assert wire.ask({"method": "status"}, 5, version=2)[2]["protocol"] == 1
    assert wire.ask({"method": "shutdown"}, 6, version=2) == [0, 6, {"message": "stopping"}]


@pytest.mark.usefixtures("unchanged")
def test_a_longer_envelope_of_a_newer_client_is_read(wire: Wire) -> None:
    wire.send(packed(pack([1, 3, {"method": "status"}, {"trace": "of tomorrow"}])))
    reply = wire.receive()
    assert reply is not None
    assert reply[:2] == [0, 3]


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("length", [MAX_FRAME_BYTES + 1, 2**32 - 1])
def test_a_frame_over_the_limit_gets_an_error_and_the_end_of_the_stream(wire: Wire, length: int) -> None:
    wire.send(length.to_bytes(4, "big") + b"x" * 1000)
    _is_refused(wire.receive(), 0, "bad_frame")
    assert wire.receive() is None


@pytest.mark.usefixtures("unchanged")
def test_a_frame_over_the_limit_after_good_ones_loses_no_reply_before_it(wire: Wire) -> None:
    good = b"".join(request({"method": "get", "id": "ffffffff"}, number) for number in (1, 2, 3))
    wire.send(good + b"\xff\xff\xff\xff")
    assert [(wire.receive() or [])[:3] for _ in range(4)] == [
        [1, 1, "not_found"],
        [1, 2, "not_found"],
        [1, 3, "not_found"],
        [1, 0, "bad_frame"],
    ]
    assert wire.receive() is None


@pytest.mark.usefixtures("unchanged")
def test_a_frame_that_ends_half_way_is_forgotten_with_its_connection(daemon: "Daemon", wire: Wire) -> None:
    with Wire(daemon.socket) as half:
        half.send(request({"method": "add", "memory": {"content": "never whole"}})[:-5])
    assert wire.ask({"method": "status"})[0] == 0


@pytest.mark.usefixtures("unchanged")
def test_a_frame_in_single_bytes_is_read(wire: Wire) -> None:
    for byte in request({"method": "status"}, 4):
        wire.send(bytes([byte]))
    assert (wire.receive() or [])[:2] == [0, 4]


def test_many_requests_in_one_write_are_each_answered(wire: Wire) -> None:
    wire.send(b"".join(request({"method": "search", "query": "x"}, number) for number in range(1, 301)))
    replies = [wire.receive() or [] for _ in range(300)]
    assert sorted(reply[1] for reply in replies) == list(range(1, 301))
    assert {reply[0] for reply in replies} == {0}


def _is_refused(reply: list[Any] | None, request_id: int, code: str) -> None:
    assert reply is not None
    kind, number, found, sentence, data = reply
    assert (kind, number, found) == (1, request_id, code), sentence
    assert sentence
    assert "\n" not in sentence
    assert len(sentence) < 1100
    assert isinstance(data, dict)

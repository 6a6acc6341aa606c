"""The bytes on the wire are those of the golden file, which `golden.py` writes."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from golden import REQUEST_ID, line, messages, sample

from each import each
from memoryd.client import protocol
from memoryd.client.errors import ERRORS
from memoryd.client.protocol import METHODS, method_name, result_type
from memoryd.client.transport.exchange import decode_reply, encode_call, error_of, event_of, progress_of, result_of


class Golden(msgspec.Struct):
    name: str
    hex: str
    value: Any

    @property
    def data(self) -> bytes:
        return bytes.fromhex(self.hex)


class Goldens(dict[str, Golden]):
    def __missing__(self, name: str) -> Golden:
        pytest.fail(f"no golden line for {name!r}; run: make protocol")


LINES = (Path(__file__).parent / "golden.jsonl").read_text().splitlines()
GOLDEN = Goldens({golden.name: golden for golden in msgspec.json.decode(f"[{','.join(LINES)}]", type=list[Golden])})


def test_the_golden_file_holds_every_call_result_error_and_event() -> None:
    assert list(GOLDEN) == [name for name, _ in messages()], "run: make protocol"


@each(("name", "message"), list(messages()), ids=[name for name, _ in messages()])
def test_a_message_is_encoded_to_its_golden_bytes(name: str, message: Any) -> None:
    assert line(name, message) == LINES[list(GOLDEN).index(GOLDEN[name].name)], "run: make protocol"


@each("name", GOLDEN)
def test_golden_bytes_and_golden_value_are_the_same(name: str) -> None:
    assert msgspec.msgpack.decode(GOLDEN[name].data) == GOLDEN[name].value


@each("kind", ["least", "full"])
@each("call", METHODS)
def test_the_client_sends_golden_requests(call: type[protocol.Call[Any]], kind: str) -> None:
    sent = encode_call(sample(call, kind == "full"), REQUEST_ID)
    assert sent[4:] == GOLDEN[f"{method_name(call)}: request, {kind}"].data
    assert int.from_bytes(sent[:4], "big") == len(sent) - 4


@each("kind", ["least", "full"])
@each("call", METHODS)
def test_the_client_reads_golden_results(call: type[protocol.Call[Any]], kind: str) -> None:
    result = result_type(call)
    reply = decode_reply(GOLDEN[f"{result.__name__}: result, {kind}"].data)
    assert result_of(sample(call, False), reply) == sample(result, kind == "full")


@each("code", ERRORS)
def test_the_client_reads_golden_errors_as_the_class_of_their_code(code: str) -> None:
    error = error_of(decode_reply(GOLDEN[f"{code}: error"].data))
    assert (type(error), error.message, error.data) == (ERRORS[code], "A sentence.", {"limit": 1})


def test_the_client_reads_golden_progress() -> None:
    assert progress_of(decode_reply(GOLDEN["progress"].data)) == sample(protocol.Progress, True)


@each("call", METHODS)
def test_a_result_with_fields_of_a_newer_daemon_is_read_without_them(call: type[protocol.Call[Any]]) -> None:
    newer = {**msgspec.to_builtins(sample(result_type(call), False)), "of_tomorrow": [1]}
    reply = decode_reply(msgspec.msgpack.encode([protocol.RESULT, REQUEST_ID, newer, "and more"]))
    assert result_of(sample(call, False), reply) == sample(result_type(call), False)


def test_the_client_reads_a_golden_event() -> None:
    assert event_of(decode_reply(GOLDEN["event"].data)) == sample(protocol.Event, True)

"""PROTOCOL.md says what the code does: it is generated, complete, and enough to write a client."""

import os
import re
import socket
from inspect import get_annotations
from pathlib import Path
from typing import Any

import msgspec
import pytest
from protocol_document import BASES, CLIENTS_OWN, document, field_meanings, used_types

from each import each
from memoryd.client.errors import ERRORS
from memoryd.client.protocol import METHODS, method_name

PROTOCOL = Path(__file__).parent.parent.parent / "PROTOCOL.md"


def test_the_document_is_what_the_code_generates() -> None:
    assert PROTOCOL.read_text() == document(), "run: make protocol"


def test_every_field_has_a_docstring_below_it_that_says_what_it_means() -> None:
    silent = [
        f"{struct.__name__}.{field}"
        for struct in (*BASES, *METHODS, *used_types())
        for field in set(get_annotations(struct)) - set(field_meanings(struct))
    ]
    assert silent == [], "write a docstring below each of these fields in client/protocol/"


@each("word", [*map(method_name, METHODS), *sorted(ERRORS.keys() - CLIENTS_OWN)])
def test_every_method_and_error_code_is_in_it(word: str) -> None:
    assert f"`{word}`" in PROTOCOL.read_text(), "run: make protocol"


def test_the_refused_method_of_the_example_does_not_exist() -> None:
    [name] = re.findall(r"There is no method '(\w+)'", PROTOCOL.read_text())
    assert name not in map(method_name, METHODS)


def test_the_worked_example_is_made_of_whole_frames() -> None:
    blocks = PROTOCOL.read_text().split("```\n")[1::2]
    frames = [bytes.fromhex("".join(line[:48] for line in block.splitlines())) for block in blocks]
    for frame in frames:
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert [msgspec.msgpack.decode(frame[4:])[:2] for frame in frames] == [[1, 1], [0, 1], [1, 2]]


# A client written from PROTOCOL.md alone: a socket, MessagePack of plain values, nothing of memoryd's code.


class PlainClient:
    def __init__(self, path: str) -> None:
        self.stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.stream.settimeout(30)
        self.stream.connect(path)
        self.last = 0

    def call(self, method: str, **parameters: Any) -> Any:
        self.last += 1
        payload = msgspec.msgpack.encode([1, self.last, {"method": method, **parameters}])
        self.stream.sendall(len(payload).to_bytes(4, "big") + payload)
        while True:
            kind, number, body, *more = msgspec.msgpack.decode(self.read(int.from_bytes(self.read(4), "big")))
            assert number == self.last
            if kind == 0:
                return body
            if kind == 1:
                raise RuntimeError(body, *more)

    def read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            data += self.stream.recv(size - len(data)) or pytest.fail("the stream ended")
        return data


def test_a_client_written_from_the_document_works_with_the_real_daemon(process: Any) -> None:
    client = PlainClient(os.fspath(process.socket))
    added = client.call("add", namespace="acme", memory={"content": "We use Valkey", "metadata": {"n": 1}})
    assert added["outcome"] == "created"
    assert client.call("get", namespace="acme/api", id=added["id"][:6])["metadata"] == {"n": 1}
    assert [hit["id"] for hit in client.call("search", query="valkey", namespace="acme")["hits"]] == [added["id"]]
    many = client.call("add_many", memories=[{"content": f"note {number}"} for number in range(40)])
    assert (many["created"], len(many["results"])) == (40, 40)
    changed = client.call("update", id=added["id"], importance=1)
    assert changed["memory"]["importance"] == 1.0
    assert client.call("undo", operation=changed["operation"])["ids"] == [added["id"]]
    assert client.call("list", type=["fact"], limit=1)["total"] == 41
    assert client.call("status")["protocol"] == 1
    with pytest.raises(RuntimeError, match="not_found"):
        client.call("get", id="ffffffff")
    with pytest.raises(RuntimeError, match="invalid"):
        client.call("search", query="x", of_tomorrow=True)
    client.stream.close()

"""PROTOCOL.md and protocol.json say what the code does, and are enough to write a client."""

import os
import re
from inspect import get_annotations
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import inspect as types
from plain_client import CONTRACT, PlainClient, Refused
from protocol_document import BASES, CLIENTS_OWN, document, field_meanings, find_unit, list_structs

from each import each
from memoryd.client import protocol
from memoryd.client.errors import ERRORS
from memoryd.client.protocol import METHODS, method_name
from memoryd.client.transport.exchange import encode_call
from memoryd.daemon.server.envelope import FIT_BYTES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "PROTOCOL.md").read_text()


def test_the_document_is_what_the_code_generates() -> None:
    assert (ROOT / "protocol.json").read_text() == document(), "run: make protocol"


def test_every_field_has_a_docstring_below_it_that_says_what_it_means() -> None:
    silent = [
        f"{struct.__name__}.{field}"
        for struct in (*BASES, *list_structs())
        for field in set(get_annotations(struct)) - set(field_meanings(struct))
    ]
    assert silent == [], "write a docstring below each of these fields in client/protocol/"


def test_every_time_and_every_size_has_its_unit() -> None:
    fields = [field for struct in list_structs() for field in types.type_info(struct).fields]  # type: ignore[attr-defined]
    named = {field.name for field in fields if find_unit(field.name, field.type)}
    assert {"created_at", "after", "since", "took_ms", "ttl_s", "half_life_days", "size_bytes", "max_tokens"} <= named
    assert named.isdisjoint({"looked_at", "limit", "score", "count"})


@each("code", sorted(ERRORS.keys() - CLIENTS_OWN))
def test_the_page_has_each_error_with_the_sentence_of_its_class(code: str) -> None:
    assert f"| `{code}` | {CONTRACT['errors'][code]} |" in PAGE


def test_the_page_has_the_limits_of_the_code() -> None:
    assert f"N is at most {protocol.MAX_FRAME_BYTES} (16 MiB)" in PAGE
    assert f"has at most {FIT_BYTES} bytes" in PAGE
    assert f"`version`: the integer {protocol.PROTOCOL_VERSION}." in PAGE
    metadata = protocol.MAX_METADATA_BYTES // 1024, protocol.MAX_METADATA_DEPTH
    assert "at most {} KiB and {} levels".format(*metadata) in PAGE
    exempt = re.search(r"refused with `version_mismatch`, except for (.*)\.", PAGE)
    assert exempt
    assert set(re.findall(r"`(\w+)`", exempt[1])) == protocol.UNVERSIONED


def test_the_example_of_the_page_is_what_is_sent() -> None:
    blocks = PAGE.split("```\n")[1::2]
    add, refused = (bytes.fromhex("".join(line[:48] for line in block.splitlines())) for block in blocks)
    memory = protocol.NewMemory(content="We use Valkey")
    assert add == encode_call(protocol.Add(namespace="acme", memory=memory), 1)
    assert int.from_bytes(refused[:4], "big") == len(refused) - 4
    [name] = re.findall(r"There is no method '(\w+)'", PAGE)
    assert name not in map(method_name, METHODS)
    [reply] = re.findall(r"\n`(\[0,1,.*\])`", PAGE)
    added = protocol.Added(id="0f" * 16, outcome="created", embedded=True, operation="7c" * 16)
    assert msgspec.json.decode(reply) == [0, 1, msgspec.to_builtins(added)]


def test_a_client_written_from_both_works_with_the_real_daemon(process: Any) -> None:
    client = PlainClient(os.fspath(process.socket))
    added = client.call("add", namespace="acme", memory={"content": "We use Valkey", "metadata": {"n": 1, "ü": [0.5]}})
    assert added["outcome"] == "created"
    assert client.call("get", namespace="acme/api", id=added["id"][:6])["metadata"] == {"n": 1, "ü": [0.5]}
    hits = client.call("search", query="valkey", namespace="acme", options={"distinct": False})["hits"]
    assert [hit["id"] for hit in hits] == [added["id"]]
    turn = {"role": "user", "content": "We decided to deploy on Tuesdays only", "created_at": 1.7e9}
    seen = client.call("observe", turns=[turn], session="s1")
    assert (seen["accepted"], client.call("turns")["turns"][0]["created_at"]) == (1, 1.7e9)
    changed = client.call("update", id=added["id"], importance=1)
    assert changed["memory"]["importance"] == 1.0
    assert client.call("undo", operation=changed["operation"])["ids"] == [added["id"]]
    assert client.call("status")["protocol"] == CONTRACT["version"]

    # Errors: a code that protocol.json has, and the connection goes on.
    for wanted, method, fields in (("not_found", "get", {"id": "ffffffff"}), ("invalid", "list", {"limit": 0})):
        with pytest.raises(Refused) as refused:
            client.call(method, **fields)
        code, sentence, _ = refused.value.args
        assert (code, sentence[-1], code in CONTRACT["errors"]) == (wanted, ".", True)

    # Pipelining: many calls under way at once, whose results are matched by number.
    many = {client.send("add", memory={"content": f"note {number}"}, dedup=False): number for number in range(50)}
    ids = [client.wait(number)["id"] for number in reversed(many)]
    assert len(set(ids)) == 50
    reads = {client.send("get", id=id): id for id in ids}
    assert [client.wait(number)["id"] for number in reads] == ids

    # Progress: what comes before the result, as `Progress` says.
    events: list[Any] = []
    assert client.wait(client.send("verify"), events.append)["problems"] == []
    assert events
    assert all(event.keys() == CONTRACT["types"]["Progress"]["properties"].keys() for event in events)

    # Replies have the fields of their types.
    for method in ("list", "status", "stats", "jobs", "namespaces"):
        result = CONTRACT["types"][CONTRACT["methods"][method]["result"]]
        assert client.call(method).keys() == result["properties"].keys()
    client.stream.close()

"""Rows of the place that are no memories of the root: each is left out and counted, and the others are there."""

import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from each import each
from memoryd.client import Invalid
from memoryd.client.protocol import Get, GetShared, List, Search
from sshd import Sshd
from workbench import Daemon

GOOD: dict[str, Any] = {
    "id": "ab" * 16,
    "namespace": "acme/api",
    "type": "decision",
    "content": "Releases are on Tuesdays",
    "created_at": 1_800_000_000.0,
    "updated_at": 1_800_000_000.0,
    "similarity": 0.9,
    "texts": [{"length": 4.0, "counts": {"releas": 1.0}}],
}
DEEP, DEEPER = (msgspec.Raw(b"\x91" * depth + b"\x00") for depth in (100, 5000))  # lists in lists
BAD = (
    *({"id": value} for value in ("", "abcd", "AB" * 16, 5, None, "../" * 11)),
    *({"namespace": value} for value in ("", "acmeinc", "other/api", "home", 7)),
    *({"created_at": value} for value in (float("inf"), float("nan"), -1.0, 1e300, "now")),
    *({"updated_at": value} for value in (float("nan"), 8e9)),
    *({"start_line": value} for value in (2**64 - 1, 0, -5, "x")),
    *({"importance": value} for value in (float("nan"), 2.0, "high")),
    *({"access_count": value} for value in (-1, 2**63)),
    *({"metadata": value} for value in ("x", [1], {1: 2})),
    *({"similarity": value} for value in (float("nan"), float("inf"), 7.0, "near")),
    *({"texts": [{"length": value}]} for value in (float("nan"), -1.0, 1e300, None)),
    *({"texts": [{"length": 4.0, "counts": {"releas": value}}]} for value in (float("inf"), -1.0, "often")),
    *({"float16": value} for value in ("AAAA", "AH4=", "!!!!", "é", 5)),  # an odd length, not a number, no base64
    {"content": 5},
    {"content": "x" * 12_000_000},
    {"content": b"\xff\xfe"},
    {"metadata": {"deep": DEEP}},
    {"start_line": msgspec.Raw(b"\xcb" + struct.pack(">d", 2.0**70))},
    {"type": None},
    {"tags": 1, "content": None},
)


@pytest.fixture
def place(folder: Path, sshd: Sshd, patient: None, start_daemon: Callable[..., "Daemon"]) -> "Daemon":
    """A daemon whose place says the rows above, a good one before and behind them."""
    rows = [GOOD, *({**GOOD, **one} for one in BAD), "no row", None, 5, {**GOOD, "id": "cd" * 16, "content": "Fridays"}]
    encoded = [msgspec.msgpack.encode(row) for row in rows]
    (folder / "rows").write_bytes(b"\xdc" + len(rows).to_bytes(2, "big") + b"".join(encoded))
    program = Path(__file__).with_name("hostile.py")
    root = {"server": "ssh://place", "memctl": f"{sys.executable} {program} {folder}/rows"}
    return start_daemon(shared={"acme": root})


def test_a_row_that_is_none_is_left_out_and_counted_and_the_others_are_there(place: "Daemon") -> None:
    count = len(BAD) + 3
    with place.client() as client:
        found = client.call(Search(query="releases"))
        assert [hit.content for hit in found] == ["Releases are on Tuesdays", "Fridays"]
        assert found.degraded == ["unreadable:acme"]
        assert client.call(GetShared()).roots[0].unreadable == count
        page = client.call(List())
        assert {memory.content for memory in page} >= {"Releases are on Tuesdays", "Fridays"}
        assert page.degraded == ["unreadable:acme"]
        assert client.call(GetShared()).roots[0].state == "ready"


@each("bad", [{"namespace": "home"}, {"created_at": float("inf")}, {"id": "x"}])
def test_a_memory_that_is_read_by_its_id_is_one_of_the_root(place: "Daemon", folder: Path, bad: dict[str, Any]) -> None:
    (folder / "rows").write_bytes(msgspec.msgpack.encode([{**GOOD, **bad}]))
    with place.client() as client, pytest.raises(Invalid, match="cannot be read"):
        client.call(Get(id="abcd"))


def test_an_answer_that_no_memoryd_gives_ends_the_line(place: "Daemon", folder: Path) -> None:
    (folder / "rows").write_bytes(msgspec.msgpack.encode([GOOD, {**GOOD, "metadata": {"deep": DEEPER}}]))
    with place.client() as client:
        found = client.call(Search(query="releases"))
        assert (found.hits, found.degraded) == ([], ["shared:acme"])
        root = client.call(GetShared()).roots[0]
    assert ("no memoryd" in root.problem, root.unreadable) == (True, 0)


COUNTS: tuple[dict[str, Any], ...] = (
    *({"documents": value} for value in (-1, 2**64 - 1, "many")),
    *({"average": value} for value in (float("nan"), float("inf"), -1.0)),
    *({"holding": value} for value in ({"releas": -1}, {"releas": "often"}, 5)),
)


@each("bad", COUNTS)
def test_counts_that_no_place_can_have_are_an_answer_that_cannot_be_read(
    place: "Daemon", folder: Path, bad: dict[str, Any]
) -> None:
    (folder / "rows").write_bytes(msgspec.msgpack.encode([GOOD]))
    (folder / "counts").write_bytes(msgspec.msgpack.encode(bad))
    with place.client() as client:
        found = client.call(Search(query="releases"))
        assert (found.hits, found.degraded) == ([], ["shared:acme"])
        assert client.call(GetShared()).roots[0].state == "ready"
        (folder / "counts").unlink()


def test_a_stem_that_more_memories_have_than_there_are_counts_as_common(place: "Daemon", folder: Path) -> None:
    (folder / "rows").write_bytes(msgspec.msgpack.encode([GOOD]))
    (folder / "counts").write_bytes(msgspec.msgpack.encode({"holding": {"releas": 10**18}}))
    with place.client() as client:
        assert [hit.content for hit in client.call(Search(query="releases"))] == [GOOD["content"]]


def test_what_the_place_says_of_other_memories_counts_for_nothing(place: "Daemon", folder: Path) -> None:
    claims = {"contradicts": ["ef" * 16], "contradicts_texts": ["x"], "linked_from": ["/etc"], "newer_than": "ef" * 16}
    (folder / "rows").write_bytes(msgspec.msgpack.encode([{**GOOD, **claims, "tier": "L1", "shared": "x"}]))
    with place.client() as client:
        [hit] = client.call(Search(query="releases"))
    assert (hit.contradicts, hit.contradicts_texts, hit.linked_from, hit.newer_than) == ([], [], [], "")
    assert (hit.tier, hit.shared) == ("L3", "acme")

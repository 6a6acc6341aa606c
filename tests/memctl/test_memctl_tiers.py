"""memctl observe, seed, tiers and consolidate, against a daemon in the test process."""

import io
import json
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
from fake_daemon import Memctl

from each import each
from memoryd.client.programs.memctl.observe import _build_calls, _line
from memoryd.client.protocol import NewTurn, TierName
from memoryd.client.protocol.tiers import MAX_TURNS
from memoryd.client.transport.batches import split_batches

FACT = "We decided to move the deploys to Tuesday at 10:00"
ANSWER = "Noted: deploys are on Tuesday at 10:00 from now on"

pytestmark = pytest.mark.usefixtures("daemon")


def give_stdin(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def lines(*items: object) -> str:
    return "".join(json.dumps(item) + "\n" for item in items)


def test_observe_takes_turns_from_its_arguments(memctl: Memctl) -> None:
    told = memctl("observe", FACT, "ok", "--session", "standup", "--namespace", "acme/api")
    assert (told.code, told.err) == (0, "")
    assert told.out.splitlines() == [
        "Recorded 1 turn.",
        "Skipped 1 turn:",
        "REASON     TURN",
        "too short  ok",
    ]
    [turn] = memctl("tiers", "--turns", "--namespace", "acme/api", "--json").json
    assert (turn["content"], turn["role"], turn["session"], turn["namespace"]) == (FACT, "user", "standup", "acme/api")


def test_observe_takes_json_lines_from_standard_input(memctl: Memctl, monkeypatch: pytest.MonkeyPatch) -> None:
    said = lines(
        {"role": "user", "content": FACT, "created_at": "2026-01-02"}, {"role": "assistant", "content": ANSWER}
    )
    give_stdin(monkeypatch, said + "\n")
    told = memctl("observe", "--json")
    assert (told.json["accepted"], told.json["skipped"], len(told.json["turns"])) == (2, 0, 2)
    turns = memctl("tiers", "--turns", "--json").json
    assert [(turn["role"], turn["created_at"][:10] == "2026-01-02") for turn in turns] == [
        ("assistant", False),
        ("user", True),
    ]


def test_observe_says_who_repeats_what(memctl: Memctl) -> None:
    id = memctl("observe", FACT, "--json").json["turns"][0]["id"]
    assert f"duplicate ({id[:8]})" in memctl("observe", FACT.upper()).out


def test_a_seed_of_a_markdown_file_says_what_takes_one(memctl: Memctl, folder: Path) -> None:
    (folder / "README.md").write_text("# The shop\n")
    told = memctl("seed", str(folder / "README.md"))
    assert told.code == 1
    assert "`memctl add - < FILE` adds it, `memctl workspace add FOLDER` keeps files in view" in told.err


@each(
    ("given", "message"),
    [
        ("", "there are no turns"),
        ("not json\n", "Line 1 of standard input is not a JSON object"),
        ('{"role": "user", "content": "x y z"}\n[1]\n', "Line 2 of standard input is not a JSON object"),
        ('{"role": "user"}\n', "Not a turn"),
    ],
)
def test_observe_says_what_is_wrong_with_its_input(
    memctl: Memctl, monkeypatch: pytest.MonkeyPatch, given: str, message: str
) -> None:
    give_stdin(monkeypatch, given)
    told = memctl("observe")
    assert (told.code, told.out) == (1 if given else 2, "")
    assert message in told.err


def test_many_turns_are_sent_in_calls_that_the_daemon_takes() -> None:
    turns = [NewTurn(role="user", content=f"turn {number}") for number in range(1001)]
    assert [len(batch) for batch in split_batches(turns, MAX_TURNS)] == [500, 500, 1]
    large = [NewTurn(role="user", content="x" * 1_000_000) for _ in range(20)]
    assert all(len(batch) <= 9 for batch in split_batches(large, MAX_TURNS))
    assert list(split_batches([])) == []


def test_seed_takes_turns_and_memories_each_to_its_place(memctl: Memctl, folder: Path) -> None:
    path = folder / "seed.jsonl"
    path.write_text(
        lines(
            {"role": "user", "content": FACT, "session": "s", "namespace": "acme/chat"},
            {"role": "assistant", "content": ANSWER, "session": "s", "namespace": "acme/chat"},
            {"content": "We use Valkey", "type": "decision"},
            {"content": "we use valkey", "type": "decision"},
        )
    )
    told = memctl("seed", str(path), "--namespace", "acme")
    assert told.out == "Seeded in acme/chat, acme: 2 turns taken in, 1 memory created, 1 merged into others.\n"
    assert [memory["namespace"] for memory in memctl("list", "--json").json] == ["acme"]
    assert {turn["namespace"] for turn in memctl("tiers", "--turns", "--json").json} == {"acme/chat"}
    assert memctl("seed", str(path), "--json").json == {
        "turns": 0,
        "created": 1,
        "merged": 1,
        "skipped": 2,
        "redacted": {},
    }


def test_seed_reads_standard_input(memctl: Memctl, monkeypatch: pytest.MonkeyPatch) -> None:
    give_stdin(monkeypatch, lines({"content": "We use Valkey"}))
    assert memctl("seed", "-").out == "Seeded at /: 1 memory created.\n"
    past = {"expires_at": "2020-01-01"}
    give_stdin(monkeypatch, lines({"content": "We use Redis", **past}, {"content": "Pinned", "pinned": True, **past}))
    said = "1 of them expired already: no search finds these, `memctl list --all-states` shows them."
    assert memctl("seed", "-").out == f"Seeded at /: 2 memories created.\n{said}\n"


@each(
    ("text", "message"),
    [
        ("", "There is nothing in"),
        ('{"content": "a"}\n{"text": "b"}\n', "Line 2 of"),
        ('{"content": "a"}\nnonsense\n', "Line 2 of"),
        ('{"role": "user", "content": 5}\n', "Line 1 of"),
    ],
)
def test_seed_names_the_line_that_is_wrong_and_sends_nothing(
    memctl: Memctl, folder: Path, text: str, message: str
) -> None:
    path = folder / "seed.jsonl"
    path.write_text(text)
    told = memctl("seed", str(path))
    assert (told.code, told.out) == (1, "")
    assert message in told.err
    assert memctl("list", "--json").json == []


def test_seed_without_its_file_is_an_error(memctl: Memctl, folder: Path) -> None:
    told = memctl("seed", str(folder / "missing.jsonl"))
    assert (told.code, "cannot be read" in told.err) == (1, True)


def test_lines_of_one_place_are_sent_together_in_their_order() -> None:
    args: Any = type("Args", (), {"namespace": "acme", "session": ""})
    given = [{"content": str(number)} for number in range(450)]
    given.insert(10, {"role": "user", "content": "x"})
    made = [_line(args, "acme", "file", 1, item) for item in given]
    assert [(len(call.turns), len(call.memories)) for call, _ in _build_calls(made)] == [
        (0, 10),
        (1, 0),
        (0, 200),
        (0, 200),
        (0, 40),
    ]


def test_tiers_shows_a_picture_that_fits_a_hundred_columns(memctl: Memctl) -> None:
    memctl("observe", FACT, "ok", "--namespace", "acme/api", "--session", "s")
    memctl("add", "We use Valkey", "--namespace", "acme")
    out = memctl("tiers").out
    assert max(map(len, out.splitlines())) <= 100
    for words in ("L0 active", "hot buffer", "L1 recent", "L2 registry", "documents", "at most 2,000 each"):
        assert words in out
    assert "TURNS  2 observed" in out
    assert "too short 1" in out
    assert "acme/api" in out
    assert "…" not in out


def test_tiers_of_an_empty_memory_says_how_to_begin(memctl: Memctl) -> None:
    assert "No turns were observed so far" in memctl("tiers").out
    assert memctl("tiers", "--turns").out == "L0 is empty.\n"
    assert memctl("tiers", "--skipped").out == "No turns were skipped.\n"


def test_tiers_lists_skipped_turns_with_reasons(memctl: Memctl) -> None:
    memctl("observe", "Error: connect ECONNREFUSED 127.0.0.1:5432", "thanks", "--namespace", "acme")
    out = memctl("tiers", "--skipped").out
    assert out.startswith("DATE ")
    assert "connection error" in out
    assert "only stop words" in out
    assert [turn["reason"] for turn in memctl("tiers", "--skipped", "--json").json] == [
        "only stop words",
        "connection error",
    ]


def test_tiers_as_json_is_one_document(memctl: Memctl) -> None:
    memctl("observe", FACT)
    report = memctl("tiers", "--json").json
    assert [tier["name"] for tier in report["tiers"]] == list(get_args(TierName))
    assert report["flows"] == {"observed": 1}


def test_consolidate_tells_what_it_did_or_would_do(memctl: Memctl) -> None:
    memctl("observe", FACT, "--session", "s")
    memctl("observe", ANSWER, "--role", "assistant", "--session", "s")
    added = memctl("add", "We use Valkey", "--json").json["id"]
    dry = memctl("consolidate", "--dry-run").out
    assert "WOULD DO" in dry
    assert "Nothing was changed." in dry
    assert memctl("tiers", "--turns", "--json").json != []
    done = memctl("consolidate", "--json").json
    assert (done["promoted"], done["paired"], done["moved"]) == (2, 0, 0)
    assert memctl("get", added, "--json").json["tier"] == "L1"
    assert memctl("tiers", "--turns").out == "L0 is empty.\n"
    assert "takes the moves back" not in memctl("consolidate").out
    assert memctl("undo", done["operation"]).code == 0
    assert len(memctl("tiers", "--turns", "--json").json) == 2

"""memctl observe, seed, tiers and consolidate, against a daemon in the test process."""

import io
import json
import sys

import pytest
from fake_daemon import Memctl

from each import each
from memoryd.client.protocol import NewTurn
from memoryd.client.protocol.tiers import MAX_TURNS
from memoryd.client.transport.batches import split_batches

FACT = "We decided to move the deploys to Tuesday at 10:00"
ANSWER = "Noted: deploys are on Tuesday at 10:00 from now on"

pytestmark = pytest.mark.usefixtures("daemon")


def give_stdin(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def lines(*items: object) -> str:
    return "".join(json.dumps(item) + "\n" for item in items)


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

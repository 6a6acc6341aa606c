"""memctl feedback: say it, see it in get, explain, history and export, take it back."""

import json

import pytest
from fake_daemon import Memctl

from memoryd.client.programs.memctl.memories import feedback_text
from memoryd.client.protocol import Usefulness
from waiting import wait_until

with_daemon = pytest.mark.usefixtures("process")


@with_daemon
def test_feedback_is_noted_shown_and_taken_back(memctl: Memctl) -> None:
    added = memctl("add", "The market has plums on Monday", "--json").json["id"]
    noted = memctl("feedback", added[:6], "--useless", "--note", "it moved to Friday")
    assert noted.out.startswith(f"Noted: {added[:8]} is useless to 1 caller (score ×0.950); `memctl undo")
    shown = memctl("get", added[:6]).out
    assert "useless to 1 caller (score ×0.950)" in shown
    assert "it moved to Friday" in shown
    assert "found, likely (56%) (feedback ×0.950)" in memctl("explain", "plums").out
    assert "→ 0 useful, 1 usel" in memctl("history", added[:6]).out
    [line] = memctl("export").out.splitlines()
    assert [vote["note"] for vote in json.loads(line)["votes"]] == ["it moved to Friday"]
    memctl("undo")
    assert "feedback" not in memctl("get", added[:6]).out
    assert memctl("get", added[:6], "--json").json["usefulness"] is None


@with_daemon
def test_one_of_the_two_must_be_said(memctl: Memctl) -> None:
    for words in ([], ["--useful", "--useless"]):
        assert memctl("feedback", "abcd", *words).code == 2
    assert memctl("feedback", "abcd", "--useful").code == 1


@pytest.mark.slow
@with_daemon
def test_json_is_the_whole_change(memctl: Memctl) -> None:
    added = memctl("add", "The market has plums on Monday", "--json").json["id"]
    changed = memctl("feedback", added, "--useful", "--json").json
    assert changed["memory"]["usefulness"] == {"factor": 1.05, "useful": 1, "useless": 0, "cited": 0, "notes": []}


def test_a_phrase_for_every_sum() -> None:
    assert feedback_text(None) == "not rated"
    made = Usefulness(factor=1.1, useful=2, useless=1, cited=3)
    assert feedback_text(made) == "useful to 2 callers, useless to 1 caller, cited 3 times (score ×1.100)"


@pytest.mark.slow
@with_daemon
def test_that_it_was_read_meanwhile_is_no_part_of_a_change(memctl: Memctl) -> None:
    added = memctl("add", "The market has plums on Monday", "--json").json["id"]
    wait_until(lambda: memctl("get", added, "--json").json["access_count"] > 0)
    memctl("feedback", added, "--useful")
    [_, change] = memctl("history", added, "--json").json["changes"]
    assert list(change["changed"]) == ["usefulness"]

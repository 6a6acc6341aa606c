"""memctl feedback: say it, see it in get, explain, history and export, take it back."""

import json

import pytest
from fake_daemon import Memctl

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

"""memctl against the real daemon: what people type, rightly and wrongly."""

import io
import json
import shlex
from typing import Any

import pytest
from fake_daemon import Memctl, Terminal

from each import each

pytestmark = pytest.mark.usefixtures("daemon")


class Input:
    """A standard input that holds these bytes."""

    def __init__(self, data: bytes) -> None:
        self.buffer = io.BytesIO(data)


def test_a_memory_is_added_found_changed_deleted_and_brought_back(memctl: Memctl) -> None:
    added = memctl("add", "We use Valkey, not Redis", "--type", "decision", "--namespace", "acme", "--json").json
    assert added["outcome"] == "created"
    found = memctl("search", "valkey", "--json").json
    assert {"id", "content", "score", "tier", "type", "namespace", "created_at"} <= found[0].keys()
    assert (found[0]["id"], found[0]["namespace"]) == (added["id"], "acme")
    prefix = added["id"][:6]
    assert memctl("update", prefix, "--importance", "0.9", "--json").json["memory"]["importance"] == 0.9
    tagged = memctl("tag", prefix, "cache", "port=6379", "checked=true", "--json").json
    assert tagged["memory"]["metadata"] == {"tags": ["cache"], "port": 6379, "checked": True}
    deleted = memctl("delete", prefix, "--json").json
    assert deleted["ids"] == [added["id"]]
    assert memctl("get", added["id"]).code == 1
    assert memctl("undo", "--json").json["undone"] == deleted["operation"]
    assert memctl("get", added["id"], "--json").json["importance"] == 0.9
    actions = [change["action"] for change in memctl("history", prefix, "--json").json["changes"]]
    assert actions == ["created", "updated", "updated", "deleted", "created"]
    assert len(memctl("history", "--json").json) == 5


def test_what_filters_leave_is_counted_and_deleted_and_brought_back(memctl: Memctl) -> None:
    for number in range(3):
        memctl("add", f"Herons fish at {number}", "--no-dedup", "--metadata", f"n={number}", "--metadata", "bird=heron")
    where = ("--where", "n>=1", "--where", "bird=heron")
    assert memctl("list", *where, "--limit", "1").out.endswith("\n1 of 2 memories\n")
    dry = memctl("delete", *where, "--dry-run").out
    assert "2 of 2 memories" in dry
    assert "These would be deleted" in dry
    assert "Deleted 2 memories" in memctl("delete", *where).out
    assert "none matches the filters" in memctl("delete", *where).out
    memctl("undo")
    assert memctl("list", *where).out.endswith("\n2 of 2 memories\n")
    assert memctl("delete").code == memctl("delete", "3f9a", *where).code == 2
    refused = memctl("delete", "--where", '{"n": {"$near": 1}}')
    assert (refused.code, refused.err.count("\n")) == (1, 1)


def test_an_undo_without_an_id_shows_what_and_asks(memctl: Memctl, monkeypatch: pytest.MonkeyPatch) -> None:
    added = memctl("add", "Herons fish at dawn", "--json").json
    id, operation = added["id"], added["operation"]
    for typed, code in (("n\n", 0), ("y\n", 1)):
        monkeypatch.setattr("sys.stdin", Terminal(typed))
        asked = memctl("undo")
        assert "Herons fish at dawn" in asked.out
        assert f"Undo operation {operation[:8]}?" in asked.err
        assert memctl("get", id).code == code
    monkeypatch.setattr("sys.stdin", Terminal(""))
    assert "Nothing was undone" in memctl("undo").out
    undone = memctl("history", "--limit", "1", "--json").json[0]["id"]
    assert memctl("undo", undone[:8]).code == 0


def test_a_memory_is_put_read_and_deleted_by_key(memctl: Memctl) -> None:
    stored = memctl("add", "We cache in Redis", "--key", "cache", "--metadata", "port=6379")
    assert stored.out.startswith("Stored: cache")
    assert memctl("add", "We cache in Valkey", "--key", "cache").out.startswith("Replaced: cache")
    assert "\nkey        cache\n" in memctl("get", "--key", "cache").out
    assert memctl("get", "--key", "cache", "--json").json["content"] == "We cache in Valkey"
    assert memctl("get").code == memctl("get", "3f9a", "--key", "cache").code == 2
    memctl("add", "We cache in Valkey", "--key", "cache", "--expires-at", "2999-01-01")
    assert memctl("get", "--key", "cache", "--json").json["expires_at"]
    assert "Deleted 1 memory" in memctl("delete", "--key", "cache").out
    assert memctl("get", "--key", "cache").code == 1


def test_feedback_is_noted_shown_and_taken_back(memctl: Memctl) -> None:
    added = memctl("add", "The market has plums on Monday", "--json").json["id"]
    noted = memctl("feedback", added[:6], "--useless", "--note", "it moved to Friday")
    assert noted.out.startswith(f"Noted: {added[:8]} is useless to 1 caller (score ×0.950); `memctl undo")
    shown = memctl("get", added[:6]).out
    assert "useless to 1 caller (score ×0.950)" in shown
    assert "it moved to Friday" in shown
    assert "found, likely (48%) (feedback ×0.950)" in memctl("explain", "plums").out
    assert "→ 0 useful, 1 usel" in memctl("history", added[:6]).out
    [line] = memctl("export").out.splitlines()
    assert [vote["note"] for vote in json.loads(line)["votes"]] == ["it moved to Friday"]
    memctl("undo")
    assert "feedback" not in memctl("get", added[:6]).out
    assert memctl("get", added[:6], "--json").json["usefulness"] is None


def test_a_search_can_be_explained(memctl: Memctl) -> None:
    one = memctl("add", "the cache is warm in the morning", "--json").json["id"]
    memctl("add", "the cache is cold in the evening", "--json")
    out = memctl("explain", "cache morning").out
    assert "STAGE" in out
    assert one[:8] in out
    memctl("search", "cache evening")
    memctl("explain", "cache")
    assert memctl("explain", "--last", "--json").json["query"] == "cache evening"  # to explain leaves no mark
    assert "is found, at rank 1" in memctl("why-not", one, "cache", "morning").out
    assert "is not among the results" in memctl("why-not", one, "cache evening", "--limit", "1").out


def test_source_and_time_of_what_a_search_looks_at_are_filters_by_where(memctl: Memctl) -> None:
    id = memctl("add", "the cache is warm in the morning", "--json").json["id"]
    memctl("observe", "We decided that the cache is cold in the evening")
    later = ("--where", "memory.created_at>yesterday")
    assert "the cache is warm" in memctl("context", "is the cache warm?", *later, "--where", "memory.source=manual").out
    assert memctl("context", "is the cache warm?", "--where", "memory.created_at<yesterday").out == ""
    shown = memctl("explain", "the cache", *later, "--where", "memory.source=manual", "--json").json
    assert [one["id"] for one in shown["hits"]] == [id]
    assert "is found, at rank" in memctl("why-not", id, "the cache", *later).out
    assert "(stage filter)" in memctl("why-not", id, "the cache", "--where", "memory.source=mail").out


def test_the_schema_is_printed_by_part(memctl: Memctl) -> None:
    printed = memctl("stats", "--schema").out
    assert printed.startswith("-- Schema ")
    assert "CREATE TABLE memories (" in printed


def test_stats_status_and_list(memctl: Memctl) -> None:
    memctl("add", "one")
    memctl("add", "two", "--namespace", "acme/api")
    assert memctl("stats", "--json").json["by_namespace"] == {"": 1, "acme/api": 1}
    assert memctl("status", "--json").json["memories"] == 2
    assert memctl("list").out.splitlines()[0].split() == ["ID", "CREATED", "TYPE", "ORIGIN", "NAMESPACE", "CONTENT"]
    assert [memory["content"] for memory in memctl("list", "--json").json] == ["two", "one"]
    assert memctl("list", "--namespace", "acme", "--reach", "exact", "--json").json == []


@each(
    "line",
    [
        "add ''",
        "add ' \n '",
        "add x --namespace a//b",
        "add x --supersedes ffff",
        """add x --metadata '{"a": 99999999999999999999999}'""",
        "get %",
        "get _",
        "get ''",
        "get ____",
        "get ffff",
        "update ffff --importance 0.5",
        "tag ffff x",
        "delete ffff",
        "history ffff",
        "undo",
        "undo 999",
        "search ''",
        "search x --set min_similarity=nan",
        "search x --set half_life_days=0",
        "explain --last nothing",
        "why-not ffff x",
        "model use nothing",
    ],
)
def test_what_the_daemon_refuses_is_one_sentence_and_exit_code_1(memctl: Memctl, line: str) -> None:
    refused = memctl(*shlex.split(line))
    assert (refused.code, refused.out, refused.err.count("\n")) == (1, "", 1)


def test_an_ambiguous_prefix_lists_its_candidates(memctl: Memctl, client: Any) -> None:
    ids = ["abcd" + digit * 28 for digit in "01"]
    for number, id in enumerate(ids):
        client.add(f"memory {number}", id=id)
    refused = memctl("get", "abcd")
    assert refused.code == 1
    assert all(id[:8] in refused.err for id in ids)


def test_content_over_the_limit_is_refused(memctl: Memctl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Input(b"x" * (1024 * 1024 + 1)))
    refused = memctl("add", "-")
    assert refused.code == 1
    assert "1048577 bytes" in refused.err
    monkeypatch.setattr("sys.stdin", Input(b"x" * (17 * 1024 * 1024)))
    assert "far longer than" in memctl("add", "-").err
    monkeypatch.setattr("sys.stdin", None)
    assert memctl("add", "-").code == 1


def test_content_that_steers_a_terminal_is_shown_harmless(memctl: Memctl) -> None:
    id = memctl("add", "red \x1b[31m and \x07 bell", "--json").json["id"]
    for words in (["get", id], ["list"], ["search", "red"], ["explain", "red"], ["history", id]):
        assert "\x1b" not in memctl(*words).out
    assert memctl("get", id, "--json").json["content"] == "red \x1b[31m and \x07 bell"

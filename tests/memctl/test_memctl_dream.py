"""memctl dream: what it prints for people and programs, with a real daemon; the clients' dream and summarize."""

from pathlib import Path
from typing import Any

import pytest
from fake_daemon import Memctl

from memoryd.client import Client, errors
from memoryd.client.protocol import Message

NOTE, OLD = "The API listens on port 8443", "# Memory\n\n- The API listens on port 80\n"


@pytest.fixture
def notes(daemon: Any, memctl: Memctl, folder: Path) -> Path:
    root = folder / "notes"
    (root / "memory").mkdir(parents=True)
    (root / "memory" / "2027-01-05.md").write_text(f"- {NOTE}\n- Had lunch with Anna\n")
    (root / "MEMORY.md").write_text(OLD)
    assert memctl("workspace", "add", str(root)).code == 0
    assert memctl("workspace", "index").code == 0
    return root


def test_a_dream_is_proposed_carried_out_and_taken_back(memctl: Memctl, notes: Path) -> None:
    proposed = memctl("dream", "notes").out
    assert "Nothing was changed." in proposed
    assert f"take     {NOTE}" in proposed
    assert "1 note left in the daily files" in proposed
    assert "`memctl dream notes --allow` writes this" in proposed
    assert "propose" in memctl("workspace", "status", "notes").out
    assert (notes / "MEMORY.md").read_text() == OLD
    done = memctl("dream", "notes", "--allow").out
    assert "write MEMORY.md" in memctl("workspace", "status", "notes").out
    assert "`memctl dream notes --undo` takes it back" in done
    assert NOTE in (notes / "MEMORY.md").read_text()
    assert "2027-01-15.md" in done
    assert "Nothing is new" in memctl("dream", str(notes)).out
    assert "as it was before" in memctl("dream", "notes", "--undo").out
    assert (notes / "MEMORY.md").read_text() == OLD


def test_programs_get_one_document(memctl: Memctl, notes: Path) -> None:
    [report] = memctl("dream", "notes", "--allow", "--json").json
    assert (report["place"], report["outcome"], report["passing"]) == ("notes", "written", 1)
    assert [step["kept"] or step["text"] for step in report["steps"]] == [NOTE, NOTE]
    [report] = memctl("dream", "notes", "--undo", "--json").json
    assert report["outcome"] == "undone"


def test_what_cannot_be_done_is_said_in_a_sentence(memctl: Memctl, notes: Path) -> None:
    assert memctl("dream", "--undo").code == 2
    failed = memctl("dream", "notes", "--undo")
    assert (failed.code, failed.err.count("\n")) == (1, 1)
    (notes / "MEMORY.md").write_text("- The same\n" * 20)
    refused = memctl("dream", "notes")
    assert refused.code == 1
    assert "by more than half" in refused.err


def test_clients_dream_and_sum_up(daemon: Any, notes: Path) -> None:
    messages = [{"id": str(n), "role": "user", "content": f"{NOTE} and {n}"} for n in range(40)]
    with Client(socket=daemon.socket) as client:
        assert client.dream("notes", dry_run=True).dreams[0].outcome == "planned"
        done = client.summarize(messages, max_tokens=200, max_summary_tokens=50)
        assert done.tokens <= 200
        assert (done.by, done.messages[-1].id) == ("rules", "39")
        again = client.summarize(done.messages, done.running_summary, max_tokens=200, max_summary_tokens=50, wait=True)
        assert again.messages == done.messages
        with pytest.raises(errors.Invalid, match="id"):
            client.summarize([Message(role="user", content="x")], max_tokens=200, max_summary_tokens=50)

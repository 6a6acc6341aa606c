"""memctl erase and observe off: shown, asked, also out of what hooks have not sent yet."""

from pathlib import Path
from typing import Any

import pytest

from memoryd.client.agents.hooks import spool

Memctl = Any
SAID = [
    {"role": "user", "content": "We decided that the vault is behind the painting.", "id": "ab" * 16},
    {"role": "assistant", "content": "Noted: the vault is behind the painting.", "id": "cd" * 16},
]


def test_it_asks_shows_and_erases(memctl: Memctl, client: Any) -> None:
    client.observe(SAID, session="work-1")
    kept = client.add("Herons fish at dawn").id
    assert memctl("erase").code == 2
    refused = memctl("erase", "abab")
    assert (refused.code, "cannot be undone" in refused.err) == (2, True)
    assert memctl("erase", "--session", "work-1", "--dry-run", "--json").json["count"] == 2
    told = memctl("erase", kept[:8], "--dry-run").out
    assert told == f"{kept[:8]}  Herons fish at dawn\n"
    assert "Erased 2 memories." in memctl("erase", "--session", "work-1", "--yes").out
    assert [memory["id"] for memory in memctl("list", "--json").json] == [kept]
    assert memctl("erase", "--where", "nothing=here", "--yes").out.startswith("Nothing is to be erased")


def test_all_that_mentions_a_word_is_shown_and_erased(memctl: Memctl, client: Any) -> None:
    client.observe(SAID, session="work-1")
    kept = client.add("Herons fish at dawn").id
    shown = memctl("erase", "--matching", "VAULT", "--dry-run").out
    assert "abababab  We decided that the vault is behind the painting." in shown
    assert "Erased 2 memories." in memctl("erase", "--matching", "vault", "--yes").out
    assert [memory["id"] for memory in memctl("list", "--json").json] == [kept]
    assert memctl("erase", "--matching", "vault").out.startswith("Nothing is to be erased")
    assert memctl("erase", "--matching", "").code == 1


def test_observing_is_paused_shown_and_resumed(memctl: Memctl, client: Any, folder: Path) -> None:
    assert memctl("observe", "status").out == "Everything is observed.\n"
    assert "folder" in memctl("observe", "off", "--folder", str(folder)).out
    assert memctl("observe", "off", "--session", "s1", "--json").json["pauses"][-1]["name"] == "s1"
    assert memctl("observe", "We decided to ship on Monday", "--session", "s1", "--json").json["accepted"] == 0
    assert memctl("observe", "We decided to ship on Monday", "--folder", str(folder)).code == 2
    memctl("observe", "on", "--session", "s1")
    assert memctl("observe", "We decided to ship on Monday", "--session", "s1", "--json").json["accepted"] == 1


def test_what_waits_to_be_sent_is_erased_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYD_DATA_DIR", str(folder))
    call = {"method": "observe", "turns": SAID, "session": "work-1"}
    for one in (call, {**call, "turns": SAID[:1], "session": "work-2"}, {"method": "end_session", "session": "work-3"}):
        assert spool.append(one)
    spool.erase({"ab" * 16}, "work-3")
    assert spool.count_waiting() == 1
    assert b"We decided" not in (folder / "hooks.spool").read_bytes()
    assert b"Noted" in (folder / "hooks.spool").read_bytes()
    spool.erase(set(), "work-1")
    assert (folder / "hooks.spool").read_bytes() == b""


def test_what_waits_to_be_sent_and_mentions_a_text_is_erased_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYD_DATA_DIR", str(folder))
    assert spool.append({"method": "observe", "turns": [*SAID, {"role": "user", "content": "Herons"}], "session": "s"})
    spool.erase(set(), None, "The VAULT")
    assert b"vault" not in (folder / "hooks.spool").read_bytes()
    assert b"Herons" in (folder / "hooks.spool").read_bytes()

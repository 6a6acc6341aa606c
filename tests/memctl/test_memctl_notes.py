"""remember, flush and forget: what they print for people and programs, with a real daemon."""

import io
import sys
from pathlib import Path
from typing import Any

import pytest
from fake_daemon import Memctl

from each import each


@pytest.fixture
def notes(daemon: Any, memctl: Memctl, folder: Path) -> Path:
    root = folder / "notes"
    (root / "memory").mkdir(parents=True)
    (root / "memory" / "birds.md").write_text("# Birds\n\n- Herons stand still.\n- Egrets are white.\n")
    assert memctl("workspace", "add", str(root)).code == 0
    return root


def test_a_note_is_written_told_and_found(memctl: Memctl, notes: Path) -> None:
    out = memctl("remember", "Storks clatter", "--workspace", "notes", "--file", "birds").out
    path = notes / "memory/birds.md"
    assert out.startswith(f"Written: {path}:5 (")
    assert path.read_text().endswith("- Egrets are white.\n- Storks clatter\n")
    [hit] = memctl("search", "storks clatter", "--limit", "1", "--json").json
    assert hit["id"] in out
    assert hit["path"] == str(path)


def test_here_is_the_workspace_and_today_the_file(memctl: Memctl, notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(notes / "memory")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Ibises probe\nthe mud\n")))
    told = memctl("remember", "-", "--json").json
    assert told["path"] == f"{notes}/memory/2027-01-15.md"
    assert (told["start_line"], told["end_line"]) == (1, 2)
    assert Path(told["path"]).read_text() == "- Ibises probe\n  the mud\n"
    assert memctl("remember", "x", "--file", "./birds.md").out.startswith("Written: birds.md:5 ")
    monkeypatch.chdir("/")
    assert "There is no workspace" in memctl("remember", "x").err
    assert memctl("remember", "x", "--workspace", "notes", "--file", "../x.md").code == 1


def test_forget_shows_what_it_takes_out(memctl: Memctl, notes: Path) -> None:
    [hit] = memctl("search", "herons", "--limit", "1", "--json").json
    path = notes / "memory/birds.md"
    before = path.read_text()
    shown = memctl("forget", hit["id"], "--text", "Herons", "--dry-run").out
    assert shown == f"Would remove from {path}:3\n- - Herons stand still.\n"
    assert path.read_text() == before
    assert memctl("forget", hit["id"], "--text", "Herons").out == shown.replace("Would remove", "Removed")
    assert "Herons" not in path.read_text()
    [hit] = memctl("search", "egrets", "--limit", "1", "--json").json
    gone = memctl("forget", hit["id"][:8], "--lines", "3", "--json").json
    assert gone["removed"][0]["text"] == "\n- Egrets are white.\n"
    assert path.read_text() == "# Birds\n"


def test_forget_deletes_what_is_of_no_file(memctl: Memctl, notes: Path) -> None:
    added = memctl("add", "Cranes dance", "--json").json
    assert memctl("forget", added["id"], "--dry-run").out == "Would delete 1 memory.\n"
    assert memctl("forget", added["id"]).out.startswith("Deleted 1 memory; `memctl undo ")
    assert memctl("undo").code == 0
    assert memctl("get", added["id"]).code == 0


@each(
    ("words", "code"),
    [
        (("forget", "dead"), 1),
        (("forget", "dead", "--lines", "0"), 2),
        (("forget", "dead", "--lines", "5-x"), 2),
        (("forget", "dead", "--lines", "5-4"), 1),
        (("forget", "dead", "--lines", "1", "--text", "x"), 2),
        (("forget",), 2),
        (("remember", " "), 1),
    ],
)
def test_wrong_usage_is_one_sentence(memctl: Memctl, notes: Path, words: tuple[str, ...], code: int) -> None:
    found = memctl(*words)
    assert found.out == ""
    assert found.code == code


def test_a_part_of_a_file_is_not_deleted_but_forgotten(memctl: Memctl, notes: Path) -> None:
    [hit] = memctl("search", "herons", "--limit", "1", "--json").json
    for words in (("delete", hit["id"]), ("update", hit["id"], "--content", "x"), ("tag", hit["id"], "x")):
        refused = memctl(*words)
        assert (refused.code, f"memctl forget {hit['id'][:8]}" in refused.err) == (1, True)

"""memctl workspace: what it prints for people and programs, with a real daemon."""

import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest
from fake_daemon import Memctl

from each import each
from memoryd.client.protocol.workspaces import IndexedWorkspace
from waiting import wait_until


@pytest.fixture
def notes(folder: Path) -> Path:
    root = folder / "notes"
    (root / "memory").mkdir(parents=True)
    (root / "memory" / "birds.md").write_text("# Birds\n\nHerons stand still.\n")
    (root / "MEMORY.md").write_text("See [[birds]].\n")
    return root


def test_add_indexes_at_once_and_list_shows_it(daemon: Any, memctl: Memctl, notes: Path) -> None:
    added = memctl("workspace", "add", str(notes))
    assert added.code == 0
    assert f"Added {notes} as notes; it is watched." in added.out
    assert "Indexed 2 files as 2 chunks (" in added.out
    wait_until(lambda: " inotify " in memctl("workspace").out)
    listed = memctl("workspace").out.splitlines()
    assert listed[0].split() == ["NAMESPACE", "WATCHED", "BY", "FILES", "CHUNKS", "FOLDER"]
    assert listed[1].split() == ["notes", "inotify", "2", "2", str(notes)]
    assert json.loads(memctl("search", "herons", "--json").out)[0]["path"] == str(notes / "memory/birds.md")


def test_a_hidden_folder_memory_of_a_project_is_a_workspace_with_all_its_notes(
    daemon: Any, memctl: Memctl, folder: Path
) -> None:
    root = folder / "shop/.claude/memory"
    root.mkdir(parents=True)
    (folder / "shop/.git").mkdir()
    (root / "MEMORY.md").write_text("- [Deploys](deploys.md)\n")
    (root / "deploys.md").write_text("---\ntype: feedback\n---\nNobody deploys on a Friday.\n")
    added = memctl("workspace", "add", str(root))
    assert f"Added {root} as shop; it is watched.\nIndexed 2 files as 2 chunks (" in added.out
    assert memctl("search", "who deploys on friday", "--json").json[0]["type"] == "feedback"


def test_status_says_what_is_watched_and_what_is_wrong(daemon: Any, memctl: Memctl, notes: Path) -> None:
    (notes / "memory" / "bad.md").write_bytes(b"fine\nbro\xffken\n")
    memctl("workspace", "add", str(notes))
    wait_until(lambda: "inotify" in memctl("workspace", "status", "notes").out)
    out = memctl("workspace", "status", "notes").out
    assert "3 files" in out
    assert "inotify, 2 watches" in out
    assert "1 problem:" in out
    assert "memory/bad.md: " in out
    assert max(map(len, out.splitlines())) <= 100
    status = json.loads(memctl("workspace", "status", "notes", "--json").out)
    assert [problem["path"] for problem in status["problems"]] == ["memory/bad.md"]
    assert status["indexed_at"].endswith("Z")
    assert isinstance(json.loads(memctl("workspace", "status", "--json").out), list)


def test_status_lists_files_and_says_which_the_index_has_not_followed(daemon: Any, memctl: Memctl, notes: Path) -> None:
    memctl("workspace", "add", str(notes))
    wait_until(lambda: "inotify" in memctl("workspace", "status").out)  # before it has begun it is off as well
    assert "not followed" not in memctl("workspace", "status", "notes").out
    daemon.core.background.stopping.set()  # nobody watches from here on
    wait_until(lambda: "off" in memctl("workspace", "status").out)
    daemon.core.background.stopping.clear()
    (notes / "memory" / "birds.md").write_text("# Birds\n\nHerons run, and cranes dance.\n")
    (notes / "memory" / "fish.md").write_text("Pike\n")
    (notes / "MEMORY.md").unlink()
    out = memctl("workspace", "status", "notes", "--files").out
    head, *differing, table, memory, birds = out.splitlines()[-7:]
    assert head.strip() == "3 files changed and not indexed again yet:"
    assert [line.strip() for line in differing] == [
        "MEMORY.md: It no longer exists, or is excluded now.",
        "memory/birds.md: It has changed since it was read.",
        "memory/fish.md: It is not in the index yet.",
    ]
    assert table.split() == ["FILE", "CHUNKS", "CHANGED", "PROBLEM"]
    assert [line.split()[:2] for line in (memory, birds)] == [["MEMORY.md", "1"], ["memory/birds.md", "1"]]


def test_index_counts_and_force_reads_all(daemon: Any, memctl: Memctl, notes: Path) -> None:
    memctl("workspace", "add", str(notes))
    [done] = json.loads(memctl("workspace", "index", "notes", "--json").out)
    assert (done["scanned"], done["unchanged"], done["indexed"]) == (2, 2, 0)
    [forced] = json.loads(memctl("workspace", "index", "--force", "--json").out)
    assert (forced["read"], forced["chunks_new"], forced["chunks_kept"]) == (2, 0, 2)
    assert set(forced) == set(IndexedWorkspace.__struct_fields__)


def test_remove_forgets_the_index_and_leaves_the_files(daemon: Any, memctl: Memctl, notes: Path) -> None:
    memctl("workspace", "add", str(notes))
    assert "2 chunks removed" in memctl("workspace", "remove", "notes").out
    assert memctl("workspace").out.startswith("No workspaces")
    assert json.loads(memctl("search", "herons", "--json").out) == []
    assert (notes / "MEMORY.md").exists()


@each(
    ("words", "says"),
    [
        (("add", "nowhere"), "does not exist"),
        (("add", "/etc/passwd"), "is not a folder"),
        (("add", "/"), "--namespace"),
        (("add", "notes", "--glob", "../*.md"), "pattern"),
        (("remove", "nothing"), "There is no workspace 'nothing'"),
        (("status", "/nowhere"), "There is no workspace"),
        (("index", "nothing"), "There is no workspace"),
    ],
)
def test_bad_input_is_one_sentence(
    daemon: Any, memctl: Memctl, notes: Path, words: tuple[str, ...], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(notes.parent)
    failed = memctl("workspace", *words)
    assert failed.code == 1
    assert says in failed.err
    assert len(failed.err.splitlines()) == 1
    assert failed.out == ""
    assert memctl("workspace").out.startswith("No workspaces")


def test_a_folder_that_is_gone_is_told_and_the_others_are_indexed(daemon: Any, memctl: Memctl, notes: Path) -> None:
    other = notes.with_name("other")
    (other / "memory").mkdir(parents=True)
    memctl("workspace", "add", str(notes))
    memctl("workspace", "add", str(other))
    os.rename(notes, notes.with_name("moved"))
    failed = memctl("workspace", "index", "--json")
    assert failed.code == 1
    assert failed.err == "memctl: not indexed: notes\n"
    problems = {one["namespace"]: one["problem"] for one in json.loads(failed.out)}
    assert "cannot be read" in problems["notes"]
    assert problems["other"] == ""


def test_what_no_pattern_names_is_said_with_the_way_to_index_it(daemon: Any, memctl: Memctl, folder: Path) -> None:
    (folder / "plans" / "memory").mkdir(parents=True)
    (folder / "plans" / "bees.md").write_text("Bees dance.\n")
    command = f"memctl workspace add {folder}/plans --glob '**/*.md'"
    assert memctl("workspace", "add", f"{folder}/plans").out.splitlines()[-1] == (
        f"Its patterns are MEMORY.md, memory/**/*.md; `{command}` indexes the others too."
    )
    assert "--glob gives it other patterns" in memctl("workspace", "add", f"{folder}/plans").err
    assert "Indexed 1 file as 1 chunk" in memctl(*shlex.split(command)[1:]).out

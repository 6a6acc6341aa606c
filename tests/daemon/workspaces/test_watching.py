"""Watching: whatever way a file is saved, moved or removed, the index follows, and reads only what changed."""

import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from notes import Watched, sections, write

from memoryd.daemon.workspaces import indexing, registry
from memoryd.daemon.workspaces.tables.workspaces import StoredWorkspace
from workbench import wait_until

CHUNKS = 100


def by_vim(path: Path, old: str, new: str) -> None:
    if shutil.which("vim") is None:
        pytest.skip("vim is not installed")
    subprocess.run(["vim", "-es", "-u", "NONE", "-c", f"%s/{old}/{new}/", "-c", "wq", path], check=True)


def by_vim_with_a_backup(path: Path, old: str, new: str) -> None:
    if shutil.which("vim") is None:
        pytest.skip("vim is not installed")
    options = ["-c", "set backup writebackup backupcopy=no"]
    subprocess.run(["vim", "-es", "-u", "NONE", *options, "-c", f"%s/{old}/{new}/", "-c", "wq", path], check=True)


def by_sed(path: Path, old: str, new: str) -> None:
    subprocess.run(["sed", "-i", f"s/{old}/{new}/", path], check=True)


def by_nano(path: Path, old: str, new: str) -> None:
    """Save as nano does: a lock file, then the file itself truncated and written."""
    lock = path.with_name(f".{path.name}.swp")
    lock.write_bytes(b"b0nano")
    text = path.read_text().replace(old, new)
    with path.open("w") as file:
        file.write(text)
    lock.unlink()


def by_a_temporary_file(path: Path, old: str, new: str) -> None:
    other = path.with_name(f"{path.name}.tmp~")
    other.write_text(path.read_text().replace(old, new))
    other.replace(path)


def by_a_backup_first(path: Path, old: str, new: str) -> None:
    backup = path.with_name(f"{path.name}~")
    path.rename(backup)
    path.write_text(backup.read_text().replace(old, new))


SAVES = (by_vim, by_vim_with_a_backup, by_sed, by_nano, by_a_temporary_file, by_a_backup_first)


@pytest.mark.parametrize("save", [*SAVES[:2], *(pytest.param(save, marks=pytest.mark.slow) for save in SAVES[2:])])
def test_an_edit_is_found_embeds_at_most_two_chunks_and_what_it_replaced_is_not_found(
    watched: Watched, root: Path, save: Callable[[Path, str, str], None]
) -> None:
    path = write(root, "memory/long.md", sections(CHUNKS, changed=70, word="walrus"))
    watched.add(root)
    assert watched.finds("walrus", "walrus")
    watched.embedder.texts.clear()
    save(path, "walrus", "okapi")
    wait_until(lambda: watched.finds("okapi", "okapi"))
    wait_until(lambda: not watched.finds("walrus", "walrus"))
    wait_until(lambda: bool(watched.embedder.texts))  # found by its words, it may not be queued for a vector yet
    watched.settle()
    assert 1 <= len(watched.embedder.texts) <= 2
    assert watched.paths() == {str(path)}


def git(root: Path, *words: str) -> None:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}
    names = ("-c", "user.name=Nobody", "-c", "user.email=nobody@example.org")
    subprocess.run(["git", *names, "-C", root, *words], check=True, capture_output=True, env=environment)


def test_a_checkout_of_another_branch_is_followed_both_ways(watched: Watched, root: Path) -> None:
    path = write(root, "memory/long.md", sections(CHUNKS, changed=30, word="walrus"))
    git(root, "init", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-m", "one")
    git(root, "checkout", "-b", "other")
    path.write_text(sections(CHUNKS, changed=30, word="okapi"))
    write(root, "memory/more/new.md", "A quokka smiles.\n")
    git(root, "add", ".")
    git(root, "commit", "-m", "two")
    git(root, "checkout", "main")
    watched.add(root)
    watched.embedder.texts.clear()
    git(root, "checkout", "other")
    wait_until(lambda: watched.finds("okapi", "okapi") and watched.finds("quokka", "quokka"))
    wait_until(lambda: not watched.finds("walrus", "walrus"))
    watched.settle()
    assert len(watched.embedder.texts) <= 3
    watched.embedder.texts.clear()
    git(root, "checkout", "main")
    wait_until(lambda: watched.finds("walrus", "walrus") and watched.paths() == {str(path)})
    watched.settle()
    assert watched.embedder.texts == []


@pytest.mark.slow
def test_a_burst_of_600_files_is_a_few_passes(watched: Watched, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[StoredWorkspace] = []
    index = indexing.index

    def counted(core: Any, workspace: StoredWorkspace, **options: Any) -> Any:
        passes.append(workspace)
        return index(core, workspace, **options)

    for n in range(600):
        write(root, f"memory/{n % 20}/{n}.md", f"Note {n}.\n")
    git(root, "init", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-m", "one")
    git(root, "rm", "-r", "-q", "memory")
    git(root, "commit", "-m", "none")
    workspace = watched.add(root)
    assert watched.status(workspace).files == 0
    monkeypatch.setattr(indexing, "index", counted)
    git(root, "checkout", "HEAD~1")
    wait_until(lambda: watched.status(workspace).files == 600)
    assert len(passes) <= 12
    git(root, "checkout", "main")
    wait_until(lambda: watched.status(workspace).files == 0)
    assert len(passes) <= 24


def test_moving_a_file_or_a_folder_costs_no_embedding_and_keeps_ids(watched: Watched, root: Path) -> None:
    path = write(root, "memory/a.md", sections(20, changed=3, word="walrus"))
    watched.add(root)
    ids = watched.ids()
    watched.embedder.texts.clear()
    moved = path.with_name("b.md")
    path.rename(moved)
    wait_until(lambda: watched.paths() == {str(moved)})
    inner = root / "memory" / "inner"
    inner.mkdir()
    moved.rename(inner / "b.md")
    wait_until(lambda: watched.paths() == {str(inner / "b.md")})
    inner.rename(root / "memory" / "other")
    wait_until(lambda: watched.paths() == {str(root / "memory/other/b.md")})
    assert watched.ids() == ids
    (root / "memory").rename(root / "elsewhere")
    wait_until(lambda: watched.paths() == set())
    (root / "elsewhere").rename(root / "memory")
    wait_until(lambda: watched.paths() == {str(root / "memory/other/b.md")})
    watched.settle()
    assert watched.embedder.texts == []


def test_only_folders_that_the_globs_lead_into_are_watched(watched: Watched, root: Path) -> None:
    for n in range(50):
        (root / "node_modules" / f"{n}").mkdir(parents=True)
    write(root, "memory/a.md", "one\n")
    write(root, "memory/inner/b.md", "two\n")
    status = watched.status(watched.add(root))
    assert (status.watching, status.watches) == ("inotify", 3)


def test_an_ignore_file_that_changes_is_heeded(watched: Watched, root: Path) -> None:
    write(root, "memory/a.md", "A walrus.\n")
    watched.add(root)
    write(root, "memory/.gitignore", "a.md\n")
    wait_until(lambda: not watched.finds("walrus", "walrus"))
    (root / "memory/.gitignore").unlink()
    wait_until(lambda: watched.finds("walrus", "walrus"))


def test_swap_and_backup_files_are_no_memories(watched: Watched, root: Path) -> None:
    watched.add(root)
    for name in (".a.md.swp", "a.md~", "#a.md#", ".#a.md", "4913", ".a.md.kate-swp", "a.md.bak"):
        write(root, f"memory/{name}", "A walrus.\n")
    write(root, "memory/real.md", "An okapi.\n")
    wait_until(lambda: watched.finds("okapi", "okapi"))
    assert watched.paths() == {str(root / "memory/real.md")}


@pytest.mark.slow
def test_a_folder_that_disappears_keeps_its_index_and_is_read_when_it_is_back(watched: Watched, root: Path) -> None:
    write(root, "memory/a.md", "A walrus.\n")
    workspace = watched.add(root)
    away = root.with_name("away")
    root.rename(away)
    wait_until(lambda: watched.status(workspace).watching == "gone")
    assert "cannot be read" in watched.status(workspace).reason
    assert watched.finds("walrus", "walrus")
    (away / "memory/a.md").write_text("An okapi.\n")
    away.rename(root)
    wait_until(lambda: watched.finds("okapi", "okapi"))
    wait_until(lambda: watched.status(workspace).watching == "inotify")
    write(root, "memory/b.md", "A quokka.\n")
    wait_until(lambda: watched.finds("quokka", "quokka"))


@pytest.fixture
def mounted(root: Path) -> Iterator[Callable[[bool], None]]:
    """Mount a file system of its own on the folder, or take it away."""

    def change(on: bool) -> None:
        command = ["mount", "-t", "tmpfs", "notes", root] if on else ["umount", "-l", root]
        if subprocess.run(command, capture_output=True).returncode:
            pytest.skip("this user may not mount")

    change(True)
    yield change
    subprocess.run(["umount", "-l", root], capture_output=True)


@pytest.mark.slow
def test_an_unmounted_disk_does_not_empty_the_index(
    watched: Watched, root: Path, mounted: Callable[[bool], None]
) -> None:
    write(root, "memory/a.md", "A walrus.\n")
    workspace = watched.add(root)
    mounted(False)
    wait_until(lambda: watched.status(workspace).watching == "gone")
    assert "not mounted" in watched.status(workspace).reason
    with pytest.raises(indexing.Gone):
        indexing.reindex(watched.core, workspace, ["memory/a.md"])
    assert watched.finds("walrus", "walrus")
    mounted(True)
    write(root, "memory/b.md", "An okapi.\n")
    wait_until(lambda: watched.finds("okapi", "okapi") and not watched.finds("walrus", "walrus"))


def test_a_workspace_that_fails_does_not_keep_the_others_from_being_watched(
    watched: Watched, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = root.with_name("other")
    other.mkdir()
    index = indexing.index

    def fails(core: Any, workspace: StoredWorkspace, **options: Any) -> Any:
        if workspace.namespace == "other":
            raise RuntimeError("broken")
        return index(core, workspace, **options)

    monkeypatch.setattr(indexing, "index", fails)
    broken = registry.add(watched.core, str(other), None, ())
    watched.add(root)
    wait_until(lambda: "broken" in watched.status(broken).reason)
    write(root, "memory/a.md", "A walrus.\n")
    wait_until(lambda: watched.finds("walrus", "walrus"))


def test_a_removed_workspace_is_not_watched_any_more(watched: Watched, root: Path) -> None:
    watched.add(root)
    registry.remove(watched.core, "notes")
    name = "workspace-1"
    wait_until(lambda: all(thread.name != name for thread in threading.enumerate()))
    write(root, "memory/a.md", "A walrus.\n")
    again = watched.add(root)
    assert watched.status(again).files == 1

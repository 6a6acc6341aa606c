"""A copy that somebody else made: its workspaces are not watched here. A rescue: what files lost is read again."""

import os
import shutil
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from memoryd.daemon.store.store import FILE_NAME
from memoryd.daemon.upkeep import rescue
from memoryd.daemon.workspaces import indexing, registry
from memoryd.daemon.workspaces.tables import workspaces
from workbench import CountingEmbedder, running


@pytest.mark.parametrize("in_force", [True, False])
def test_a_workspace_of_a_restored_copy_is_left_out_unless_it_is_in_force_here(
    folder: Path, root: Path, in_force: bool
) -> None:
    with running(folder, CountingEmbedder()) as core:
        if in_force:
            registry.add(core, str(root), "docs", ())
    copy, restored, former = folder / "copy.sqlite", folder / "restored", folder / "data" / FILE_NAME
    shutil.copy(former, copy)
    restored.mkdir()
    if not in_force:
        with closing(apsw.Connection(str(copy))) as connection:
            connection.execute(
                "INSERT INTO workspaces (namespace, root, globs, device, created_at) VALUES ('docs', ?, '', 0, 1)",
                (str(root),),
            )
    found = rescue.restore(copy, restored, former)
    assert found.left_out["workspaces"] == ({} if in_force else {str(root): "docs"})
    with closing(apsw.Connection(str(restored / FILE_NAME))) as opened:
        assert opened.execute("SELECT count(*) FROM workspaces").get == int(in_force)


def test_a_workspace_of_here_that_the_copy_does_not_know_stays_while_its_folder_is_there(
    folder: Path, root: Path
) -> None:
    with running(folder, CountingEmbedder()) as core:
        copy, former = folder / "copy.sqlite", folder / "data" / FILE_NAME
        shutil.copy(former, copy)
        (folder / "gone").mkdir()
        for path, name in ((root, "docs"), (folder / "gone", "gone")):
            registry.add(core, str(path), name, ())
        (folder / "gone").rmdir()
    (folder / "restored").mkdir()
    assert rescue.restore(copy, folder / "restored", former).left_out["workspaces"] == {}
    with closing(apsw.Connection(str(folder / "restored" / FILE_NAME))) as opened:
        assert opened.execute("SELECT root, namespace FROM workspaces").fetchall() == [(str(root), "docs")]


def test_a_workspace_that_was_moved_and_is_indexed_here_is_not_to_be_added(folder: Path, root: Path) -> None:
    copy, former = folder / "copy.sqlite", folder / "data" / FILE_NAME
    with running(folder, CountingEmbedder()) as core:
        registry.add(core, str(root), "docs", ())
    shutil.copy(former, copy)
    with running(folder, CountingEmbedder()) as core:
        registry.remove(core, "docs")
        registry.add(core, str(root.rename(folder / "moved")), "docs", ())
    (folder / "restored").mkdir()
    assert rescue.restore(copy, folder / "restored", former).left_out["workspaces"] == {}


def index(folder: Path, root: Path) -> int:
    """Index a workspace and return how many chunks it has then."""
    with running(folder, CountingEmbedder()) as core:
        with core.store.reading() as connection:
            known = workspaces.list_all(connection)
        [workspace] = known or [registry.add(core, str(root), "docs", ())]
        indexing.index(core, workspace)
        with core.store.reading() as connection:
            return workspaces.count_indexed(connection, workspace).chunks


def test_the_chunks_of_a_workspace_that_is_left_out_are_told(folder: Path, root: Path) -> None:
    (root / "MEMORY.md").write_text("# Birds\n\nHerons stand still.\n")
    assert index(folder, root) == 1
    (folder / "restored").mkdir()
    assert rescue.restore(folder / "data" / FILE_NAME, folder / "restored").left_out["chunks"] == 1


def test_files_whose_chunks_could_not_be_read_are_indexed_again(folder: Path, root: Path) -> None:
    (root / "MEMORY.md").write_text("# Birds\n\nHerons stand still.\n")
    os.utime(root / "MEMORY.md", (1e9, 1e9))  # a file that was just written is read again in any case
    assert index(folder, root) == 1
    with closing(apsw.Connection(str(folder / "data" / FILE_NAME))) as connection:
        connection.pragma("foreign_keys", True)
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        connection.execute("DELETE FROM memories")
    (folder / "rescued" / "data").mkdir(parents=True)
    rescue.recover(folder / "data" / FILE_NAME, folder / "rescued" / "data")
    assert index(folder / "rescued", root) == 1

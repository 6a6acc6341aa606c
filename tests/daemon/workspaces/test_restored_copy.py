"""A copy that somebody else made: its workspaces are not watched here."""

import shutil
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from memoryd.daemon.store import rescue
from memoryd.daemon.store.store import FILE_NAME
from memoryd.daemon.workspaces import registry
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
    assert found.left_out["workspaces"] == ([] if in_force else [f"{root} (docs)"])
    with closing(apsw.Connection(str(restored / FILE_NAME))) as opened:
        assert opened.execute("SELECT count(*) FROM workspaces").get == int(in_force)

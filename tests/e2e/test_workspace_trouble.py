"""Workspaces on a machine that says no: folders without permission, a read-only disk, no watches. With the real daemon.

The daemon is put into a user namespace of its own, where permissions hold also for root, limits can be set and disks
mounted, without touching the machine's.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memoryd.client import Client, Conflict, Invalid
from memoryd.client.protocol.workspaces import Workspace
from workbench import Process, wait_until

CONFIG = '[model]\nname = "none"\nfetch = false\n'
NOBODY = ["unshare", "-U", "--map-user=1000", "--map-group=1000"]


def within(*commands: str) -> list[str]:
    """Return the beginning of a command line that runs commands in namespaces of their own first."""
    return ["unshare", "-U", "-r", "-m", "sh", "-ec", "; ".join([*commands, 'exec "$@"']), "sh"]


@pytest.fixture
def start(folder: Path) -> Iterator[Callable[[list[str]], Any]]:
    """Start a daemon behind the beginning of a command line; skip where the machine does not allow that."""
    process = Process(folder, CONFIG, constants={"daemon.workspaces.watching.SCAN_EVERY_S": 0.1})

    def begin(prefix: list[str]) -> Any:
        if shutil.which(prefix[0]) is None or subprocess.run([*prefix, "true"], capture_output=True).returncode:
            pytest.skip("this machine does not allow it")
        with (folder / "log").open("ab") as log:
            command = [*prefix, sys.executable, *process.program]
            process.child = subprocess.Popen(command, env=process.environment, stderr=log, stdout=log)
        wait_until(process._answers)
        return process

    yield begin
    for path in (folder / "notes").rglob("*"):
        if not path.is_symlink():
            path.chmod(0o700)
    process.stop()


@pytest.fixture
def root(folder: Path) -> Path:
    made = folder / "notes"
    (made / "memory").mkdir(parents=True)
    (made / "memory" / "a.md").write_text("A walrus.\n")
    return made


def finds(client: Client, word: str) -> bool:
    return any(word in hit.content for hit in client.search(word))


def problems(status: Workspace) -> dict[str, str]:
    return {problem.path: problem.problem for problem in status.problems}


@pytest.mark.slow
def test_a_folder_without_permission_is_refused(start: Callable[[list[str]], Any], root: Path) -> None:
    with start(NOBODY).client() as client:
        root.chmod(0)
        try:
            with pytest.raises(Invalid, match="cannot be read: Permission denied"):
                client.add_workspace(root)
        finally:
            root.chmod(0o700)
        assert len(client.workspaces()) == 0


@pytest.mark.slow
def test_files_and_folders_without_permission_are_told_and_the_rest_is_indexed(
    start: Callable[[list[str]], Any], root: Path
) -> None:
    secret, closed = root / "memory" / "secret.md", root / "memory" / "closed"
    secret.write_text("An okapi.\n")
    closed.mkdir()
    (closed / "b.md").write_text("A quokka.\n")
    secret.chmod(0)
    closed.chmod(0)
    with start(NOBODY).client() as client:
        client.add_workspace(root)
        client.index_workspace("notes")
        assert finds(client, "walrus")
        assert not finds(client, "okapi")
        told = problems(client.workspaces("notes").workspaces[0])
        assert told.keys() == {"memory/secret.md", "memory/closed"}
        assert all("Permission denied" in problem for problem in told.values())
        secret.chmod(0o600)
        closed.chmod(0o700)
        client.index_workspace("notes")
        assert finds(client, "okapi")
        assert finds(client, "quokka")
        assert problems(client.workspaces("notes").workspaces[0]) == {}


def test_a_read_only_disk_is_indexed(start: Callable[[list[str]], Any], root: Path) -> None:
    process = start(within(f"mount --bind {root} {root}", f"mount -o remount,bind,ro {root}"))
    with process.client() as client:
        client.add_workspace(root)
        client.index_workspace("notes")
        assert finds(client, "walrus")
        assert problems(client.workspaces("notes").workspaces[0]) == {}
    assert [path.name for path in (root / "memory").iterdir()] == ["a.md"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limit", "says"), [("max_inotify_watches", "max_user_watches"), ("max_inotify_instances", "max_user_instances")]
)
def test_used_up_watches_are_told_and_the_folder_is_scanned(
    start: Callable[[list[str]], Any], folder: Path, root: Path, limit: str, says: str
) -> None:
    with start(within(f"echo 0 > /proc/sys/user/{limit}")).client() as client:
        client.add_workspace(root)
        wait_until(lambda: client.workspaces("notes").workspaces[0].watching == "scanning")
        assert says in client.workspaces("notes").workspaces[0].reason
        (root / "memory" / "b.md").write_text("An okapi.\n")
        wait_until(lambda: finds(client, "okapi"))
        (root / "memory" / "a.md").unlink()
        wait_until(lambda: not finds(client, "walrus"))
    assert says in (folder / "log").read_text()


def test_a_root_given_through_a_link_is_the_folder_itself(client: Client, root: Path) -> None:
    link = root.parent / "link"
    link.symlink_to(root)
    round_ = root.parent / "round"
    round_.symlink_to(round_)
    added = client.add_workspace(link)
    assert (added.root, added.namespace) == (str(root), "notes")
    with pytest.raises(Conflict, match="already"):
        client.add_workspace(root)
    with pytest.raises(Invalid, match="symbolic links"):
        client.add_workspace(round_)

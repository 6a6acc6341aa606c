"""Files of workspaces in a daemon: told to followers, within the limit of size, without credentials; its child."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from memoryd.client import Client, StorageFull
from memoryd.client.protocol import NewMemory
from waiting import wait_until
from workbench import Daemon, Process

TOKEN = "".join(("gh", "p_", "q7Rt2ZkP9wXc4VbN8mLs3HdJ6gFy1TaE5uKo"))
TEXT = f"The deploy pushes with {TOKEN} to the mirror of the payments service."
CLEAN = "The deploy pushes with [secret: GitHub token] to the mirror of the payments service."


def test_files_of_a_workspace_are_told_when_they_are_indexed(client: Client, root: Path) -> None:
    (root / "MEMORY.md").write_text("# Rules\n\nDeploys are on Tuesdays.\n")
    with client.subscribe("indexed") as followed:
        client.add_workspace(root, namespace="notes")
        event = next(followed)
        assert (event.namespace, event.tier, event.text) == ("notes", "documents", str(root / "MEMORY.md"))
        client.search("deploys")
        followed._connection.wait_at_most(0.3)
        assert list(followed) == []  # to be found is no change


def fill(client: Client) -> None:
    with suppress(StorageFull):
        while True:
            client.add_many([NewMemory(content=f"heron {n} {'-' * 3000}") for n in range(20)], dedup=False)


@pytest.mark.slow
def test_workspaces_at_the_limit_take_in_what_is_shorter_and_nothing_that_is_longer(
    start_daemon: Callable[..., "Daemon"], tmp_path: Path
) -> None:
    note = tmp_path / "birds.md"
    note.write_text("# Herons\n\nThe grey heron fishes at dawn.\n\n# Storks\n\nStorks nest on roofs.\n")
    daemon = start_daemon(storage={"max_size_mb": 2})
    with daemon.client() as client:
        client.add_workspace(str(tmp_path), namespace="birds", globs="*.md")
        client.index_workspace("birds")
        fill(client)
        longer = tmp_path / "more.md"
        longer.write_text("Egrets are white.\n")
        assert client.run_job("workspaces").counts == {"failed": 1}
        assert client.list(path_prefix=str(longer)).total == 0
        longer.unlink()
        [storks] = [part for part in client.list(path_prefix=str(note)) if "nest" in part.content]
        client.forget(storks.id)
        assert "nest" not in note.read_text()
        assert not [part for part in client.list(path_prefix=str(note)) if "nest" in part.content]
        client.remove_workspace("birds")
        assert client.list(path_prefix=str(note)).total == 0


# Credentials ---------------------------------------------------------------------------------------------------------


def holding(folder: Path) -> list[Path]:
    """Return the files below a folder whose bytes have the token in them."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_socket()]
    return [path for path in files if TOKEN.encode() in path.read_bytes()]


def test_what_is_remembered_is_written_without_credentials(daemon: "Daemon", client: Client, root: Path) -> None:
    client.add_workspace(root, namespace="notes")
    told = [client.remember(TEXT, "notes"), client.remember(f"Once more. {TEXT}", "notes", file="MEMORY.md")]
    assert [reply.redacted for reply in told] == [{"GitHub token": 1}] * 2
    assert CLEAN in (root / "MEMORY.md").read_text()
    assert holding(root) == []
    assert holding(daemon.core.folder) == []


def test_files_keep_their_credentials_and_the_index_has_none(daemon: "Daemon", client: Client, root: Path) -> None:
    key = "-----BEGIN RSA " + "PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n" * 60
    (root / "MEMORY.md").write_text(
        f"# Deploys\n\n{TEXT}\n\n# Key\n\n{key}-----END RSA PRIVATE KEY-----\n\n# After\n\nThe harbour opens at nine.\n"
    )
    client.add_workspace(root, namespace="notes")
    wait_until(lambda: bool(client.list(tier="documents").total))
    chunks = client.list(tier="documents", limit=100).memories
    assert any(CLEAN in chunk.content for chunk in chunks)
    assert not any(TOKEN in chunk.content or "MIIEvQ" in chunk.content for chunk in chunks)
    [after] = [chunk for chunk in chunks if "harbour" in chunk.content]
    lines = (root / "MEMORY.md").read_text().split("\n")
    assert lines[(after.end_line or 0) - 1] == "The harbour opens at nine."  # the lines are those of the file
    assert TOKEN in (root / "MEMORY.md").read_text()
    assert holding(daemon.core.folder) == []


def test_a_line_with_a_credential_can_be_forgotten(client: Client, root: Path) -> None:
    (root / "MEMORY.md").write_text(f"# Deploys\n\n- {TEXT}\n- The harbour opens at nine.\n")
    client.add_workspace(root, namespace="notes")
    wait_until(lambda: bool(client.list(tier="documents").total))
    [chunk] = client.list(tier="documents").memories
    client.forget(chunk.id, text="The deploy pushes")
    assert (root / "MEMORY.md").read_text() == "# Deploys\n\n- The harbour opens at nine.\n"


# The child -----------------------------------------------------------------------------------------------------------


def variables_of_child(pid: int) -> dict[str, str]:
    """Return the environment that the child of a process was started with, empty where it has none."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        if _parent(path) == str(pid):
            pairs = path.with_name("environ").read_bytes().decode().split("\0")
            return dict(pair.split("=", 1) for pair in pairs if pair)
    return {}


def _parent(stat: Path) -> str:
    with suppress(OSError):
        return stat.read_text().rpartition(")")[2].split()[1]
    return ""


@pytest.mark.slow
def test_the_child_that_parses_keeps_temporary_files_beside_the_data(process: "Process", root: Path) -> None:
    (root / "MEMORY.md").write_text("# Notes\n\nA fact.\n")
    left = process.data / "tmp"
    with process.client() as client:
        client.add_workspace(root)
        wanted = {"TMPDIR": left, "SQLITE_TMPDIR": left}
        pid = client.status().pid
        wait_until(lambda: wanted == {name: Path(variables_of_child(pid).get(name, "")) for name in wanted})


def test_new_rules_redact_what_the_index_has_of_a_file_which_stays(
    client: Client, daemon: "Daemon", root: Path
) -> None:
    text = f"# Deploys\n\nThe deploy pushes with {TOKEN} to the mirror.\n"
    (root / "deploys.md").write_text(text)
    client.add_workspace(root, namespace="notes")
    wait_until(lambda: client.list(path_prefix=str(root)).total == 1)
    [part] = client.list(path_prefix=str(root))
    before = part.content.replace("[secret: GitHub token]", TOKEN)  # as rules that did not know it had it
    assert before != part.content
    daemon.core.store.write(
        lambda transaction: transaction.connection.execute(
            "UPDATE memories SET content = ? WHERE id = ?", (before, part.id)
        )
    ).result()
    assert client.run_job("redact").counts == {"redacted": 1}
    assert [one.content for one in client.list(path_prefix=str(root))] == [part.content]
    assert daemon.core.store.find_problems() == []
    assert (root / "deploys.md").read_text() == text

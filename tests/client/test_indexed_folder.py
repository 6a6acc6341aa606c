"""A folder whose files are indexed as they change, also those that changed while no daemon answered."""

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from configs import NO_MODEL
from memoryd.client import Client
from memoryd.client.errors import MemorydError
from memoryd.client.integrations import indexed_folder
from memoryd.client.integrations.indexed_folder import FollowedFolder
from waiting import wait_until
from workbench import Daemon, Process


@pytest.fixture
def process(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Process]:
    """A daemon that is not started yet."""
    monkeypatch.setattr(indexed_folder, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(indexed_folder, "LONGEST_PAUSE_S", 0.05)
    made = Process(folder, NO_MODEL)
    yield made
    made.stop()


@pytest.fixture
def client(process: Process) -> Iterator[Client]:
    with process.client() as client:
        yield client
        wait_until(lambda: "memoryd-followed-folder" not in [thread.name for thread in threading.enumerate()])


@pytest.fixture
def notes(client: Client, folder: Path) -> FollowedFolder:
    return FollowedFolder(client, folder / "notes", "notes", ("**/*",))


def write(folder: Path, name: str, text: str) -> None:
    (folder / "notes").mkdir(exist_ok=True)
    (folder / "notes" / name).write_text(text)


def found(client: Client) -> set[str]:
    return {memory.content for memory in client.list(limit=100)}


def test_what_changes_is_indexed_when_the_call_returns(
    process: Process, notes: FollowedFolder, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    process.start()
    write(client.socket_path.parent, "before.md", "Herons fish")
    notes.begin()
    assert found(client) == {"Herons fish"}
    write(client.socket_path.parent, "after.md", "Herons nest")
    notes.begin()
    notes.index()
    assert found(client) == {"Herons fish", "Herons nest"}
    assert "not indexed" not in caplog.text  # without a model, words find it


def test_what_changes_is_found_by_its_meaning_also_where_another_has_read_it_first(
    start_daemon: "Callable[..., Daemon]", folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = start_daemon()
    with daemon.client() as client:
        notes = FollowedFolder(client, folder / "notes", "notes", ("**/*",))
        notes.begin()
        daemon.embedder.gate.clear()
        write(folder, "a.md", "Herons fish")
        client.index_workspace("notes")  # as its watcher does
        indexing = threading.Thread(target=notes.index)
        indexing.start()
        indexing.join(0.3)
        assert indexing.is_alive()
        monkeypatch.setattr(indexed_folder, "MOST_AHEAD", 0)
        notes.index()  # does not wait for what takes long
        assert indexing.is_alive()
        daemon.embedder.gate.set()
        indexing.join(20)
        assert client.search("herons").degraded == []


@pytest.mark.slow
def test_what_changed_before_a_daemon_ever_answered_is_indexed_when_it_does(
    process: Process, notes: FollowedFolder, client: Client
) -> None:
    notes.begin()
    write(client.socket_path.parent, "away.md", "Herons fish")
    notes.index()
    process.start()
    wait_until(lambda: found(client) == {"Herons fish"})
    assert client.workspaces("notes").workspaces[0].namespace == "notes"


@pytest.mark.slow
def test_what_changed_while_the_daemon_was_away_is_indexed_when_it_is_back(
    process: Process, notes: FollowedFolder, client: Client
) -> None:
    process.start()
    notes.begin()
    process.kill()
    write(client.socket_path.parent, "away.md", "Herons fish")
    notes.index()
    process.start()
    wait_until(lambda: found(client) == {"Herons fish"})
    write(client.socket_path.parent, "back.md", "Herons nest")
    notes.index()
    assert found(client) == {"Herons fish", "Herons nest"}


@pytest.mark.slow
def test_what_speaks_against_a_workspace_is_raised_at_the_beginning(
    process: Process, notes: FollowedFolder, client: Client, folder: Path
) -> None:
    process.start()
    (folder / "other").mkdir()
    client.add_workspace(folder / "other", namespace="notes")
    for _ in range(2):
        with pytest.raises(MemorydError, match="notes"):
            notes.begin()


@pytest.mark.slow
def test_what_speaks_against_it_later_is_logged(
    process: Process, notes: FollowedFolder, client: Client, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    notes.begin()
    (folder / "other").mkdir()
    caplog.set_level(logging.ERROR)
    notes._namespace = "a//b"
    process.start()
    wait_until(lambda: "cannot be indexed" in caplog.text)


@pytest.mark.slow
def test_a_workspace_that_was_removed_stays_so_and_nobody_is_told(
    process: Process, notes: FollowedFolder, client: Client
) -> None:
    process.start()
    notes.begin()
    client.remove_workspace("notes")
    write(client.socket_path.parent, "late.md", "Herons fish")
    notes.index()
    assert len(client.workspaces()) == 0

"""Claude's memory tool with Anthropic's real package; `test_on_packages.py` runs this."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool

from configs import NO_MODEL
from memoryd.client import Client
from memoryd.client.integrations import indexed_folder
from memoryd.client.integrations.anthropic import AsyncWorkspaceMemoryTool, WorkspaceMemoryTool
from waiting import wait_until
from workbench import Process

TOOLS = [WorkspaceMemoryTool, AsyncWorkspaceMemoryTool]


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


@pytest.fixture(params=TOOLS)
def tool(request: pytest.FixtureRequest, folder: Path, client: Client) -> Any:
    """Make the tool, which a process may do while the daemon is away."""
    return lambda: request.param(folder / "claude", client, namespace="claude")


async def use(tool: Any, command: str, **parameters: Any) -> str:
    done = tool.call({"command": command, **parameters})
    return str(await done if inspect.isawaitable(done) else done)


def found(client: Client) -> set[str]:
    return {memory.content for memory in client.list(limit=100)}


@pytest.mark.parametrize("kind", TOOLS)
@pytest.mark.parametrize("given", ["~/notes", "notes"])
async def test_a_folder_is_meant_as_a_shell_means_it_and_where_it_was_made(
    process: Process, client: Client, kind: Any, given: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.start()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.chdir(folder)
    made = kind(given, client, namespace="notes")
    monkeypatch.chdir("/")
    await use(made, "create", path="/memories/a.md", file_text="Herons fish")
    assert (folder / "notes/memories/a.md").read_text() == "Herons fish"
    assert found(client) == {"Herons fish"}
    assert not (folder / "~").exists()


def test_they_are_the_frameworks_tools() -> None:
    assert issubclass(WorkspaceMemoryTool, BetaAbstractMemoryTool)
    assert issubclass(AsyncWorkspaceMemoryTool, BetaAsyncAbstractMemoryTool)


async def test_what_a_command_changed_is_found_when_it_returns(process: Process, tool: Any, client: Client) -> None:
    process.start()
    made = tool()
    await use(made, "create", path="/memories/a.md", file_text="Herons fish")
    assert found(client) == {"Herons fish"}
    await use(made, "str_replace", path="/memories/a.md", old_str="fish", new_str="nest")
    assert found(client) == {"Herons nest"}
    await use(made, "insert", path="/memories/a.md", insert_line=1, insert_text="Storks too")
    assert found(client) == {"Herons nest\nStorks too"}
    await use(made, "rename", old_path="/memories/a.md", new_path="/memories/b.md")
    assert "Storks too" in await use(made, "view", path="/memories/b.md")
    assert [Path(memory.path or "").name for memory in client.list()] == ["b.md"]
    await use(made, "delete", path="/memories/b.md")
    assert found(client) == set()
    await use(made, "create", path="/memories/c.md", file_text="Owls hoot")
    cleared = made.clear_all_memory()
    assert "cleared" in str(await cleared if inspect.isawaitable(cleared) else cleared)
    assert found(client) == set()


async def test_commands_succeed_while_the_daemon_is_away_and_the_index_follows(
    process: Process, tool: Any, client: Client
) -> None:
    made = tool()
    await use(made, "create", path="/memories/a.md", file_text="Herons fish")
    await use(made, "create", path="/memories/b.md", file_text="Owls hoot")
    await use(made, "delete", path="/memories/b.md")
    assert "Herons fish" in await use(made, "view", path="/memories/a.md")
    process.start()
    wait_until(lambda: found(client) == {"Herons fish"})
    process.kill()
    await use(made, "str_replace", path="/memories/a.md", old_str="fish", new_str="nest")
    assert "Herons nest" in await use(made, "view", path="/memories/a.md")
    process.start()
    wait_until(lambda: found(client) == {"Herons nest"})
    await use(made, "create", path="/memories/c.md", file_text="Owls hoot")
    assert found(client) == {"Herons nest", "Owls hoot"}


async def test_a_command_that_is_wrong_says_so(process: Process, tool: Any) -> None:
    with pytest.raises(Exception, match="does not exist"):
        await use(tool(), "view", path="/memories/none.md")

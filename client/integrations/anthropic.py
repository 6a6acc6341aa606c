"""Claude's client-side memory tool on a workspace: the files that Claude writes are indexed, watched and searchable.

The file commands are those of Anthropic's package. This module makes the folder a workspace and indexes each file as
soon as a command has changed it. Commands also succeed while no daemon runs; the index is updated when it is back.
"""

import os
from typing import Any

from memoryd.client.extras import named_extra
from memoryd.client.integrations.clients import check_client
from memoryd.client.integrations.indexed_folder import FollowedFolder
from memoryd.client.transport.paths import make_absolute
from memoryd.client.transport.sync import Client

with named_extra("anthropic"):
    # The package exports only the abstract classes; a slow test fails if these are moved.
    from anthropic.lib.tools._beta_builtin_memory_tool import (
        BetaAsyncLocalFilesystemMemoryTool,
        BetaLocalFilesystemMemoryTool,
    )
    from anyio.to_thread import run_sync

_GLOBS = ("memories/**/*",)


class WorkspaceMemoryTool(BetaLocalFilesystemMemoryTool):
    """The memory tool on files in `folder`/memories; pass it to `client.beta.messages.tool_runner(tools=[…])`.

    `folder` may be relative or start with `~`. `namespace` is that of the indexed files, by default the folder's name.
    """

    def __init__(
        self, folder: str | os.PathLike[str], client: Client | None = None, namespace: str | None = None
    ) -> None:
        check_client(client)
        folder = make_absolute(folder)
        super().__init__(base_path=folder)
        self._files = FollowedFolder(client or Client(), folder, namespace, _GLOBS)
        self._files.begin()

    def execute(self, command: Any) -> Any:
        """Execute a command of the tool, and index the files that it changed."""
        done = super().execute(command)
        if command.command != "view":
            self._files.index()
        return done

    def clear_all_memory(self) -> Any:
        """Delete all files, and their index entries."""
        done = super().clear_all_memory()
        self._files.index()
        return done


class AsyncWorkspaceMemoryTool(BetaAsyncLocalFilesystemMemoryTool):
    """The same for `AsyncAnthropic`. The folder becomes a workspace with the first command; the loop never waits."""

    def __init__(
        self, folder: str | os.PathLike[str], client: Client | None = None, namespace: str | None = None
    ) -> None:
        check_client(client)
        folder = make_absolute(folder)
        super().__init__(base_path=folder)
        self._files = FollowedFolder(client or Client(), folder, namespace, _GLOBS)

    async def execute(self, command: Any) -> Any:
        """Execute a command of the tool, and index the files that it changed."""
        await run_sync(self._files.begin)
        done = await super().execute(command)
        if command.command != "view":
            await run_sync(self._files.index)
        return done

    async def clear_all_memory(self) -> Any:
        """Delete all files, and their index entries."""
        done = await super().clear_all_memory()
        await run_sync(self._files.begin)
        await run_sync(self._files.index)
        return done

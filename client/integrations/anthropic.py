"""Claude's client-side memory tool over a workspace: the files that Claude keeps are indexed, watched and searched.

The file commands are those of Anthropic's own package; this makes the folder a workspace and has each file indexed as
soon as a command has changed it.
"""

import os
from typing import Any

# The package exports only the abstract class; a slow test notices should this one move.
from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool

from memoryd.client.transport.sync import Client

_GLOBS = ("memories/**/*",)


class WorkspaceMemoryTool(BetaLocalFilesystemMemoryTool):
    """The memory tool on files in `folder`/memories; give it to `client.beta.messages.tool_runner(tools=[…])`.

    `namespace` is where what is indexed of them is found; left out, the folder's name.
    """

    def __init__(
        self, folder: str | os.PathLike[str], client: Client | None = None, namespace: str | None = None
    ) -> None:
        super().__init__(base_path=os.fspath(folder))
        self._client, self._folder = client or Client(), os.path.realpath(folder)
        self._client.add_workspace(self._folder, namespace=namespace, globs=_GLOBS)  # or changes the one that is there
        self._client.index_workspace(self._folder)

    def execute(self, command: Any) -> Any:
        """Execute a command of the tool, and index what it changed."""
        done = super().execute(command)
        if command.command != "view":
            self._client.index_workspace(self._folder)
        return done

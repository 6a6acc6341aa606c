"""The session of an agent: its namespace and its connection, which the first call opens, starting the daemon."""

import argparse
import os
import secrets
from typing import TypeVar

import msgspec

from memoryd.client.errors import MemorydError, Unauthenticated
from memoryd.client.programs.memctl.link import named_namespace, own_token
from memoryd.client.projects.project import project_namespace
from memoryd.client.protocol import Authenticate, Call, Identity, Scoped
from memoryd.client.transport import paths
from memoryd.client.transport.aio import AsyncClient
from memoryd.client.transport.exchange import greeting

R = TypeVar("R")


class ProjectSession:
    """Sends calls from the namespace of the project.

    `id` identifies the session; each process has one. The daemon records by this id which memories the session
    received, so that they are not stored again when the agent repeats them.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self.namespace = _own_namespace(args)
        self.id = f"mcp-{secrets.token_hex(8)}"
        self.bound: Identity | None = None  # the identity of a token that is bound to a namespace
        self._unchecked_token = paths.environment_token()
        self._is_refused = False  # whether the daemon refused that token at the last call
        self._client = AsyncClient(
            "", socket=args.socket, token=own_token(), timeout_s=args.timeout, autostart=not args.no_autostart
        )

    async def call(self, call: Call[R], project: str = "") -> R:
        """Send a call from a project's namespace, by default the session's; `/` is the root, which is shared by all."""
        await self.settle()
        if isinstance(call, Scoped):
            call = msgspec.structs.replace(call, namespace=self.place(project))
        try:
            return await self._client.call(call)
        except Unauthenticated as error:
            if os.environ.get("MEMORYD_TOKEN"):
                self._is_refused = True
                raise _own_token_refused() from None
            self._client._greeting = greeting(paths.read_token(str(error.data.get("owner_token", ""))))
            await self._client.close()
            return await self._client.call(call)

    async def settle(self) -> None:
        """Ask the daemon once for the token's namespace, and use it unless a namespace was chosen."""
        if self._unchecked_token:
            try:
                known = await self._client.call(Authenticate(token=self._unchecked_token))
            except Unauthenticated:
                self._is_refused = True
                raise _own_token_refused() from None
            self._is_refused = False
            self.namespace = self.namespace or known.namespace
            self.bound = known if known.namespace else None
            self._unchecked_token = ""

    async def find_refusal(self) -> str:
        """Return why calls are refused, empty if they are not; a token that was refused is tried again."""
        if self._is_refused:
            self._unchecked_token = paths.environment_token()
            try:
                await self.settle()
            except Unauthenticated as error:
                return error.message
            except MemorydError:  # the call itself reports it
                pass
        return ""

    def place(self, project: str) -> str:
        """Return the namespace for the argument `project` of a tool."""
        return project.strip("/") if project else self.namespace

    async def close(self) -> None:
        """Close the connection."""
        await self._client.close()


def _own_token_refused() -> Unauthenticated:
    sentence = "The daemon does not know the token that this MCP server was started with; it may have been revoked."
    return Unauthenticated(f"{sentence} Start the server with another MEMORYD_TOKEN.")


def _own_namespace(args: argparse.Namespace) -> str:
    """Return the namespace that an option or the environment sets, else that of the project that the host works in.

    It is empty if there is a token, because the daemon knows the token's namespace.
    """
    given = named_namespace(args)
    if given is not None:
        return given
    try:
        return project_namespace(os.environ.get("CLAUDE_PROJECT_DIR") or os.getcwd())
    except OSError:  # the current folder no longer exists
        return ""

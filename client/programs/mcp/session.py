"""One conversation with an agent: where its memories are, and the way to the daemon, which starts on the first call."""

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
    """Places calls in the namespace of the project; `id` is that of the conversation, one for each process.

    What searches and contexts return is noted under it, so that the agent's repeating it is not taken for news.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self.namespace = _own_namespace(args)
        self.id = f"mcp-{secrets.token_hex(8)}"
        self.bound: Identity | None = None  # what a token is bound to, once the daemon said so
        self._unasked = paths.environment_token()
        self._is_refused = False  # whether the daemon did not know that token at the last call
        self._client = AsyncClient(
            "", socket=args.socket, token=own_token(), timeout_s=args.timeout, autostart=not args.no_autostart
        )

    async def call(self, call: Call[R], project: str = "") -> R:
        """Send a call from a project's namespace, by default the own one; `/` is the root, what all projects share."""
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
        """Ask once what a token is bound to: memories go there when no namespace is named."""
        if self._unasked:
            try:
                known = await self._client.call(Authenticate(token=self._unasked))
            except Unauthenticated:
                self._is_refused = True
                raise _own_token_refused() from None
            self._is_refused = False
            self.namespace = self.namespace or known.namespace
            self.bound = known if known.namespace else None
            self._unasked = ""

    async def find_refusal(self) -> str:
        """Return why no call would be answered, empty where one may be: a token that was refused is asked for again."""
        if self._is_refused:
            self._unasked = paths.environment_token()
            try:
                await self.settle()
            except Unauthenticated as error:
                return error.message
            except MemorydError:  # the call itself says so
                pass
        return ""

    def place(self, project: str) -> str:
        """Return the namespace of a project as a tool names it."""
        return project.strip("/") if project else self.namespace

    async def close(self) -> None:
        """Close the connection."""
        await self._client.close()


def _own_token_refused() -> Unauthenticated:
    sentence = "The daemon does not know the token that this MCP server was started with; it may have been revoked."
    return Unauthenticated(f"{sentence} Start the server with another MEMORYD_TOKEN.")


def _own_namespace(args: argparse.Namespace) -> str:
    """Return where memories go: as the option or the environment says, else the project that the host works in.

    A token says it, too: the daemon places its bearer.
    """
    given = named_namespace(args)
    if given is not None:
        return given
    try:
        return project_namespace(os.environ.get("CLAUDE_PROJECT_DIR") or os.getcwd())
    except OSError:  # the current folder no longer exists
        return ""

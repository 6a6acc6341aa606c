"""What the tests of the MCP server share: agents that speak to it in this process and over real pipes."""

import asyncio
import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult

from memoryd.client.programs.mcp import server
from memoryd.client.programs.mcp.session import ProjectSession
from memoryd.client.programs.mcp.tools import CONNECTOR_TOOLS, TOOLS

MCP = [sys.executable, "-m", "memoryd.client.programs.memctl", "mcp"]
HELLO = [
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
]


def options(**given: Any) -> Namespace:
    """The options of the command, as given on its line."""
    usual = {"namespace": "acme/api", "socket": None, "timeout": 30.0, "no_autostart": True}
    return Namespace(**{**usual, **given})


@asynccontextmanager
async def agent(**given: Any) -> AsyncIterator[Client]:
    """A client of a server in this process, on the daemon of `MEMORYD_SOCKET`."""
    session = ProjectSession(options(**given))
    try:
        async with Client(server.make_server(session, {**TOOLS, **CONNECTOR_TOOLS})) as client:
            yield client
    finally:
        await session.close()


def launched(*words: str, **environment: str) -> StdioServerParameters:
    """How a host starts the real command."""
    return StdioServerParameters(
        command=MCP[0], args=[*MCP[1:], *words], env={**os.environ, "PYTHONWARNINGS": "default", **environment}
    )


def text_of(result: CallToolResult) -> str:
    """The text that a tool replied."""
    [content] = result.content
    return str(content.text)  # type: ignore[union-attr]


def request(number: int, name: str, **arguments: Any) -> dict[str, Any]:
    """A tool call as a host writes it."""
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def lines(*messages: Mapping[str, Any]) -> bytes:
    """Messages as lines."""
    return b"".join(msgspec.json.encode(message) + b"\n" for message in messages)


def replies(output: bytes) -> dict[Any, Any]:
    """The replies by id; fails where a line is anything but a JSON-RPC message."""
    found = [msgspec.json.decode(line) for line in output.splitlines()]
    assert all(message["jsonrpc"] == "2.0" for message in found)
    return {message["id"]: message for message in found}


def piped(*messages: Mapping[str, Any], words: tuple[str, ...] = (), **environment: str) -> Any:
    """Write messages to the real command, close, and return what it did."""
    return subprocess.run(
        [*MCP, *words], input=lines(*messages), env={**os.environ, **environment}, capture_output=True, timeout=60
    )


async def all_of(*calls: Any) -> list[Any]:
    """Await calls at once."""
    return list(await asyncio.gather(*calls))

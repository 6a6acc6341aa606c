"""MCP over HTTP: one server on 127.0.0.1 for containers and for hosts that are configured with a URL.

It has no sessions, like the specification since 2026-07-28: each request is a POST that is answered with JSON. Clients
of earlier revisions work too, since they may start without a session id. Every request must have the token, which is
stored in the data folder, so that the agents' configuration stays valid. A server started with `MEMORYD_TOKEN` requires
that token instead, so that an agent bound to a namespace cannot use an unbound server.
"""

import argparse
import asyncio
import os
import secrets
import socket
import sys
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from memoryd.client.errors import MemorydError, Unavailable
from memoryd.client.programs.loopback import guard
from memoryd.client.programs.loopback.guard import (
    ADDRESS,
    Guard,
    HttpRefusal,
    LoopbackRequest,
    RequestCheck,
    check_origin,
    check_token,
    own_hosts,
)
from memoryd.client.programs.loopback.serving import bind_port, serve_app
from memoryd.client.programs.mcp.server import make_server
from memoryd.client.programs.mcp.session import ProjectSession
from memoryd.client.programs.mcp.tools import Tool
from memoryd.client.programs.memctl.output import say, say_json
from memoryd.client.transport import paths

PATH = "/mcp"
HTTPS = 443  # clients omit this port in the header Host
TOKEN_FILE = "mcp.token"
IDLE_S = 60  # longer than clients keep idle connections, so that no connection is closed while a client sends on it


def check_method(asked: LoopbackRequest) -> HttpRefusal | None:
    """Refuse every method but POST: there are no streams to open and no sessions to end."""
    return None if asked.method == "POST" else HttpRefusal(405, "Requests are sent by POST.", {"allow": "POST"})


def check_host(asked: LoopbackRequest) -> HttpRefusal | None:
    """Refuse unknown host names (DNS rebinding), with the option that allows one."""
    refusal = guard.check_host(asked)
    if refusal is None:
        return None
    return refusal._replace(message=f"{refusal.message} Start it with --allow-host NAME to answer to a name.")


GUARDS: tuple[RequestCheck, ...] = (check_host, check_origin, check_token, check_method)


async def ask_session(session: ProjectSession) -> HttpRefusal | None:
    """Refuse requests while the daemon refuses the token of this server."""
    refused = await session.find_refusal()
    return HttpRefusal(401, refused, {"www-authenticate": "Bearer"}) if refused else None


def serve(args: argparse.Namespace, tools: dict[str, Tool], port: int) -> int:
    """Serve until Ctrl-C or SIGTERM."""
    token, file = find_token()
    listener = bind_port(port)
    try:
        asyncio.run(_serve(args, tools, token, file, listener))
    finally:
        listener.close()
    return 0


async def _serve(
    args: argparse.Namespace, tools: dict[str, Tool], token: str, file: str, listener: socket.socket
) -> None:
    port = listener.getsockname()[1]
    hosts = own_hosts(port) | {name.removesuffix(f":{HTTPS}") for name in args.allow_host}
    session = ProjectSession(args)
    try:
        with suppress(Unavailable):  # the daemon may be started later
            await session.settle()
        manager = make_manager(make_server(session, tools))
        announce = partial(_print_address, args, f"http://{ADDRESS}:{port}{PATH}", token, file, session.namespace)
        async with manager.run():
            guarded = Guard(make_app(manager), GUARDS, hosts, token, ask=partial(ask_session, session))
            await serve_app(guarded, listener, IDLE_S, announce)
    finally:
        await session.close()


def make_manager(server: Server[Any]) -> StreamableHTTPSessionManager:
    """Return a stateless manager, which passes requests to the server; enter `run` before use."""
    return StreamableHTTPSessionManager(server, json_response=True, stateless=True)


def make_app(manager: StreamableHTTPSessionManager) -> ASGIApp:
    """Return the ASGI application, which answers at `PATH` only."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].rstrip("/") == PATH:
            await manager.handle_request(scope, receive, send)
        else:
            await JSONResponse({"message": f"The server is at {PATH}."}, 404)(scope, receive, send)

    return app


def find_token() -> tuple[str, str]:
    """Return the token that requests must have, and its file, which is created on first use."""
    if bound := paths.environment_token():
        return bound, ""
    folder = paths.data_folder()
    file = os.path.join(folder, TOKEN_FILE)
    if not os.path.lexists(file):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        _write_once(file, secrets.token_urlsafe(32))
    token = paths.read_token(file)
    if not token:
        raise MemorydError(f"No token can be read from {file}; remove it, and a new one is made.")
    return token, file


def _write_once(file: str, token: str) -> None:
    """Create a file that only the user can read, unless another process has just created it."""
    part = f"{file}.{os.getpid()}"
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "w", encoding="ascii") as written:
        written.write(f"{token}\n")
    try:
        os.link(part, file)
    except FileExistsError:
        pass
    finally:
        os.unlink(part)


def _print_address(args: argparse.Namespace, url: str, token: str, file: str, namespace: str) -> None:
    watched = bool(sys.stdout and sys.stdout.isatty())  # else it may be a log, which must not contain the token
    header = f"Bearer {token if watched or args.json else '…'}"
    entry = {"type": "http", "url": url, "headers": {"Authorization": header}}
    config = {"mcpServers": {"memory": entry}}
    if args.json:
        say_json({"url": url, "token": token, "token_file": file, "namespace": namespace, "config": config})
        return
    bound = "what its token may see" if paths.environment_token() else "all that this user may see"
    where = f"for {namespace} and what encloses it" if namespace else f"for {bound}"
    source = f"kept in {file}; without that file there is a new one" if file else "that of MEMORYD_TOKEN"
    say(f"memoryd serves MCP at {url}, {where}; Ctrl-C ends it.")
    say(f"\nEvery request has the header  Authorization: {header}\nThe token is {source}.")
    say(f'\nClaude Code:\n  claude mcp add --transport http memory {url} --header "Authorization: {header}"')
    say(f"\nA host with a JSON file:\n  {msgspec.json.encode(config).decode()}")

"""The process that serves the page: its routes, its server, start and stop."""

import asyncio
from argparse import Namespace
from collections.abc import AsyncIterator
from functools import partial
from mimetypes import guess_type
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from memoryd.client.programs.loopback.guard import ADDRESS, Guard, own_hosts
from memoryd.client.programs.loopback.serving import bind_port, serve_app
from memoryd.client.programs.memctl.link import client_for, named_namespace, own_token
from memoryd.client.programs.memctl.output import say, say_json
from memoryd.client.programs.web import relay
from memoryd.client.programs.web.guard import GUARDS, PRIVATE, Opening
from memoryd.client.protocol import GetStatus
from memoryd.client.transport.aio import AsyncClient

STATIC = Path(__file__).with_name("static")
KEEP_ALIVE_S = 2  # for idle connections; shorter than the time limit of a request
_LONG_S = 600.0  # the time limit of calls that run a job or plan it


class PageServer:
    """The endpoints of one run. Files are read once and calls are passed on to the daemon; there is no other state."""

    def __init__(self, args: Namespace, opening: Opening) -> None:
        self._args, self._opening, self._streams = args, opening, set[_Events]()
        self._files = {str(path.relative_to(STATIC)): _make_file(path) for path in STATIC.rglob("*.*")}
        self._clients = relay.Clients(_make_client(args, args.timeout), _make_client(args, _LONG_S))

    def list_routes(self) -> list[Route]:
        """Return the table of routes."""
        return [
            Route("/", self._show_page),
            Route("/open", self._open, methods=["POST"]),
            Route("/api/call", self._call, methods=["POST"]),
            Route("/api/events", self._follow),
            Route("/api/doctor", self._check_health),
            Route("/api/{name}", self._refuse_unknown),
            Route("/static/{name:path}", self._show_file),
        ]

    async def _show_page(self, request: Request) -> Response:
        return self._files["index.html"]

    async def _show_file(self, request: Request) -> Response:
        return self._files.get(request.path_params["name"]) or _refuse("There is no such file.", 404)

    async def _open(self, request: Request) -> Response:
        token = self._opening.exchange((await request.body()).decode("utf-8", "replace").strip('"'))
        return JSONResponse({"token": token}) if token else _refuse("This address was used already.", 403)

    async def _call(self, request: Request) -> Response:
        return _make_reply(await relay.answer_calls(self._clients, await request.body()))

    async def _follow(self, request: Request) -> Response:
        return _Events(relay.follow_events(self._clients.quick), self._streams)

    async def _check_health(self, request: Request) -> Response:
        return _make_reply(await relay.answer_work(relay.read_findings(self._args)))

    async def _refuse_unknown(self, request: Request) -> Response:
        return _refuse("There is no such address.", 404)


class _Events(StreamingResponse):
    """A stream of events; it is refused at its start if there are too many."""

    def __init__(self, events: AsyncIterator[bytes], streams: "set[_Events]") -> None:
        super().__init__(events, media_type="text/event-stream")
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if len(self._streams) >= relay.MAX_STREAMS:
            await _refuse("Too many tabs follow events; close some.", 429)(scope, receive, send)
            return
        self._streams.add(self)
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._streams.discard(self)


def _make_client(args: Namespace, timeout_s: float) -> AsyncClient:
    namespace = named_namespace(args) or ""
    return AsyncClient(namespace, socket=args.socket, token=own_token(), timeout_s=timeout_s, autostart=False)


def _make_reply(text: bytes) -> Response:
    return Response(text, media_type="application/json")


def _make_file(path: Path) -> Response:
    return Response(path.read_bytes(), media_type=guess_type(path.name)[0])


def _refuse(message: str, status: int) -> Response:
    return JSONResponse({"message": message}, status)


def serve(args: Namespace, usual_port: int) -> int:
    """Serve the page until Ctrl-C or SIGTERM; start the daemon first if none answers."""
    with client_for(args) as client:
        client.call(GetStatus())
    listener = bind_port(args.port) if args.port else bind_port(usual_port, 0)
    port = listener.getsockname()[1]
    opening = Opening()
    app = make_app(args, opening, port)
    announce = partial(_print_address, args, opening, f"http://{ADDRESS}:{port}")
    try:
        asyncio.run(serve_app(app, listener, KEEP_ALIVE_S, announce))
    finally:
        opening.close()
        listener.close()
    return 0


def make_app(args: Namespace, opening: Opening, port: int) -> Guard:
    """Return the application of the page with its guards."""
    handlers = {ClientDisconnect: _ignore_disconnect}
    page = Starlette(routes=PageServer(args, opening).list_routes(), exception_handlers=handlers)
    return Guard(page, GUARDS, own_hosts(port), opening.token, PRIVATE)


def _ignore_disconnect(request: Request, error: Exception) -> Response:
    """Return a response that nobody receives, since the client disconnected before the request was complete."""
    return Response(status_code=400)


def _print_address(args: Namespace, opening: Opening, base: str) -> None:
    """Print the address, and open it in a browser unless --no-open is given."""
    address = opening.address(base)
    if args.json:
        say_json({"url": address, "address": base})
    else:
        say(f"memoryd's page is at {base}; Ctrl-C ends it.\nThis address opens it, once: {address}")
    if not args.no_open:
        opening.open_browser(base)

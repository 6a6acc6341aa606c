"""Protect an application on 127.0.0.1 from requests of others.

Other web pages in the browser can send requests there (DNS rebinding, forged forms, frames), and so can other users of
the machine. An application passes a table of guards; the first guard that refuses determines the answer. Every response
gets the security headers in `HEADERS`.
"""

import hmac
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memoryd.client.programs.memctl.output import print_note

ADDRESS = "127.0.0.1"  # no option can change it
NOTE_S = 60.0  # between two lines about refusals of one kind, so that many refusals do not flood the log
_HOST_CHARS = 100  # of a refused host that are quoted
SIGNED_IN = "memoryd.signed_in"  # key in the scope of a request with the token
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none';"
    " require-trusted-types-for 'script'; trusted-types 'none'",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_SEAL = [(name.encode(), value.encode()) for name, value in HEADERS.items()]


class LoopbackRequest(NamedTuple):
    """A request for the guards to check, with the valid hosts and token."""

    method: str
    path: str
    headers: dict[str, str]
    hosts: Collection[str]
    token: str
    needs_token: bool


class HttpRefusal(NamedTuple):
    """The status, message and headers of a refusal."""

    status: int
    message: str
    headers: Mapping[str, str] = MappingProxyType({})


RequestCheck = Callable[[LoopbackRequest], HttpRefusal | None]


def own_hosts(port: int) -> frozenset[str]:
    """Return the valid values of the header Host for a server on a port of this machine."""
    return frozenset((f"{ADDRESS}:{port}", f"localhost:{port}"))


def check_host(asked: LoopbackRequest) -> HttpRefusal | None:
    """Refuse a host name of another site that resolves to this machine (DNS rebinding).

    A host without a port matches any port.
    """
    host = asked.headers.get("host", "")
    if host in asked.hosts or host.rpartition(":")[0] in asked.hosts:
        return None
    return HttpRefusal(403, f"The host {host[:_HOST_CHARS]!r} is not this server's.")


def check_origin(asked: LoopbackRequest) -> HttpRefusal | None:
    """Refuse requests of other web pages; only browsers send an origin."""
    own = (None, f"http://{asked.headers.get('host')}")
    return None if asked.headers.get("origin") in own else HttpRefusal(403, "The origin is not this server.")


def check_token(asked: LoopbackRequest) -> HttpRefusal | None:
    """Refuse requests that read or change memories without the bearer token."""
    if not asked.needs_token:
        return None
    header = asked.headers.get("authorization", "").encode()
    if hmac.compare_digest(header, f"Bearer {asked.token}".encode()):
        return None
    return HttpRefusal(401, "The token is missing or wrong.", {"www-authenticate": "Bearer"})


class Guard:
    """Runs guards before an application, and adds `HEADERS` to its responses.

    Paths that begin with `private` require the token. `ask` is the last check, after the guards. Refusals are printed
    on standard error.
    """

    def __init__(
        self,
        app: ASGIApp,
        checks: Sequence[RequestCheck],
        hosts: Collection[str],
        token: str,
        private: str = "/",
        ask: Callable[[], Awaitable[HttpRefusal | None]] | None = None,
    ) -> None:
        self._app, self._checks, self._hosts, self._token, self._private = app, checks, hosts, token, private
        self._ask = ask
        self._noted: dict[str, tuple[float, int]] = {}  # time of the last line, and number of refusals since then

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        private = scope["path"].startswith(self._private)
        asked = LoopbackRequest(scope["method"], scope["path"], headers, self._hosts, self._token, private)
        kind, refusal = next(((check.__name__, found) for check in self._checks if (found := check(asked))), ("", None))
        if refusal is None and self._ask:
            kind, refusal = "ask", await self._ask()
        app = self._app
        if refusal is not None:
            self._note(kind, refusal)
            content = {"code": "forbidden", "message": refusal.message, "data": {}}
            app = JSONResponse(content, refusal.status, refusal.headers)
        elif private:
            scope[SIGNED_IN] = True
        await app(scope, receive, _seal(send))

    def _note(self, kind: str, refusal: HttpRefusal) -> None:
        now = time.monotonic()
        at, count = self._noted.get(kind, (-NOTE_S, 0))
        if now - at < NOTE_S:
            self._noted[kind] = at, count + 1
            return
        self._noted[kind] = now, 0
        more = f" ({count:,} more since the last line)" if count else ""
        print_note(f"memctl: a request was refused with {refusal.status}: {refusal.message}{more}")


def _seal(send: Send) -> Send:
    async def send_sealed(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = [pair for pair in message["headers"] if pair[0].decode("latin-1") not in HEADERS]
            message = {**message, "headers": [*own, *_SEAL]}
        await send(message)

    return send_sealed

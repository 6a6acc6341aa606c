"""What is between the page and everything else that can send requests to 127.0.0.1.

Other pages of the browser can (DNS rebinding, forged forms, frames), and other users of the machine. Each guard is a
row of `GUARDS`; the first that refuses answers. What is served is sealed by `HEADERS` whatever happens.

The page gets its token for a code that works once. A command line is seen by every user of the machine (`ps`), so the
browser is given a file, that only the user can read, which leads on to the page; the code is in the fragment, which no
server and no log gets. The page keeps the token for the tab alone: a cookie of 127.0.0.1 would be sent to every other
port.
"""

import hmac
import secrets
import tempfile
import threading
import webbrowser
from collections.abc import Callable
from html import escape
from pathlib import Path
from shutil import rmtree
from typing import NamedTuple

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ADDRESS = "127.0.0.1"  # no option changes it
MAX_BODY_BYTES = 4 * 1024 * 1024
MAX_CODE_BYTES = 1024  # of what is sent without the token
SIGNED_IN = "memoryd.signed_in"  # in the scope of a request with the token
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
_SIGNED = "/api/"  # addresses that want the token
_SEAL = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
_PAGE = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={0}"><a href="{0}">memoryd</a>'


class WebRequest(NamedTuple):
    """A request as the guards see it, with the port and the token that are right."""

    method: str
    path: str
    headers: dict[str, str]
    port: int
    token: str


HttpRefusal = tuple[int, str]


def check_method(asked: WebRequest) -> HttpRefusal | None:
    """Let through reading, and POST for calls: effects come by POST alone."""
    allowed = ("POST",) if asked.path in POSTED else ("GET", "HEAD")
    return None if asked.method in allowed else (405, "This method is not allowed here.")


def check_host(asked: WebRequest) -> HttpRefusal | None:
    """Refuse a name that another site made to lead here (DNS rebinding)."""
    hosts = (f"{ADDRESS}:{asked.port}", f"localhost:{asked.port}")
    return None if asked.headers.get("host") in hosts else (403, "The host is not this page's.")


def check_origin(asked: WebRequest) -> HttpRefusal | None:
    """Refuse what another page sends: a POST has the page's own origin."""
    origin = asked.headers.get("origin")
    if origin is None and asked.method != "POST":
        return None
    return None if origin == f"http://{asked.headers.get('host')}" else (403, "The origin is not this page.")


def check_site(asked: WebRequest) -> HttpRefusal | None:
    """Refuse what the browser says another site began; the empty page itself may be linked to."""
    site = asked.headers.get("sec-fetch-site")
    opens_page = asked.path == "/" and asked.headers.get("sec-fetch-dest") == "document"
    return None if site in (None, "same-origin", "none") or opens_page else (403, "Another site sent this request.")


def check_content(asked: WebRequest) -> HttpRefusal | None:
    """Let a POST through only as JSON of a known, bounded length: no form of another page can send it."""
    if asked.method != "POST":
        return None
    if asked.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        return 415, "A call is sent as application/json."
    length = asked.headers.get("content-length", "")
    if not length.isdecimal() or "transfer-encoding" in asked.headers:  # which takes precedence, and has no length
        return 411, "A call needs a length."
    most = MAX_BODY_BYTES if asked.path.startswith(_SIGNED) else MAX_CODE_BYTES
    return (413, f"A call has at most {most} bytes.") if int(length) > most else None


def check_token(asked: WebRequest) -> HttpRefusal | None:
    """Want the bearer token on all that shows or changes memories."""
    if not asked.path.startswith(_SIGNED):
        return None
    given = asked.headers.get("authorization", "").encode()
    known = hmac.compare_digest(given, f"Bearer {asked.token}".encode())
    return None if known else (401, "This page is not signed in; open it again with `memctl web`.")


POSTED = ("/api/call", "/open")
GUARDS: tuple[Callable[[WebRequest], HttpRefusal | None], ...] = (
    check_method,
    check_host,
    check_origin,
    check_site,
    check_content,
    check_token,
)


class Guard:
    """Runs the guards before an application and seals what it sends."""

    def __init__(self, app: ASGIApp, port: int, token: str) -> None:
        self._app, self._port, self._token = app, port, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        asked = WebRequest(scope["method"], scope["path"], headers, self._port, self._token)
        refusal = next((found for check in GUARDS if (found := check(asked))), None)
        app = self._app
        if refusal is not None:
            status, message = refusal
            app = JSONResponse({"code": "forbidden", "message": message, "data": {}}, status)
        elif asked.path.startswith(_SIGNED):
            scope[SIGNED_IN] = True
        await app(scope, receive, _seal(send))


def _seal(send: Send) -> Send:
    async def send_sealed(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = [pair for pair in message["headers"] if pair[0].decode("latin-1") not in HEADERS]
            message = {**message, "headers": [*own, *_SEAL]}
        await send(message)

    return send_sealed


class Opening:
    """The token of one run and the code that is exchanged for it, once."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(32)
        self._code = secrets.token_urlsafe(32)
        self._folder: Path | None = None

    def address(self, base: str) -> str:
        """Return the address that opens the page, once."""
        return f"{base}/#open={self._code}"

    def exchange(self, code: str) -> str | None:
        """Return the token for the code; None for a wrong one, or the second time."""
        if not self._code or not hmac.compare_digest(code.encode(), self._code.encode()):
            return None
        self._code = ""
        self.close()
        return self.token

    def open_browser(self, base: str) -> None:
        """Have a browser open the page, without waiting for it."""
        self._folder = Path(tempfile.mkdtemp(prefix="memctl-web-"))
        file = self._folder / "open.html"
        file.write_text(_PAGE.format(escape(self.address(base), quote=True)), encoding="utf-8")
        threading.Thread(target=webbrowser.open, args=(file.as_uri(),), daemon=True).start()

    def close(self) -> None:
        """Remove the file that leads to the page."""
        folder, self._folder = self._folder, None
        if folder:
            rmtree(folder, ignore_errors=True)

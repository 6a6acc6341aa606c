"""Protect the page from requests that are not its own.

Each guard is a row of `GUARDS`; those that other servers share are in `client/programs/loopback`.

The page exchanges a code, which works once, for its token. Every user of the machine can see command lines (`ps`), so
the browser opens a file that only the user can read, which redirects to the page; the code is in the fragment of the
address, which browsers send to no server, so it gets into no log. The page keeps the token only in its tab, because a
cookie of 127.0.0.1 would be sent to every other port.
"""

import hmac
import secrets
import tempfile
import threading
import webbrowser
from html import escape
from pathlib import Path
from shutil import rmtree

from memoryd.client.programs.loopback.guard import (
    HttpRefusal,
    LoopbackRequest,
    RequestCheck,
    check_host,
    check_origin,
    check_token,
)

MAX_BODY_BYTES = 4 * 1024 * 1024
MAX_CODE_BYTES = 1024  # in a request without the token
PRIVATE = "/api/"  # addresses that require the token
_PAGE = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={0}"><a href="{0}">memoryd</a>'


def check_method(asked: LoopbackRequest) -> HttpRefusal | None:
    """Refuse methods other than those that read, and POST for calls, so that only POST can have effects."""
    allowed = ("POST",) if asked.path in POSTED else ("GET", "HEAD")
    if asked.method in allowed:
        return None
    return HttpRefusal(405, "This method is not allowed here.", {"allow": ", ".join(allowed)})


def check_sender(asked: LoopbackRequest) -> HttpRefusal | None:
    """Refuse a POST without an origin, which every browser sends."""
    is_named = asked.method != "POST" or "origin" in asked.headers
    return None if is_named else HttpRefusal(403, "The request does not say which page sends it.")


def check_site(asked: LoopbackRequest) -> HttpRefusal | None:
    """Refuse requests that another site caused, as reported by the browser; links to the empty page are allowed."""
    site = asked.headers.get("sec-fetch-site")
    opens_page = asked.path == "/" and asked.headers.get("sec-fetch-dest") == "document"
    if site in (None, "same-origin", "none") or opens_page:
        return None
    return HttpRefusal(403, "Another site sent this request.")


def check_content(asked: LoopbackRequest) -> HttpRefusal | None:
    """Refuse a POST unless it is JSON of a known, bounded length, which no form of another page can send."""
    if asked.method != "POST":
        return None
    if asked.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        return HttpRefusal(415, "A call is sent as application/json.")
    length = asked.headers.get("content-length", "")
    if not length.isdecimal() or "transfer-encoding" in asked.headers:  # takes precedence, and has no length
        return HttpRefusal(411, "A call needs a length.")
    most = MAX_BODY_BYTES if asked.needs_token else MAX_CODE_BYTES
    return HttpRefusal(413, f"A call has at most {most} bytes.") if int(length) > most else None


POSTED = ("/api/call", "/open")
GUARDS: tuple[RequestCheck, ...] = (
    check_method,
    check_host,
    check_origin,
    check_sender,
    check_site,
    check_content,
    check_token,
)


class Opening:
    """The token of one run, and the code that can be exchanged for it once."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(32)
        self._code = secrets.token_urlsafe(32)
        self._folder: Path | None = None

    def address(self, base: str) -> str:
        """Return the address that opens the page; it works once."""
        return f"{base}/#open={self._code}"

    def exchange(self, code: str) -> str | None:
        """Return the token for the code; None if the code is wrong or already used."""
        if not self._code or not hmac.compare_digest(code.encode(), self._code.encode()):
            return None
        self._code = ""
        self.close()
        return self.token

    def open_browser(self, base: str) -> None:
        """Open the page in a browser, without waiting for it."""
        self._folder = Path(tempfile.mkdtemp(prefix="memctl-web-"))
        file = self._folder / "open.html"
        file.write_text(_PAGE.format(escape(self.address(base), quote=True)), encoding="utf-8")
        threading.Thread(target=webbrowser.open, args=(file.as_uri(),), daemon=True).start()

    def close(self) -> None:
        """Remove the file that redirects to the page."""
        folder, self._folder = self._folder, None
        if folder:
            rmtree(folder, ignore_errors=True)

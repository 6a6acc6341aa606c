"""What is between the page and everything else that can send requests to 127.0.0.1.

Each guard is a row of `GUARDS`; those that other servers share are in `client/programs/loopback`.

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
MAX_CODE_BYTES = 1024  # of what is sent without the token
PRIVATE = "/api/"  # addresses that want the token
_PAGE = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={0}"><a href="{0}">memoryd</a>'


def check_method(asked: LoopbackRequest) -> HttpRefusal | None:
    """Let through reading, and POST for calls: effects come by POST alone."""
    allowed = ("POST",) if asked.path in POSTED else ("GET", "HEAD")
    if asked.method in allowed:
        return None
    return HttpRefusal(405, "This method is not allowed here.", {"allow": ", ".join(allowed)})


def check_sender(asked: LoopbackRequest) -> HttpRefusal | None:
    """Refuse a POST that names no origin: a browser names one."""
    is_named = asked.method != "POST" or "origin" in asked.headers
    return None if is_named else HttpRefusal(403, "The request does not say which page sends it.")


def check_site(asked: LoopbackRequest) -> HttpRefusal | None:
    """Refuse what the browser says another site began; the empty page itself may be linked to."""
    site = asked.headers.get("sec-fetch-site")
    opens_page = asked.path == "/" and asked.headers.get("sec-fetch-dest") == "document"
    if site in (None, "same-origin", "none") or opens_page:
        return None
    return HttpRefusal(403, "Another site sent this request.")


def check_content(asked: LoopbackRequest) -> HttpRefusal | None:
    """Let a POST through only as JSON of a known, bounded length: no form of another page can send it."""
    if asked.method != "POST":
        return None
    if asked.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        return HttpRefusal(415, "A call is sent as application/json.")
    length = asked.headers.get("content-length", "")
    if not length.isdecimal() or "transfer-encoding" in asked.headers:  # which takes precedence, and has no length
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

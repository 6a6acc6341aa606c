"""How the page gets its token: a code that works once, from a file that only the user can read.

A command line is seen by every user of the machine (`ps`), so the browser is given a file that leads on to the page;
the code is in the fragment, which no server and no log gets. The page exchanges it for the token, which it keeps for
the tab alone: a cookie of 127.0.0.1 would be sent to every other port.
"""

import hmac
import secrets
import tempfile
import threading
import webbrowser
from html import escape
from pathlib import Path
from shutil import rmtree

_PAGE = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={0}"><a href="{0}">memoryd</a>'


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

"""Client of an OpenAI-compatible API: each request is one POST of JSON over HTTP or HTTPS.

Temporary failures (no connection, timeout, 408, 429, 5xx) are distinguished from permanent ones. The time limit is for
the whole request. The key is read again for each request. Threads: any; each request uses its own connection.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from memoryd.client.credentials import redact
from memoryd.client.offline import is_here, is_offline

if TYPE_CHECKING:
    import http.client

_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_BLOCK = 64 * 1024
_TOLD_BYTES, _TOLD_CHARS = 2000, 200
_CONNECT_S = 10.0  # at most, however long the request may take


class RemoteFailed(Exception):
    """The request failed; the message is one sentence."""


class Passing(RemoteFailed):
    """A temporary failure. `after_s`: how long the server asked to wait."""

    def __init__(self, message: str, after_s: float = 0.0) -> None:
        super().__init__(message)
        self.after_s = after_s


class RequestRefused(RemoteFailed):
    """The server rejects this request."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Address(NamedTuple):
    """Address of the server, where its key is, and its name in messages."""

    url: str
    key_env: str
    key_file: str
    name: str = "The model"


class Remote:
    """One server."""

    def __init__(self, address: Address, ticks: Callable[[], float] = time.monotonic) -> None:
        self.address, self._ticks = address, ticks
        self._lock = threading.Lock()
        self._open: set[http.client.HTTPConnection] = set()
        self._is_closed = False

    def close(self) -> None:
        """Abort running requests, including those that are connecting, and make no more."""
        with self._lock:
            self._is_closed = True
            connections = list(self._open)
        for connection in connections:
            if connection.sock is not None:
                with suppress(OSError):
                    connection.sock.shutdown(2)

    def post(self, path: str, body: bytes, timeout_s: float, max_bytes: int) -> bytes:
        """Send a request and return the body of the response; raise `RemoteFailed`."""
        import http.client  # imported here, as in `_connect`, since most daemons use no server

        name, key, give_up_at = self.address.name, self._key(), self._ticks() + timeout_s
        headers = {"Content-Type": "application/json", "User-Agent": "memoryd"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        host = urlsplit(self.address.url).hostname or ""
        if is_offline() and not is_here(host):
            raise RemoteFailed(f"{name} is not asked: {host} is another machine, and `offline` is set.")
        try:
            with self._connect(timeout_s) as (connection, base):
                connection.connect()
                if self._is_closed:  # while it was connecting, there was nothing to close
                    raise RemoteFailed(f"{name} is not asked: the daemon is stopping.")
                self._limit(connection, give_up_at)
                connection.request("POST", base + path, body, headers)
                with connection.getresponse() as reply:
                    data = self._read(reply, connection, give_up_at, max_bytes)
                    status, after = reply.status, reply.getheader("Retry-After", "")
        except TimeoutError:
            raise Passing(f"{name} did not answer within {timeout_s:g} s.") from None
        except (OSError, http.client.HTTPException) as error:
            raise Passing(f"{name} cannot be reached: {error or type(error).__name__}.") from None
        if status == 200:
            return data
        if status in _PASSING:
            raise Passing(f"{name}'s server answered {status}.", float(after) if after.isdecimal() else 0.0)
        raise RequestRefused(f"{name}'s server answered {status}: {_quote(data, key)}", status)

    def _read(
        self,
        reply: "http.client.HTTPResponse",
        connection: "http.client.HTTPConnection",
        give_up_at: float,
        max_bytes: int,
    ) -> bytes:
        """Return the body; the time limit also holds for a server that sends it slowly."""
        data = bytearray()
        while block := reply.read1(_BLOCK):
            data += block
            if len(data) > max_bytes:
                raise RemoteFailed(f"{self.address.name}'s reply is too large.")
            self._limit(connection, give_up_at)
        return bytes(data)

    def _limit(self, connection: "http.client.HTTPConnection", give_up_at: float) -> None:
        remaining_s = give_up_at - self._ticks()
        if remaining_s <= 0:
            raise TimeoutError
        if connection.sock is not None:
            connection.sock.settimeout(remaining_s)

    @contextmanager
    def _connect(self, timeout_s: float) -> Iterator[tuple["http.client.HTTPConnection", str]]:
        """Open a connection to the server, through the proxy of the environment if any; also yield the base path."""
        import http.client
        from urllib.request import getproxies, proxy_bypass

        url = urlsplit(self.address.url)
        host, timeout_s = url.hostname or "", min(timeout_s, _CONNECT_S)
        kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        proxy = None if is_here(host) or proxy_bypass(host) else getproxies().get(url.scheme)
        if proxy is None:
            connection = kind(host, url.port, timeout=timeout_s)
        else:
            via = urlsplit(proxy)
            connection = kind(via.hostname or "", via.port, timeout=timeout_s)
            connection.set_tunnel(host, url.port)
        with self._lock:
            self._open.add(connection)
        try:
            yield connection, url.path.rstrip("/")
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()

    def _key(self) -> str:
        """Return the key from the file or the environment, empty if there is none."""
        key, place = os.environ.get(self.address.key_env, "").strip(), self.address.key_env
        if file := self.address.key_file:
            try:
                key, place = Path(file).expanduser().read_text().strip(), file
            except (OSError, UnicodeDecodeError) as error:
                raise RemoteFailed(f"The key file {file} cannot be read: {error}.") from None
        if not (key.isascii() and key.isprintable()):  # otherwise `http.client` would quote the key in its error
            raise RemoteFailed(f"The key in {place} is not one line of ASCII.")
        return key


def _quote(data: bytes, key: str) -> str:
    """Return the beginning of a server's error message, without the key, which some servers repeat."""
    text = data[:_TOLD_BYTES].decode("utf-8", "replace")
    return redact(text.replace(key, "[key]") if key else text)[:_TOLD_CHARS].strip()


class Breaker:
    """Circuit breaker: after several failures in a row, pause for `first_s`, then twice as long each time."""

    def __init__(self, failures: int, first_s: float, longest_s: float, ticks: Callable[[], float]) -> None:
        self._failures, self._first_s, self._longest_s, self._ticks = failures, first_s, longest_s, ticks
        self._lock = threading.Lock()
        self._again_at = 0.0
        self.failed = 0  # in a row

    def open(self) -> bool:
        """Return whether there is a pause now."""
        return self._ticks() < self._again_at

    def note(self, worked: bool) -> None:
        """Record the result of an attempt."""
        with self._lock:
            self.failed = 0 if worked else self.failed + 1
            if worked:
                self._again_at = 0.0
            elif self.failed >= self._failures:
                alone_s = min(self._longest_s, self._first_s * 2.0 ** min(30, self.failed - self._failures))
                self._again_at = self._ticks() + alone_s

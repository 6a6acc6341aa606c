"""One connection to a PostgreSQL server: opened with care, given up when it is silent, its errors as sentences.

A server that hangs answers nothing, not even a request to cancel; so after a while in which nothing moved the socket is
shut down, which ends any wait at once. A slow line is no silence: bytes that arrive, or are taken, count. No statement
is prepared: a generic plan ranks badly, and poolers lose prepared statements.
"""

import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import zip_longest
from typing import Any

import psycopg
from psycopg import conninfo, errors, pq
from psycopg.sql import Composed

from memoryd.client.errors import Forbidden, Invalid, MemorydError, Unavailable

CONNECT_S = 5
_DEFAULTS = {
    "connect_timeout": str(CONNECT_S),
    "application_name": "memoryd",
    "keepalives_idle": "30",
    "tcp_user_timeout": "30000",
    "sslmode": "verify-full",
}
# Where systems have the authorities that they trust in one file.
AUTHORITIES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Arch, Alpine
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/ssl/cert.pem",  # macOS
)
_LOCAL = frozenset({"", "localhost", "127.0.0.1", "::1"})
_LOOK_S = 2.0  # between two looks at what moved
_UNSEEN = 4.0  # times longer is waited for all where the system does not say what moved (a Unix socket)
_MOVED = struct.Struct("=120xQQ")  # of Linux' tcp_info: bytes that were acknowledged, bytes that were received

SqlQuery = str | Composed


class ServerConnection:
    """A connection. One thread uses it; `give_up` may be called by any."""

    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        self.connection = connection
        self.has_vectors = False

    def run(self, query: SqlQuery, values: Sequence[Any] | Mapping[str, Any] | None = None) -> "psycopg.Cursor[Any]":
        """Run a statement."""
        return self.connection.execute(query, values)

    def value(self, query: SqlQuery, values: Sequence[Any] | None = None) -> Any:
        """Return the first value of the first row, None without one."""
        row = self.run(query, values).fetchone()
        return row[0] if row else None

    def begin(self) -> AbstractContextManager[object]:
        """Run what is within as one transaction."""
        return self.connection.transaction()

    @contextmanager
    def exchange(self, begin: str = "BEGIN") -> Iterator[None]:
        """Run what is within as one transaction and one round trip; results are there afterwards."""
        try:
            with self.connection.pipeline():
                self.run(begin)
                yield
                self.run("COMMIT")
        except BaseException:
            if self.is_open:
                self.connection.rollback()
            raise

    @contextmanager
    def time_limit(self, limit_s: float) -> Iterator[None]:
        """Give up the connection when it is silent for so long while what is within runs."""
        done = threading.Event()
        threading.Thread(target=self._watch, args=(limit_s, done), name="shared limit", daemon=True).start()
        try:
            yield
        finally:
            done.set()

    def _watch(self, limit_s: float, done: threading.Event) -> None:
        moved, moved_at = self._count_moved(), time.monotonic()
        if moved is None:
            limit_s *= _UNSEEN
        while not done.wait(min(limit_s / 8, _LOOK_S)):
            if moved != (moved := self._count_moved()):
                moved_at = time.monotonic()
            elif time.monotonic() - moved_at >= limit_s:
                self.give_up()
                return

    def _count_moved(self) -> tuple[int, ...] | None:
        """Return how many bytes the server took and sent so far, None where the system does not say."""
        if sys.platform != "linux":
            return None
        with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(self.connection.fileno())) as duplicate:
            if duplicate.family != socket.AF_UNIX:
                told = duplicate.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _MOVED.size)
                return _MOVED.unpack(told) if len(told) == _MOVED.size else None
        return None

    def give_up(self) -> None:
        """End the connection at once, whatever it waits for."""
        with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(self.connection.fileno())) as duplicate:
            duplicate.shutdown(socket.SHUT_RDWR)

    @property
    def is_open(self) -> bool:
        """Whether it can be used, as far as is known."""
        return not (self.connection.closed or self.connection.broken)

    def close(self) -> None:
        """Close it, without waiting for the server."""
        with suppress(psycopg.Error):
            self.connection.close()


def connect(address: str, passfile: str = "") -> ServerConnection:
    """Connect; the password comes from the passfile or the environment. Raise `Unavailable` or `Forbidden`."""
    given = parse(address)
    defaults = {**_DEFAULTS, "sslrootcert": _find_authorities()}  # of no matter for a Unix socket
    if "sslmode" in given:  # the person decided
        defaults.pop("sslrootcert")
    if passfile:
        given["passfile"] = passfile
    try:
        connection = psycopg.connect(**{**defaults, **given}, autocommit=True, prepare_threshold=None)
    except psycopg.Error as error:
        raise failure(error) from None
    return ServerConnection(connection)


def _find_authorities() -> str:
    """Return where the system's authorities are: the TLS library in psycopg's wheel knows only where it was built."""
    if os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR"):
        return "system"  # it takes them from there
    return next((path for path in AUTHORITIES if os.path.isfile(path)), "system")


def is_here(address: str) -> bool:
    """Return whether a server, each where several are named, is on this machine, as far as the address says."""
    given = {option.keyword.decode(): (option.val or b"").decode() for option in pq.Conninfo.get_defaults()}
    given |= parse(address)
    hosts, addresses = str(given.get("host") or "").split(","), str(given.get("hostaddr") or "").split(",")
    named = [at or host for host, at in zip_longest(hosts, addresses, fillvalue="")]
    return not given.get("service") and all(one in _LOCAL or one.startswith("/") for one in named)


def parse(address: str) -> dict[str, Any]:
    """Return the parts of a connection string; raise `Invalid` for one that cannot be used, or holds a password."""
    try:
        given = dict(conninfo.conninfo_to_dict(address))
    except psycopg.ProgrammingError as error:
        raise Invalid(f"The address of the server is wrong: {_line(error)}.") from None
    if given.get("password"):
        raise Invalid("The address holds a password; put it into a passfile (--passfile), or into PGPASSWORD.")
    return given


def failure(error: Exception) -> MemorydError:
    """Return what to say of an error of the server."""
    said = _line(error)
    if isinstance(
        error, errors.InsufficientPrivilege | errors.InvalidPassword | errors.InvalidAuthorizationSpecification
    ):
        return Forbidden(f"This role may not do that on the server: {said}.")
    if isinstance(error, errors.DiskFull):
        return Unavailable(f"The server's disk is full: {said}.")
    if isinstance(error, errors.UndefinedTable | errors.UndefinedFunction | errors.InvalidSchemaName):
        return Forbidden(f"The server has no tables of this memoryd; its owner runs `memctl shared migrate` ({said}).")
    return Unavailable(f"The server cannot be used: {said}.")


def is_passing(error: Exception) -> bool:
    """Return whether the same transaction may succeed at once: another one was in its way."""
    return isinstance(error, errors.SerializationFailure | errors.DeadlockDetected)


def _line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__).rstrip(".")

"""The line to a PostgreSQL server: one connection, on which requests run one after the other.

It is opened by the first request and closed after a quarter of an hour without one. If it fails, requests fail at once
until it may be opened again, after 1, 2, 4 … 60 s. A request that times out fails alone; while it still runs, further
ones fail at once. If the server sends nothing for ten seconds, it is considered hung, and the socket is shut down. Each
request is one transaction, with its own timeouts for statements and locks. The session has no other state, so a
connection pooler may be used.

Threads: any may call `ask` and `close`; requests run on the line's own thread.
"""

import os
import queue
import select
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from memoryd.client.errors import Forbidden, MemorydError, TimedOut, Unavailable
from memoryd.client.transport.postgres.connection import explain, open_connection, transact
from memoryd.daemon.shared.retrying import Retrying

if TYPE_CHECKING:
    import psycopg

R = TypeVar("R")

HUNG_S = 10.0
IDLE_S = 900.0


class Request(NamedTuple):
    """A function of the connection, whether it has transactions of its own, and the future of its result."""

    work: Callable[[Any], Any]
    is_whole: bool
    answer: "Future[Any]"


class PostgresLine(Retrying):
    """The line to one server. `check` examines each new connection; `begin` begins the transaction of a request."""

    def __init__(self, name: str, server: str, check: Callable[[Any], None], begin: Callable[[Any], None]) -> None:
        super().__init__()
        self._name, self._server, self._check, self._begin = name, server, check, begin
        self._lock = threading.Lock()
        self._requests: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._current: Request | None = None
        self._is_late = False  # the current request has timed out
        self._connection: psycopg.Connection[Any] | None = None

    def ask(self, work: Callable[[Any], R], within_s: float, is_whole: bool = False) -> "Future[R]":
        """Run `work` in a transaction, unless it `is_whole`, with its own; the future has the result, or fails."""
        answer: Future[R] = Future()
        request = Request(work, is_whole, answer)
        with self._lock:
            refused: MemorydError | None = None
            if self.stopping.is_set():
                refused = Unavailable("The daemon is stopping.")
            elif self._is_late:
                refused = TimedOut(f"The place of {self._name} is late with an earlier answer.")
            else:
                self._requests.put(request)
        if refused is not None:
            _fail(answer, refused)
            return answer
        timer = threading.Timer(within_s, self._give_up, (request,))
        timer.daemon = True
        timer.start()
        answer.add_done_callback(lambda _: timer.cancel())
        return answer

    def _give_up(self, request: Request) -> None:
        with self._lock:
            self._is_late = self._is_late or self._current is request
        _fail(request.answer, TimedOut(f"The place of {self._name} did not answer in time."))

    def close(self) -> None:
        """End the line; further requests fail."""
        with self._lock:
            self.stopping.set()
            self._requests.put(None)
        if connection := self._connection:
            _cut(connection)

    # The thread ------------------------------------------------------------------------------------------------------

    def work(self) -> None:
        """Serve until `close`."""
        try:
            while True:
                try:
                    request = self._requests.get(timeout=IDLE_S if self._connection else None)
                except queue.Empty:
                    self._end()  # the line is idle
                    continue
                if request is None:
                    break
                if not request.answer.done():  # else it has timed out
                    self._current = request
                    self._answer(request)
                    self._clear_current()
        finally:
            self._clear_current()
            if self._connection is not None:
                self._end()
            while self.stopping.is_set() and not self._requests.empty():
                if request := self._requests.get():
                    _fail(request.answer, Unavailable("The daemon is stopping."))

    def _clear_current(self) -> None:
        with self._lock:
            self._current, self._is_late = None, False

    def _answer(self, request: Request) -> None:
        try:
            connection = self._connect()
            with _cut_when_hung(connection):
                work = request.work
                result = work(connection) if request.is_whole else transact(connection, work, self._begin)
        except MemorydError as error:
            _fail(request.answer, error)
        except Exception as error:
            explained = explain(self._name, error)
            if explained is None:
                _fail(request.answer, error)
                self._end()
                return
            _fail(request.answer, explained)
            if isinstance(explained, Forbidden):
                self._end()  # a new connection shows the present privileges
            elif self._connection is not None and self._connection.closed:
                self._end()
                self._note_failure(explained)
        else:
            with suppress(InvalidStateError):
                request.answer.set_result(result)

    def _connect(self) -> "psycopg.Connection[Any]":
        """Return the connection, opened if necessary; raise if it cannot be opened."""
        connection = self._connection
        if connection is not None and not select.select([connection.fileno()], [], [], 0)[0]:
            return connection
        if connection is not None:  # the server has ended it
            self._end()
        if not self.may_try():
            raise self.reason or Unavailable(f"The place of {self._name} is away.")
        self.state = "connecting"
        try:
            connection = self._connection = open_connection(self._server)
            with _cut_when_hung(connection):
                transact(connection, self._check)
        except Exception as error:
            self._end()
            explained = error if isinstance(error, MemorydError) else explain(self._name, error)
            if explained is None:
                raise
            self._note_failure(explained)
            raise explained from None
        self._note_success()
        return connection

    def _end(self) -> None:
        connection, self._connection = self._connection, None
        self.state = "idle"
        if connection is not None:
            with suppress(Exception):
                connection.close()


@contextmanager
def _cut_when_hung(connection: Any) -> Iterator[None]:
    timer = threading.Timer(HUNG_S, _cut, (connection,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _cut(connection: Any) -> None:
    """Shut a socket down, which wakes the thread that waits for it; the driver has no timeout for an answer."""
    with suppress(Exception), socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)


def _fail(answer: "Future[Any]", error: BaseException) -> None:
    with suppress(InvalidStateError):
        answer.set_exception(error)

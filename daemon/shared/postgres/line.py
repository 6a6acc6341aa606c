"""The line to a PostgreSQL server: one connection, on which one question after the other is answered.

It is opened when something is asked, closed after a quarter of an hour without a question, and opened again after 1,
2, 4 … 60 s when it failed; until then a question fails at once. A question that is late fails alone; while one is, the
next fail at once. A server that says nothing for ten seconds is hung: the socket is shut down. Each question is one
transaction, with limits of its own for a statement and for a lock; nothing else is kept in the session, so that a
pooler may stand between.

Threads: `ask` and `close` by any; the questions run on a thread of the line's own.
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


class Question(NamedTuple):
    """What is to be done with a connection, and where its result goes."""

    work: Callable[[Any], Any]
    answer: "Future[Any]"


class PostgresLine(Retrying):
    """The line to one server. `check` is asked of each new connection; `begin` begins the transaction of a question."""

    def __init__(self, name: str, server: str, check: Callable[[Any], None], begin: Callable[[Any], None]) -> None:
        super().__init__()
        self._name, self._server, self._check, self._begin = name, server, check, begin
        self._lock = threading.Lock()
        self._questions: queue.SimpleQueue[Question | None] = queue.SimpleQueue()
        self._current: Question | None = None
        self._is_late = False  # the current one
        self._connection: psycopg.Connection[Any] | None = None

    def ask(self, work: Callable[[Any], R], within_s: float) -> "Future[R]":
        """Do something in a transaction of its own; the future has the result, or fails."""
        answer: Future[R] = Future()
        question = Question(work, answer)
        with self._lock:
            refused: MemorydError | None = None
            if self.stopping.is_set():
                refused = Unavailable("The daemon is stopping.")
            elif self._is_late:
                refused = TimedOut(f"The place of {self._name} is late with an earlier answer.")
            else:
                self._questions.put(question)
        if refused is not None:
            _fail(answer, refused)
            return answer
        timer = threading.Timer(within_s, self._give_up, (question,))
        timer.daemon = True
        timer.start()
        answer.add_done_callback(lambda _: timer.cancel())
        return answer

    def _give_up(self, question: Question) -> None:
        with self._lock:
            self._is_late = self._is_late or self._current is question
        _fail(question.answer, TimedOut(f"The place of {self._name} did not answer in time."))

    def close(self) -> None:
        """End the line; what is asked from now on fails."""
        with self._lock:
            self.stopping.set()
            self._questions.put(None)
        if connection := self._connection:
            _cut(connection)

    # The thread ------------------------------------------------------------------------------------------------------

    def work(self) -> None:
        """Serve until `close`."""
        try:
            while True:
                try:
                    question = self._questions.get(timeout=IDLE_S if self._connection else None)
                except queue.Empty:
                    self._end()  # nothing was asked for a while
                    continue
                if question is None:
                    break
                if not question.answer.done():  # else it is late already
                    self._current = question
                    self._answer(question)
                    self._begin_anew()
        finally:
            self._begin_anew()
            if self._connection is not None:
                self._end()
            while self.stopping.is_set() and not self._questions.empty():
                if question := self._questions.get():
                    _fail(question.answer, Unavailable("The daemon is stopping."))

    def _begin_anew(self) -> None:
        with self._lock:
            self._current, self._is_late = None, False

    def _answer(self, question: Question) -> None:
        try:
            connection = self._connect()
            with _cut_when_hung(connection):
                result = transact(connection, question.work, self._begin)
        except MemorydError as error:
            _fail(question.answer, error)
        except Exception as error:
            explained = explain(self._name, error)
            if explained is None:
                _fail(question.answer, error)
                self._end()
                return
            _fail(question.answer, explained)
            if isinstance(explained, Forbidden):
                self._end()  # opened again, it says which rights are left, or none
            elif self._connection is not None and self._connection.closed:
                self._end()
                self._note_failure(explained)
        else:
            with suppress(InvalidStateError):
                question.answer.set_result(result)

    def _connect(self) -> "psycopg.Connection[Any]":
        """Return the connection, opened if there is none; raise why there is none."""
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
    """Shut a socket down under who waits for it; the driver has no limit of its own for an answer."""
    with suppress(Exception), socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)


def _fail(answer: "Future[Any]", error: BaseException) -> None:
    with suppress(InvalidStateError):
        answer.set_exception(error)

"""The writer thread: it runs queued jobs together in one transaction, so that they share one sync.

A job is a function of a `Transaction`. In a batch each job has a savepoint, so a failing job rolls back only its own
changes. Its future gets the result after the commit is on disk. A job changes data in RAM (index entries) in
`after_commit`, or reverts that in `call_on_rollback`, so that RAM and disk agree. The writer itself updates the arrays
of all memories whose rows a transaction changed.

If a full or failing disk rolls back a whole batch, each job runs again in its own transaction, to get its own result or
error. A job must therefore not modify its arguments.
"""

import logging
import math
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

import apsw

from memoryd.client.errors import Busy, Conflict, Forbidden, MemorydError, StorageFailed, Unavailable
from memoryd.daemon.store.actor import PRESENT, Actor
from memoryd.daemon.store.changed_rows import RecordedChange, Written
from memoryd.daemon.store.connection import BUSY_TIMEOUT_MS, REPAIR_ADVICE
from memoryd.daemon.store.reserve import Reserve, let_grow
from memoryd.daemon.system.presence import WatchedFile, find_missing
from memoryd.daemon.system.supervisor import Supervisor

T = TypeVar("T")
WriteJob = Callable[["Transaction"], T]
Committed = Callable[[apsw.Connection, set[int], set[int]], None]
Follower = Callable[[list[RecordedChange]], None]

MAX_BATCH = 256
MAX_WAITING = 2048
_BUSY_PAUSE_S = 0.05
_FOLDING_MS = 500  # a checkpoint waits so long for readers
_OF_VECTORS = {"vec_embeddings", "contexts"}
_KEYS = "memories.namespace, memories.key"  # in SQLite's message about two memories with one key
_STEPS = 1_000_000  # SQLite's instructions between two progress reports: some 20 ms

log = logging.getLogger(__name__)


def wait_patiently(submit: Callable[[], "Future[T]"], check: Callable[[], None]) -> T:
    """Return the result of a write; retry while the writer's queue is full, until `check` raises."""
    while True:
        try:
            return submit().result()
        except Busy:
            check()
            time.sleep(_BUSY_PAUSE_S)


class Transaction:
    """The argument of a job: the writer's connection, and actions to run after the commit or a rollback."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self._after: dict[bool, list[Callable[[], None]]] = {True: [], False: []}

    def after_commit(self, action: Callable[[], None]) -> None:
        """Run `action` after the commit, before any reply is sent."""
        self._after[True].append(action)

    def call_on_rollback(self, action: Callable[[], None]) -> None:
        """Run `action` if the job or its transaction is rolled back."""
        self._after[False].append(action)

    def finish(self, committed: bool) -> None:
        """Run the actions in order; a failing one is logged and does not stop the others."""
        for action in self._after[committed]:
            try:
                action()
            except Exception:
                log.exception("an action after a transaction failed")


class _QueuedWrite(NamedTuple):
    job: WriteJob[Any]
    future: Future[Any]
    alone: bool = False
    over_limit: bool = False
    actor: Actor = Actor()  # the caller that queued it
    queued_at: float = math.inf  # on the monotonic clock


_NOTHING_YET = _QueuedWrite(lambda transaction: None, Future())


class Writer:
    """Owns the writing connection and its thread."""

    def __init__(
        self,
        connection: apsw.Connection,
        committed: Committed,
        full: Callable[[], MemorydError],
        max_pages: int,
        supervisor: Supervisor,
        reserve: Reserve,
    ) -> None:
        self._connection, self._reserve = connection, reserve
        self._full = full  # returns the error for a full database
        self._max_pages, self._over_limit = max_pages, True  # 0: no limit
        self._let_grow(False)
        self._committed = committed  # called with the rows of memories, and of texts, that a transaction changed
        self._touched: set[int] = set()  # rows of memories changed in the current transaction
        self._texts: set[int] = set()  # those with a changed full-text entry
        self.touched_vectors = False  # whether a vector or an embedded text was written since the start
        self.follower: Follower | None = None  # gets the changes of each transaction, last
        self._written = Written()
        self.files: list[WatchedFile] = []  # files that must still be at their paths, or writes would be lost
        connection.set_update_hook(self._note)
        self._moved_at: float | None = None  # time of the last progress; None while idle
        connection.set_progress_handler(self._move, _STEPS)
        self._jobs: queue.Queue[_QueuedWrite | None] = queue.Queue(MAX_WAITING)
        self._ahead: _QueuedWrite | None = _NOTHING_YET  # already removed from the queue
        self._refused_until = -math.inf
        self._closing, self._ended = False, threading.Event()
        self._closing_lock = threading.Lock()  # no job may be queued after the end marker
        self._supervisor = supervisor
        self._thread = supervisor.start("writer", self._work, self._ended)

    def submit(self, job: WriteJob[T], alone: bool = False, over_limit: bool = False) -> "Future[T]":
        """Queue a job; its future gets the result when it is on disk. Raise `Busy` if the queue is full.

        A job of thousands of rows runs `alone`, in a transaction without a savepoint: in a savepoint, each statement
        takes longer the more was changed before (SQLite walks its journal in RAM from the start of a list).
        A job that removes something, or records that, may let the file grow `over_limit`, since it adds history first.
        """
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()  # so that the future cannot be cancelled
        with self._closing_lock:
            if self._closing:
                raise StorageFailed("The daemon is stopping; nothing more is written.")
            try:
                self._jobs.put_nowait(_QueuedWrite(job, future, alone, over_limit, PRESENT.get(), time.monotonic()))
            except queue.Full:
                raise Busy("The write queue is full.", {"retry_after_ms": 200}) from None
        return future

    def count_waiting(self) -> int:
        """Return how many jobs are queued."""
        return self._jobs.qsize()

    def silence_s(self) -> float:
        """Return for how many seconds the writer has made no progress, 0 while it is idle."""
        moved_at = self._moved_at
        return 0.0 if moved_at is None else time.monotonic() - moved_at

    def refuse_waiting(self) -> None:
        """Refuse the queued jobs, because the daemon is about to stop."""
        self._refused_until = time.monotonic()

    def finish(self) -> None:
        """Refuse new jobs, finish the queued ones and end the thread."""
        with self._closing_lock:
            self._closing = True
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> float:
        order = self._jobs.get() if self._ahead is _NOTHING_YET else self._ahead
        if order is None:
            self._ended.set()
            return 0.0
        batch, self._ahead = self._take_batch(order)
        self._move()
        try:
            self._write(batch)
        except BaseException as error:  # every future must finish, and one job must not stop the thread
            self._give_up(batch, error)
        self._moved_at = None
        return 0.0

    def _give_up(self, batch: "list[_QueuedWrite]", error: BaseException) -> None:
        """Fail the jobs of a batch with an unexpected error."""
        self._supervisor.note_failure("writer", error)
        for order in batch:
            if not order.future.done():
                order.future.set_exception(StorageFailed(f"Writing failed: {type(error).__name__}: {error}."))

    def _take_batch(self, first: "_QueuedWrite") -> "tuple[list[_QueuedWrite], _QueuedWrite | None]":
        """Return the batch that begins with `first`, and the next order if it was removed from the queue."""
        batch = [first]
        while len(batch) < MAX_BATCH:
            try:
                order = self._jobs.get_nowait()
            except queue.Empty:
                return batch, _NOTHING_YET
            if order is None or order.alone or first.alone:
                return batch, order
            batch.append(order)
        return batch, _NOTHING_YET

    def _write(self, batch: "list[_QueuedWrite]", is_folded: bool = False) -> None:
        """Write a batch in one transaction; if that is rolled back, each job in its own one.

        `is_folded`: this is the retry after a checkpoint.
        """
        try:
            self._check_files()
            outcomes = self._commit(batch)
            self._check_files()
        except BaseException as error:  # including panics of a library, which must not affect the other jobs
            if len(batch) > 1:
                for order in batch:
                    self._write([order])
                return
            if isinstance(error, apsw.FullError | apsw.IOError) and self._make_room(batch[0], is_folded):
                self._write(batch, is_folded=True)
                return
            if not isinstance(error, MemorydError | apsw.Error):
                log.exception("a write job failed")
            batch[0].future.set_exception(self._failure(error))
            return
        for order, outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                order.future.set_exception(outcome)
            else:
                order.future.set_result(outcome)
        if self._reserve.is_spent():
            self._fold_log()
            self._reserve.take_back()
        if self.follower is not None:
            self._notify(self.follower)

    def _check_files(self) -> None:
        """Raise `StorageFailed` if a file of the database was moved or deleted, so that a write would be lost."""
        if missing := find_missing(self.files):
            raise StorageFailed(f"{missing} was deleted or moved; nothing more is stored, and the daemon ends.")

    def _commit(self, batch: "list[_QueuedWrite]") -> list[Any]:
        """Run a batch in one transaction; return each job's result or exception. Raise errors that roll back all."""
        self._touched.clear()
        self._texts.clear()
        self._written.clear()
        outcomes: list[Any] = []
        transaction = Transaction(self._connection)
        transaction.after_commit(lambda: self._committed(self._connection, self._touched, self._texts))
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for order in batch:
                self._move()
                self._let_grow(order.over_limit)
                PRESENT.set(order.actor)
                outcomes.append(self._run(order, transaction, is_only=len(batch) == 1))
            self._let_grow(any(order.over_limit for order in batch))  # FTS5 writes its data at the commit
            self._connection.execute("COMMIT")
        except BaseException:
            try:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
            finally:
                transaction.finish(committed=False)
            raise
        finally:
            with suppress(apsw.Error):  # the next job requests it again
                self._let_grow(False)
        transaction.finish(committed=True)
        return outcomes

    def _let_grow(self, over_limit: bool) -> None:
        if self._max_pages and over_limit != self._over_limit:
            let_grow(self._connection, 0 if over_limit else self._max_pages)
            self._over_limit = over_limit

    def _notify(self, follower: Follower) -> None:
        try:
            if changes := self._written.read(self._connection):
                follower(changes)
        except Exception:
            log.exception("what a transaction changed could not be reported")

    def _move(self) -> bool:
        """Record progress. SQLite calls this at intervals and continues if it returns False."""
        self._moved_at = time.monotonic()
        return False

    def _note(self, kind: int, database: str, table: str, row: int) -> None:
        if table == "memories":
            self._touched.add(row)
        elif table == "memories_fts_docsize":  # FTS5's shadow table with one row per entry
            self._texts.add(row)
        elif table in _OF_VECTORS:
            self.touched_vectors = True
        if self.follower is not None:
            self._written.note(kind, table, row)

    def _make_room(self, order: _QueuedWrite, is_folded: bool) -> bool:
        """Free room on a full disk by a checkpoint and, for deletions, from the reserve; return whether that helped."""
        if not is_folded and self._reserve.is_disk_full():
            self._fold_log()
            if not self._reserve.is_disk_full():
                return True
        if not order.over_limit or not self._reserve.release():
            return False
        self._fold_log()
        return True

    def _fold_log(self) -> None:
        """Checkpoint and truncate the write-ahead log to free its room on a full disk."""
        with suppress(apsw.Error):
            self._connection.set_busy_timeout(_FOLDING_MS)
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._connection.set_busy_timeout(BUSY_TIMEOUT_MS)

    def _run(self, order: _QueuedWrite, transaction: Transaction, is_only: bool) -> Any:
        if order.queued_at <= self._refused_until:
            return Unavailable("The daemon is stopping.", {"retry_after_ms": 100})
        if not order.over_limit and self._reserve.is_spent():
            return self._reserve.build_error()
        return order.job(transaction) if is_only else self._attempt(order.job, transaction)

    def _attempt(self, job: WriteJob[Any], transaction: Transaction) -> Any:
        """Run one job in a savepoint; return its result or exception. Raise errors that ended the whole transaction."""
        mine = Transaction(self._connection)
        self._connection.execute("SAVEPOINT job")
        try:
            result = job(mine)
            self._connection.execute("RELEASE job")
        except Exception as error:
            if self._connection.in_transaction:  # otherwise SQLite has rolled back everything, including the savepoint
                self._connection.execute("ROLLBACK TO job")
                self._connection.execute("RELEASE job")
            mine.finish(committed=False)
            if isinstance(error, apsw.IOError) or not self._connection.in_transaction:
                raise
            if not isinstance(error, MemorydError | apsw.Error):
                log.exception("a write job failed")
            return self._failure(error)
        transaction.after_commit(lambda: mine.finish(committed=True))
        transaction.call_on_rollback(lambda: mine.finish(committed=False))
        return result

    def _failure(self, error: BaseException) -> BaseException:
        if isinstance(error, apsw.CorruptError):
            log.error("writing failed: %s", error)
            return StorageFailed(f"The database is damaged; nothing was written. {REPAIR_ADVICE}")
        if getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_FSYNC:
            log.error("the disk did not confirm a write: %s", error)
            return StorageFailed("The disk did not confirm the write: it may or may not be stored; look first.")
        if isinstance(error, apsw.FullError):
            log.error("writing failed: %s", error)
            return self._full()
        if isinstance(error, apsw.ConstraintError) and _KEYS in str(error):
            return Conflict("Another memory of the namespace has the same key.")
        if getattr(error, "extendedresult", 0) == apsw.SQLITE_CONSTRAINT_TRIGGER:
            return Forbidden(f"Nothing was changed: {error}.")
        if isinstance(error, apsw.Error | OSError):
            log.error("writing failed: %s", error)
            return StorageFailed(f"The database cannot be written: {error}.")
        return error

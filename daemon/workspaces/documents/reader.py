"""Reading files through a child process, so that no thread of the daemon parses.

Each `read` or `scan` has a child for itself while it lasts; one child is kept for the next and ends after some idle
seconds. A child that dies is replaced, and the file that it was at is tried once more. Any thread may use a Reader.
"""

import os
import select
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from fcntl import F_SETPIPE_SZ, fcntl
from pathlib import Path
from threading import Lock, Timer

from memoryd.client.errors import Unavailable, error_for
from memoryd.client.transport.batches import split_evenly
from memoryd.daemon.workspaces.documents.document import Document, Limits, Scan, check_relative, refusal
from memoryd.daemon.workspaces.documents.wire import LENGTH, Read, ReaderReply, Walk, frame, replies

COMMAND = [sys.executable, "-P", "-m", "memoryd.daemon.workspaces.documents"]
IDLE_S = 10.0
REPLY_LIMIT_S = 120.0  # a child that says nothing for so long is ended; it gives a file half of that
BATCH = 64  # files asked for at once
STRIKES = 2  # a file that ended so many children is not tried again
PIPE_BYTES = 1 << 20
END_LIMIT_S = 2.0


class FileReader:
    """Reads files and scans folders."""

    def __init__(self, limits: Limits = Limits(), idle_s: float = IDLE_S) -> None:  # noqa: B008  it cannot change
        self._limits, self._idle_s = limits, idle_s
        self._lock = Lock()
        self._idle: _Child | None = None
        self._timer: Timer | None = None
        self._busy = set[_Child]()
        self._closed = False

    def read(self, root: Path, relatives: Sequence[str]) -> Iterator[tuple[str, Document | None]]:
        """Yield each file with what it holds, in order; None: there is no such file (any more).

        Raise `NotFound` when there is no root. A file that is not read is a document whose `problem` says why.
        """
        for relative in relatives:
            check_relative(relative)
        at, strikes = 0, 0
        while at < len(relatives):
            with self._start_child() as child:
                try:
                    for relative, document in self._read_batches(child, root, relatives[at:]):
                        yield relative, document
                        at, strikes = at + 1, 0
                except _Died:
                    self._check_open()
                    strikes += 1
            if strikes == STRIKES:
                yield relatives[at], refusal(root, relatives[at], "Reading it ended the reading process, twice.")
                at, strikes = at + 1, 0

    def scan(self, root: Path, globs: Sequence[str]) -> Scan:
        """Do what `scan.scan` does, in the child."""
        for _ in range(STRIKES):
            with self._start_child() as child:
                try:
                    child.send(Walk(os.fspath(root), list(globs)))
                    found = child.receive().scan
                    assert found is not None
                    return found
                except _Died:
                    self._check_open()
        raise Unavailable(f"The folder {root} cannot be looked through: the reading process ended, twice.")

    def close(self) -> None:
        """End all children; a `read` under way raises `Unavailable`."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, None
            busy = list(self._busy)
            self._stop_timer()
        for child in busy:
            child.kill()
        if idle:
            idle.end()

    def _read_batches(self, child: "_Child", root: Path, left: Sequence[str]) -> Iterator[tuple[str, Document | None]]:
        for batch in split_evenly(left, BATCH):
            child.send(Read(os.fspath(root), batch, self._limits))
            for relative in batch:
                yield relative, child.receive().document

    # Children --------------------------------------------------------------------------------------------------------

    @contextmanager
    def _start_child(self) -> "Iterator[_Child]":
        child = self._take()
        try:
            yield child
        finally:
            self._give_back(child)

    def _take(self) -> "_Child":
        with self._lock:
            self._check_open()
            self._stop_timer()
            child, self._idle = self._idle, None
        child = child or _Child()
        with self._lock:
            closed = self._closed
            if not closed:
                self._busy.add(child)
        if closed:
            child.end()
            self._check_open()
        return child

    def _give_back(self, child: "_Child") -> None:
        with self._lock:
            self._busy.discard(child)
            if child.free and not self._idle and not self._closed:
                self._idle = child
                self._timer = Timer(self._idle_s, self._end_idle)
                self._timer.daemon = True
                self._timer.start()
                return
        child.end()

    def _end_idle(self) -> None:
        with self._lock:
            child, self._idle, self._timer = self._idle, None, None
        if child:
            child.end()

    def _stop_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("The daemon is stopping.")


class _Died(Exception):
    """The child ended, or was ended because it said nothing."""


class _Child:
    """One child process; used by one thread at a time."""

    def __init__(self) -> None:
        try:
            # Its own session: Ctrl-C in a terminal is for the daemon.
            self._process = subprocess.Popen(
                COMMAND,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise Unavailable(f"The process that reads files cannot be started: {error.strerror}.") from None
        assert self._process.stdin
        assert self._process.stdout
        self._to, self._from = self._process.stdin, self._process.stdout
        self._received = bytearray()
        self._awaited = 0  # replies
        with suppress(OSError):  # a smaller pipe only means more turns
            fcntl(self._from, F_SETPIPE_SZ, PIPE_BYTES)

    @property
    def free(self) -> bool:
        """Return whether it waits for a request."""
        return not self._awaited and self._process.poll() is None

    def send(self, request: Read | Walk) -> None:
        """Send a request."""
        self._awaited = len(request.relatives) if isinstance(request, Read) else 1
        view = memoryview(frame(request))
        try:
            while view:
                view = view[self._to.write(view) :]
        except BrokenPipeError:
            raise _Died from None

    def receive(self) -> ReaderReply:
        """Return the next reply; raise the error that it holds."""
        (size,) = LENGTH.unpack(self._take(LENGTH.size))
        reply = replies.decode(self._take(size))
        self._awaited -= 1
        if reply.error:
            raise error_for(*reply.error)
        return reply

    def _take(self, size: int) -> bytes:
        poll = select.poll()
        poll.register(self._from, select.POLLIN)
        while len(self._received) < size:
            if not poll.poll(REPLY_LIMIT_S * 1000):
                raise _Died
            part = os.read(self._from.fileno(), PIPE_BYTES)
            if not part:
                raise _Died
            self._received += part
        taken = bytes(self._received[:size])
        del self._received[:size]
        return taken

    def kill(self) -> None:
        """End it at once; whoever uses it finds it dead."""
        self._process.kill()
        self._process.wait()

    def end(self) -> None:
        """End it, at once when it is at work, and leave nothing of it behind."""
        if not self.free:
            self._process.kill()
        with suppress(BrokenPipeError):
            self._to.close()
        self._from.close()
        try:
            self._process.wait(END_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.kill()

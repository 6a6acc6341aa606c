"""Read files in a child process, so that no thread of the daemon parses.

The child serves one request after the other; any thread may send one. If the child crashes at a file or takes too
long, that file is not read, and a new child reads the next one.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing import Pipe
from pathlib import Path
from threading import Lock, Thread

from memoryd.client.errors import Unavailable, error_for
from memoryd.daemon.workspaces.documents.document import Document, Limits, Scan, check_relative, refusal
from memoryd.daemon.workspaces.documents.messages import Read, ReaderReply, Walk, encoder, replies

COMMAND = [sys.executable, "-P", "-m", "memoryd.daemon.workspaces.documents"]
FILE_LIMIT_S = 60.0
SCAN_LIMIT_S = 120.0


class FileReader:
    """Reads files and scans folders."""

    def __init__(self, limits: Limits = Limits()) -> None:  # noqa: B008  it cannot change
        self._limits = limits
        self._lock = Lock()  # held during a request
        self._child: _Child | None = None
        self._closed = False

    def read(self, root: Path, relatives: Sequence[str]) -> Iterator[tuple[str, Document | None]]:
        """Yield each path, in order, with its document, or with None if the file does not exist.

        Raise `NotFound` if the root does not exist. The document of a file that is not read has a `problem`.
        """
        for relative in relatives:
            check_relative(relative)
        for relative in relatives:
            try:
                yield relative, self._ask(Read(os.fspath(root), relative, self._limits), FILE_LIMIT_S).document
            except _NoReplyError as error:
                yield relative, refusal(root, relative, f"Reading it {error}.")

    def scan(self, root: Path, globs: Sequence[str]) -> Scan:
        """Run `walking.scan` in the child."""
        try:
            found = self._ask(Walk(os.fspath(root), list(globs)), SCAN_LIMIT_S).scan
        except _NoReplyError as error:
            raise Unavailable(f"The folder {root} cannot be scanned: that {error}.") from None
        assert found is not None
        return found

    def close(self) -> None:
        """Kill the child; a running `read` raises `Unavailable`."""
        self._closed = True
        if child := self._child:
            child.kill()
            with self._lock:  # a running `read` releases it when the child is dead
                child.close()

    def _ask(self, request: Read | Walk, limit_s: float) -> ReaderReply:
        with self._lock:
            try:
                reply = self._ask_child(encoder.encode(request), limit_s)
            except _NoReplyError:
                self._check_open()
                raise
        if reply.error:
            raise error_for(*reply.error)
        return reply

    def _ask_child(self, request: bytes, limit_s: float) -> ReaderReply:
        for _ in range(2):
            if self._child is None or self._child.has_ended():
                self._check_open()
                self._child = _Child()
            if self._closed:  # meanwhile
                self._child.kill()
            with suppress(_IdleError):
                return replies.decode(self._child.ask(request, limit_s))
        raise _NoReplyError("ended the reading process")

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("The daemon is stopping.")


class _NoReplyError(Exception):
    """The child ended by itself, or was killed because it took too long; the message says which."""


class _IdleError(Exception):
    """The child had just ended because it got no request for a while."""


class _Child:
    """One child process; used by one thread at a time."""

    def __init__(self) -> None:
        self._end, theirs = Pipe()
        with theirs:
            try:
                # A session of its own, so that Ctrl-C in a terminal reaches only the daemon.
                self._process = subprocess.Popen(
                    COMMAND,
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError as error:
                self._end.close()
                raise Unavailable(f"The process that reads files cannot be started: {error.strerror}.") from None
        Thread(target=self._process.wait, name="reader-child", daemon=True).start()  # leaves no zombie

    def has_ended(self) -> bool:
        """Return whether the child has ended; if so, close the socket."""
        if self._process.poll() is None:
            return False
        self.close()
        return True

    def ask(self, request: bytes, limit_s: float) -> bytes:
        """Return the reply to a request; without a reply, close the socket and raise."""
        try:
            self._end.send_bytes(request)
            if self._end.poll(limit_s):
                return self._end.recv_bytes()
        except (EOFError, OSError):
            self.close()
            if self._process.wait() == 0:
                raise _IdleError from None
            raise _NoReplyError("ended the reading process") from None
        self.kill()
        self.close()
        raise _NoReplyError(f"took more than {limit_s:g} s")

    def kill(self) -> None:
        """Kill the child; a thread that waits for its reply gets an error."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Close the socket, so that the child ends."""
        self._end.close()

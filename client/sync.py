"""The blocking client.

Safe across threads: each call takes a connection of its own from a pool. Safe across fork: a child process starts with
an empty pool, so that two processes never read one stream.
"""

import os
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar

from memoryd.client import paths
from memoryd.client.calls import Methods, add_many_calls, joined, namespace_text
from memoryd.client.errors import Busy, TimedOut, Unavailable
from memoryd.client.exchange import decode_reply, encode_call, placed, progress_of, result_of
from memoryd.client.frames import FrameReader
from memoryd.client.protocol import READS, AddedMany, Call, NewMemory, Progress, Reply

R = TypeVar("R")
OnProgress = Callable[[Progress], None]


class Client(Methods):
    """A connection to the daemon, which it starts when none answers (unless `autostart` is false).

    `namespace` is the caller's place (a tuple or `acme/api/alpha`), `timeout_s` the limit of one call: the time without
    any word from the daemon, so that a long call which reports progress does not run into it.
    """

    def __init__(
        self,
        namespace: str | Sequence[str] | None = None,
        *,
        socket: str | os.PathLike[str] | None = None,
        timeout_s: float = 30.0,
        autostart: bool = True,
    ) -> None:
        self.namespace = namespace_text(namespace if namespace is not None else os.environ.get("MEMORYD_NAMESPACE"))
        self.socket_path = paths.socket_path(socket)
        self.timeout_s = timeout_s
        self.autostart = autostart
        self._idle: list[_Connection] = []
        self._owner_pid = os.getpid()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the idle connections; the client may be used again."""
        while self._idle:
            self._idle.pop().close()

    def call(self, call: Call[R], on_progress: OnProgress | None = None) -> R:
        """Send one call and return its result.

        Raise the daemon's error, `Unavailable` when no daemon answers, `TimedOut` when it does not reply in time. While
        the daemon is busy the call is tried again, up to `timeout_s`; then `Busy` is raised.
        """
        call = placed(call, self.namespace)
        give_up_at = time.monotonic() + self.timeout_s
        while True:
            try:
                return result_of(call, self._exchange(call, on_progress))
            except Busy as busy:
                delay_s = busy.data.get("retry_after_ms", 50) / 1000
                if time.monotonic() + delay_s > give_up_at:
                    raise
                time.sleep(delay_s)

    def add_many(
        self,
        memories: Iterable[NewMemory | Mapping[str, Any]],
        *,
        dedup: bool = True,
        dedup_threshold: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> AddedMany:
        """Remember many memories; one transaction, or several where they would not fit into one frame of 16 MiB."""
        calls = add_many_calls(memories, dedup=dedup, dedup_threshold=dedup_threshold)
        return joined([self.call(call, on_progress) for call in calls])

    def _exchange(self, call: Call[Any], on_progress: OnProgress | None) -> Reply:
        connection = self._take()
        try:
            reply = connection.exchange(call, self.timeout_s, on_progress)
        except TimeoutError:
            connection.close()
            raise TimedOut(f"The daemon did not reply within {self.timeout_s:g} s.") from None
        except OSError:
            connection.close()
            if type(call) in READS:
                return self._once_more(call, on_progress)
            raise Unavailable(
                "The connection broke before the reply; the change may or may not have been made. Read, then repeat it."
            ) from None
        except BaseException:
            connection.close()  # a stray reply must never answer a later call
            raise
        self._idle.append(connection)
        return reply

    def _once_more(self, call: Call[Any], on_progress: OnProgress | None) -> Reply:
        connection = self._connect()
        try:
            reply = connection.exchange(call, self.timeout_s, on_progress)
        except OSError as error:
            connection.close()
            raise Unavailable(f"The connection to the daemon broke twice: {error}.") from None
        self._idle.append(connection)
        return reply

    def _take(self) -> "_Connection":
        if self._owner_pid != os.getpid():
            self.close()
            self._owner_pid = os.getpid()
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread was faster
                break
            if connection.is_open():
                return connection
            connection.close()
        return self._connect()

    def _connect(self) -> "_Connection":
        try:
            return _Connection(self.socket_path, self.timeout_s)
        except OSError as error:
            if not self.autostart:
                raise Unavailable(
                    f"No daemon answers at {self.socket_path} ({error.strerror or error}); start one with `memctl up`."
                ) from None
        from memoryd.client import spawn

        spawn.start(self.socket_path)
        try:
            return _Connection(self.socket_path, self.timeout_s)
        except OSError as error:
            raise Unavailable(f"The daemon was started but does not answer at {self.socket_path}: {error}.") from None


class _Connection:
    """One stream to the daemon with one call under way at a time."""

    def __init__(self, path: os.PathLike[str], timeout_s: float) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._reader = FrameReader()
        self._last_id = 0
        try:
            self._socket.settimeout(timeout_s)
            self._socket.connect(os.fspath(path))
        except BaseException:
            self._socket.close()
            raise

    def exchange(self, call: Call[Any], timeout_s: float, on_progress: OnProgress | None) -> Reply:
        """Send the call and return its final reply; OSError when the stream breaks."""
        self._last_id += 1
        self._socket.settimeout(timeout_s)
        data = encode_call(call, self._last_id)
        with suppress(BrokenPipeError):  # the daemon may have said why before it closed: read on
            self._socket.sendall(data)
        while True:
            received = self._socket.recv(262144)
            if not received:
                raise ConnectionResetError("the daemon closed the connection")
            for payload in self._reader.feed(received):
                reply = decode_reply(payload)
                if (event := progress_of(reply)) is None:
                    return reply
                if on_progress:
                    on_progress(event)

    def is_open(self) -> bool:
        """Tell whether an idle stream is still there, so that a restarted daemon costs no failed call."""
        self._socket.setblocking(False)
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False  # its end, or a reply that nobody waits for

    def close(self) -> None:
        self._socket.close()

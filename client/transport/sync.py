"""The blocking client.

Thread-safe: each call takes a connection of its own from a pool. Fork-safe: a child process starts with an empty pool,
so that two processes never read from one stream.
"""

import os
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Self, TypeVar

from memoryd.client.calls import add_many_calls, subscribe
from memoryd.client.errors import MemorydError, Unavailable
from memoryd.client.fields import GivenMemory, Words
from memoryd.client.protocol import DECLARED, AddedMany, Call, Reach, Reply
from memoryd.client.transport.batches import extend_error, join_added
from memoryd.client.transport.endpoint import Endpoint, describe_silent
from memoryd.client.transport.exchange import (
    Breaks,
    BrokenStream,
    OnProgress,
    encode_call,
    result_of,
    retry_after_s,
    set_namespace,
)
from memoryd.client.transport.stream import Stream, connect

if TYPE_CHECKING:
    import socket

    from memoryd.client.transport.subscription import Subscription

R = TypeVar("R")


class Client(Endpoint):
    """A connection to the daemon, which is started if none answers (unless `autostart` is false).

    `namespace` is the caller's namespace (a tuple or `acme/api/alpha`, `/` is the root), by default that of
    `MEMORYD_NAMESPACE`, else of the project (git checkout) of the current folder, else the root. `timeout_s` limits the
    time without a reply from the daemon, so that a long call does not time out while it reports progress. With a
    `token` (or `MEMORYD_TOKEN`) the client has only the token's namespace and rights.
    """

    def _prepare_streams(self) -> None:
        self._idle: list[Stream] = []
        self._owner_pid = os.getpid()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections, those of running calls when these end; the client can be used again."""
        pool, self._idle = self._idle, []
        _close_all(pool)

    def call(self, call: Call[R], on_progress: OnProgress | None = None) -> R:
        """Send one call and return its result.

        Raise the daemon's error, `Unavailable` if no daemon answers, `TimedOut` if it does not reply in time. While the
        daemon is busy or restarts, the call is repeated for up to `timeout_s`.
        """
        call = set_namespace(call, self.namespace)
        give_up_at = time.monotonic() + self.timeout_s
        while True:
            try:
                return self._postprocess(call, result_of(call, self._exchange(call, on_progress)))
            except MemorydError as error:
                delay_s = retry_after_s(error)
                if delay_s is None or time.monotonic() + delay_s > give_up_at:
                    raise
                time.sleep(delay_s)

    def _send_built(self, build: Callable[[], Call[R]]) -> R:
        return self.call(build())

    def add_many(
        self,
        memories: Iterable[GivenMemory],
        *,
        dedup: bool = True,
        dedup_threshold: float | None = None,
        allow_secrets: bool = False,
        on_progress: OnProgress | None = None,
    ) -> AddedMany:
        """Remember many memories, which are texts or mappings of the fields of `add`, as one operation, or as several
        if they do not fit into one frame of 16 MiB.

        The daemon commits them in parts. If it refuses a later part, the error's `data["stored"]` is the number of
        memories stored before it, and `data["operations"]` are the operations to `undo`.
        """
        calls = add_many_calls(memories, dedup=dedup, dedup_threshold=dedup_threshold, allow_secrets=allow_secrets)
        done: list[AddedMany] = []
        for call in calls:
            try:
                done.append(self.call(call, on_progress))
            except MemorydError as error:
                raise extend_error(error, done) from None
        return join_added(done)

    def subscribe(
        self, kinds: Words = (), *, reach: Reach | None = None, limit: int | None = None, idle_s: float | None = None
    ) -> "Subscription":
        """Follow events within reach from now on: return an iterator, which has a connection of its own.

        It ends after `limit` events, after `idle_s` without any, or when it is closed (it is a context manager). If the
        daemon stops, it raises `Unavailable`.
        """
        from memoryd.client.transport.subscription import Subscription

        call = set_namespace(subscribe(kinds, reach=reach, limit=limit), self.namespace)
        return Subscription(self._connect(), encode_call(call, next(self._ids)), self.timeout_s, idle_s)

    def _exchange(self, call: Call[Any], on_progress: OnProgress | None) -> Reply:
        data, reads = encode_call(call, next(self._ids)), DECLARED[type(call)].reads
        connect, breaks = self._take, Breaks(call)
        while True:
            try:
                return self._send(connect(), data, on_progress, reads)
            except BrokenStream as broken:
                pause_s = breaks.next_pause_s(broken, time.monotonic())
            time.sleep(pause_s)
            connect = self._connect

    def _send(self, connection: Stream, data: bytes, on_progress: OnProgress | None, reads: bool) -> Reply:
        pool = self._idle
        try:
            reply = connection.exchange(data, self.timeout_s, on_progress, reads)
        except BaseException:
            connection.close()  # a late reply must not be read by the next call
            raise
        pool.append(connection)
        if pool is not self._idle:  # closed meanwhile
            _close_all(pool)
        return reply

    def _take(self) -> Stream:
        if self._owner_pid != os.getpid():
            self.close()
            self._owner_pid = os.getpid()
        while connection := _pop(self._idle):
            if connection.is_open():
                return connection
            connection.close()
        return self._connect()

    def _connect(self) -> Stream:
        try:
            return Stream(connect(self._address, self.timeout_s), self._greeting)
        except OSError as error:
            address = self._find_or_start(error)
        try:
            return Stream(connect(address, self.timeout_s), self._greeting)
        except OSError as error:
            raise describe_silent(address, error) from None


def detach(client: Client) -> "socket.socket":
    """Take the socket of the latest call from a client and return it; raise `Unavailable` if there is none."""
    if (connection := _pop(client._idle)) is None:
        raise Unavailable("The daemon has closed the connection; repeat the call.")
    return connection.detach()


def _pop(pool: list[Stream]) -> Stream | None:
    try:
        return pool.pop()  # checking first would race with other threads
    except IndexError:
        return None


def _close_all(pool: list[Stream]) -> None:
    while connection := _pop(pool):
        connection.close()

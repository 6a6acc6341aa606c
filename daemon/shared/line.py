"""The line to a place: one session of ssh, with any number of calls under way.

It is opened by the first request and closed after a quarter of an hour without one. If it fails, requests fail at once
until it may be opened again, after 1, 2, 4 … 60 s. If the place sends nothing for ten seconds although replies are due,
it is considered hung: the socket is shut down and the program killed. A request that times out fails alone; further
requests then fail at once until the place sends something.

Threads: any may call `ask` and `close`; the line's own thread does the rest, and completes the futures.
"""

import os
import selectors
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, NamedTuple

from memoryd.client.errors import BadFrame, MemorydError, TimedOut, Unavailable
from memoryd.client.protocol import Call, Reply
from memoryd.client.protocol.shared import Greeting
from memoryd.client.transport.exchange import decode_reply, encode_call
from memoryd.client.transport.frames import FrameReader
from memoryd.client.transport.ssh import explain, place_of, read_greeting, say_no_memoryd
from memoryd.daemon.shared.retrying import Retrying

HUNG_S = 10.0
IDLE_S = 900.0
_BLOCK_BYTES = 256 * 1024


class Request(NamedTuple):
    """An encoded call, its deadline, and the future of its reply."""

    id: int
    frame: bytes
    give_up_at: float  # on the monotonic clock
    reply: "Future[Reply]"


class Line(Retrying):
    """The line to one place; `command` is the program whose input and output speak memoryd's frames."""

    def __init__(self, name: str, command: Sequence[str], check: Callable[[Greeting], None]) -> None:
        super().__init__()
        self._name, self._command, self._check = name, list(command), check
        self._lock = threading.Lock()
        self._new: list[Request] = []
        self._next_id = 1
        self._waiting: dict[int, Request] = {}  # this and the following: used by the line's thread only
        self._unsent: deque[Request] = deque()
        self._outgoing = b""
        self._frames = FrameReader()
        self._socket: socket.socket | None = None
        self._stderr: int | None = None  # a pipe from the program's stderr
        self._child: subprocess.Popen[bytes] | None = None
        self._selector = selectors.DefaultSelector()
        self._is_late = False
        self._received_at = self._asked_at = self._used_at = 0.0  # `asked`: since when replies are due
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._selector.register(self._wake_out, selectors.EVENT_READ)

    def ask(self, call: Call[Any], within_s: float) -> "Future[Reply]":
        """Send a call; the future has its reply, or fails with `Unavailable` or `TimedOut`."""
        reply: Future[Reply] = Future()
        with self._lock:
            number, self._next_id = self._next_id, self._next_id + 1
            request = Request(number, encode_call(call, number), time.monotonic() + within_s, reply)
            is_open = not self.stopping.is_set()
            if is_open:
                self._new.append(request)
        if is_open:
            self._wake()
        else:
            _fail(request, Unavailable("The daemon is stopping."))
        return reply

    def close(self) -> None:
        """End the line; further requests fail."""
        with self._lock:
            self.stopping.set()
        self._wake()

    def _wake(self) -> None:
        with suppress(OSError):  # the thread is already woken, or has ended
            self._wake_in.send(b"w")

    # The thread ------------------------------------------------------------------------------------------------------

    def work(self) -> None:
        """Serve until `close`."""
        try:
            while not self.stopping.is_set():
                self._step()
        finally:
            self._end(Unavailable("The daemon is stopping.") if self.stopping.is_set() else self._broken(""))
            if self.stopping.is_set():
                self._selector.close()
                self._wake_in.close()
                self._wake_out.close()

    def _step(self) -> None:
        now = time.monotonic()
        self._take_requests(now)
        self._give_up(now)
        if self._socket and not self._waiting and now - self._used_at > IDLE_S:
            self._end(None)
        for key, events in self._selector.select(self._find_pause(now)):
            if key.fileobj is self._wake_out:
                with suppress(OSError):
                    self._wake_out.recv(4096)
            elif key.fileobj is self._socket:
                self._exchange(events)

    def _find_pause(self, now: float) -> float | None:
        """Return the seconds until something is due, None for never."""
        due = [request.give_up_at for request in self._waiting.values()]
        if self._socket:
            due.append(
                max(self._received_at, self._asked_at) + HUNG_S if self._expects_data() else self._used_at + IDLE_S
            )
        return max(0.0, min(due) - now) + 0.001 if due else None

    def _expects_data(self) -> bool:
        """Return whether the place has still to send something."""
        return bool(self._waiting) or self._is_late or self.state == "connecting"

    def _take_requests(self, now: float) -> None:
        with self._lock:
            new, self._new = self._new, []
        if not new:
            return
        if self._socket is None and now >= self._again_at:
            self._open(now)
        for request in new:
            if self._socket is None:
                _fail(request, self.reason or self._broken(""))
            elif self._is_late:
                _fail(request, TimedOut(f"{place_of(self._name)} is late with earlier answers."))
            else:
                if not self._expects_data():
                    self._asked_at = now
                self._used_at = now
                self._waiting[request.id] = request
                self._unsent.append(request)
        self._watch()

    def _open(self, now: float) -> None:
        ours, theirs = socket.socketpair()
        stderr_read, stderr_write = os.pipe()
        try:
            way = theirs.fileno()
            self._child = subprocess.Popen(
                self._command, stdin=way, stdout=way, stderr=stderr_write, start_new_session=True
            )
        except OSError as error:
            ours.close()
            os.close(stderr_read)
            self._note_failure(Unavailable(f"{self._command[0]} cannot be started: {error.strerror}."))
            return
        finally:
            theirs.close()
            os.close(stderr_write)
        ours.setblocking(False)
        os.set_blocking(stderr_read, False)
        self._socket, self._stderr = ours, stderr_read
        self._frames, self._outgoing, self._is_late = FrameReader(), b"", False
        self._received_at = self._asked_at = self._used_at = now
        self._unsent.clear()
        self.state = "connecting"
        self._selector.register(ours, selectors.EVENT_READ)

    def _watch(self) -> None:
        if self._socket:
            wants = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._may_send() else 0)
            self._selector.modify(self._socket, wants)

    def _may_send(self) -> bool:
        """Return whether there is something to send, and the place has accepted the line."""
        return self.state == "ready" and bool(self._outgoing or self._unsent)

    def _exchange(self, events: int) -> None:
        assert self._socket
        try:
            if events & selectors.EVENT_READ:
                received = self._socket.recv(_BLOCK_BYTES)
                if not received:
                    raise self._broken("it ended the line")
                self._receive(received)
            if self._socket and self._may_send():
                while self._unsent and not self._outgoing:  # a request that timed out before it was sent is skipped
                    request = self._unsent.popleft()
                    self._outgoing = request.frame if request.id in self._waiting else b""
                self._outgoing = self._outgoing[self._socket.send(self._outgoing) :]
        except BlockingIOError:
            pass
        except BadFrame:
            self._end(Unavailable(say_no_memoryd(place_of(self._name))))
        except MemorydError as error:
            self._end(error)
        except OSError as error:
            self._end(self._broken(error.strerror or str(error)))
        self._watch()

    def _receive(self, data: bytes) -> None:
        self._received_at, self._is_late = time.monotonic(), False
        for payload in self._frames.feed(data):
            reply = decode_reply(payload)
            if self.state == "connecting":
                self._greet(reply)
            elif (request := self._waiting.pop(reply.id, None)) and request.reply.set_running_or_notify_cancel():
                request.reply.set_result(reply)

    def _greet(self, reply: Reply) -> None:
        """Read the first frame, which names the token of the line, or says why it is refused."""
        self._check(read_greeting(place_of(self._name), reply, self._name))
        self._note_success()

    def _give_up(self, now: float) -> None:
        for request in [one for one in self._waiting.values() if one.give_up_at <= now]:
            del self._waiting[request.id]
            self._is_late = self._is_late or self.state == "ready"
            _fail(request, TimedOut(f"{place_of(self._name)} did not answer in time."))
        if self._socket and self._expects_data() and now - max(self._received_at, self._asked_at) > HUNG_S:
            self._end(Unavailable(f"{place_of(self._name)} says nothing; the line was cut."))

    def _broken(self, why: str) -> Unavailable:
        words = b""
        if self._stderr is not None:
            with suppress(BlockingIOError):
                words = os.read(self._stderr, _BLOCK_BYTES)
        return Unavailable(explain(place_of(self._name), words, why))

    def _end(self, error: MemorydError | None) -> None:
        """Close the line, because of an error or because it is idle; pending requests fail."""
        if self._socket:
            self._selector.unregister(self._socket)
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()
            self._socket = None
        if self._stderr is not None:
            os.close(self._stderr)
            self._stderr = None
        if self._child:
            self._child.kill()
            self._child.wait()
            self._child = None
        with self._lock:
            new, self._new = (self._new, []) if self.stopping.is_set() else ([], self._new)
        waiting, self._waiting = [*self._waiting.values(), *new], {}
        self.state = "idle"
        if error is not None:
            self._note_failure(error)
        for request in waiting:
            _fail(request, error or self._broken(""))


def _fail(request: Request, error: MemorydError) -> None:
    if request.reply.set_running_or_notify_cancel():
        request.reply.set_exception(error)

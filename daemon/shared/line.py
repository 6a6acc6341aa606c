"""The line to a place: one session of ssh, with any number of calls under way.

It is opened when something is asked, closed after a quarter of an hour without a question, and opened again after 1, 2,
4 … 60 s when it failed; until then a question fails at once. A place that takes questions and says nothing for ten
seconds is hung: the socket is shut down and the program killed. A question that is late fails alone; while one is, the
next fail at once until a word comes.

Threads: `ask`, `report` and `close` by any; the rest on a thread of its own, which also completes the futures.
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


class Question(NamedTuple):
    """A call that was asked, until when there is time, and where its reply goes."""

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
        self._new: list[Question] = []
        self._next_id = 1
        self._waiting: dict[int, Question] = {}  # from here on: of the thread alone
        self._unsent: deque[Question] = deque()
        self._outgoing = b""
        self._frames = FrameReader()
        self._socket: socket.socket | None = None
        self._said: int | None = None  # a pipe: why ssh failed
        self._child: subprocess.Popen[bytes] | None = None
        self._selector = selectors.DefaultSelector()
        self._is_late = False
        self._heard_at = self._asked_at = self._used_at = 0.0  # `asked`: the oldest question without any word since
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._selector.register(self._wake_out, selectors.EVENT_READ)

    def ask(self, call: Call[Any], within_s: float) -> "Future[Reply]":
        """Send a call; the future has its reply, or fails with `Unavailable` or `TimedOut`."""
        reply: Future[Reply] = Future()
        with self._lock:
            number, self._next_id = self._next_id, self._next_id + 1
            question = Question(number, encode_call(call, number), time.monotonic() + within_s, reply)
            is_open = not self.stopping.is_set()
            if is_open:
                self._new.append(question)
        if is_open:
            self._wake()
        else:
            _fail(question, Unavailable("The daemon is stopping."))
        return reply

    def close(self) -> None:
        """End the line; what is asked from now on fails."""
        with self._lock:
            self.stopping.set()
        self._wake()

    def _wake(self) -> None:
        with suppress(OSError):  # it is woken already, or has ended
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
        self._take_questions(now)
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
        due = [question.give_up_at for question in self._waiting.values()]
        if self._socket:
            due.append(max(self._heard_at, self._asked_at) + HUNG_S if self._is_owed() else self._used_at + IDLE_S)
        return max(0.0, min(due) - now) + 0.001 if due else None

    def _is_owed(self) -> bool:
        """Return whether the place has to say something."""
        return bool(self._waiting) or self._is_late or self.state == "connecting"

    def _take_questions(self, now: float) -> None:
        with self._lock:
            new, self._new = self._new, []
        if not new:
            return
        if self._socket is None and now >= self._again_at:
            self._open(now)
        for question in new:
            if self._socket is None:
                _fail(question, self.reason or self._broken(""))
            elif self._is_late:
                _fail(question, TimedOut(f"{place_of(self._name)} is late with earlier answers."))
            else:
                if not self._is_owed():
                    self._asked_at = now
                self._used_at = now
                self._waiting[question.id] = question
                self._unsent.append(question)
        self._watch()

    def _open(self, now: float) -> None:
        ours, theirs = socket.socketpair()
        said, says = os.pipe()
        try:
            way = theirs.fileno()
            self._child = subprocess.Popen(self._command, stdin=way, stdout=way, stderr=says, start_new_session=True)
        except OSError as error:
            ours.close()
            os.close(said)
            self._note_failure(Unavailable(f"{self._command[0]} cannot be started: {error.strerror}."))
            return
        finally:
            theirs.close()
            os.close(says)
        ours.setblocking(False)
        os.set_blocking(said, False)
        self._socket, self._said = ours, said
        self._frames, self._outgoing, self._is_late = FrameReader(), b"", False
        self._heard_at = self._asked_at = self._used_at = now
        self._unsent.clear()
        self.state = "connecting"
        self._selector.register(ours, selectors.EVENT_READ)

    def _watch(self) -> None:
        if self._socket:
            wants = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._may_send() else 0)
            self._selector.modify(self._socket, wants)

    def _may_send(self) -> bool:
        """Return whether there is something to send, and the place has said whom the line speaks for."""
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
                while self._unsent and not self._outgoing:  # one that is late before it is sent is not sent
                    question = self._unsent.popleft()
                    self._outgoing = question.frame if question.id in self._waiting else b""
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
        self._heard_at, self._is_late = time.monotonic(), False
        for payload in self._frames.feed(data):
            reply = decode_reply(payload)
            if self.state == "connecting":
                self._greet(reply)
            elif question := self._waiting.pop(reply.id, None):
                _complete(question, reply)

    def _greet(self, reply: Reply) -> None:
        """Take the first frame: whom the line speaks for, or why it is refused."""
        self._check(read_greeting(place_of(self._name), reply, self._name))
        self._note_success()

    def _give_up(self, now: float) -> None:
        for question in [one for one in self._waiting.values() if one.give_up_at <= now]:
            del self._waiting[question.id]
            self._is_late = self._is_late or self.state == "ready"
            _fail(question, TimedOut(f"{place_of(self._name)} did not answer in time."))
        if self._socket and self._is_owed() and now - max(self._heard_at, self._asked_at) > HUNG_S:
            self._end(Unavailable(f"{place_of(self._name)} says nothing; the line was cut."))

    def _broken(self, why: str) -> Unavailable:
        words = b""
        if self._said is not None:
            with suppress(BlockingIOError):
                words = os.read(self._said, _BLOCK_BYTES)
        return Unavailable(explain(place_of(self._name), words, why))

    def _end(self, error: MemorydError | None) -> None:
        """Close the line, because of an error or because it is idle; what waits fails."""
        if self._socket:
            self._selector.unregister(self._socket)
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()
            self._socket = None
        if self._said is not None:
            os.close(self._said)
            self._said = None
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
        for question in waiting:
            _fail(question, error or self._broken(""))


def _complete(question: Question, reply: Reply) -> None:
    if question.reply.set_running_or_notify_cancel():
        question.reply.set_result(reply)


def _fail(question: Question, error: MemorydError) -> None:
    if question.reply.set_running_or_notify_cancel():
        question.reply.set_exception(error)

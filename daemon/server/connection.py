"""One client's connection: it reads calls, submits them to their lanes and writes each reply when it is ready.

With `MAX_IN_FLIGHT` unanswered calls, the connection stops reading. A call for a full lane is answered with `busy`. A
client that does not read its replies for `SLOW_READER_S` is disconnected. Calls that wait in a lane when their client
disconnects are dropped. Everything here runs on the event loop, except `_run_next_part`, `_hand_over`, `_follow`,
`_report` and, for calls that are not inline, `_work`.
"""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from memoryd.client.errors import BadFrame, Busy, Forbidden, MemorydError, Unavailable
from memoryd.client.linux import Peer, find_peer
from memoryd.client.protocol import (
    DECLARED,
    Call,
    Connected,
    Delete,
    Get,
    LaneName,
    Progress,
    Subscribe,
    Subscribed,
    method_name,
)
from memoryd.client.transport.frames import FrameReader
from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs.runner import Runner
from memoryd.daemon.registry import Parts
from memoryd.daemon.server import access, envelope
from memoryd.daemon.server.dispatch import CallContext, ServerFacts, run_call
from memoryd.daemon.server.lanes import LaneWork
from memoryd.daemon.server.meters import Meters
from memoryd.daemon.server.subscriptions import Subscriber, Subscriptions
from memoryd.daemon.server.view import EventView
from memoryd.daemon.store.caller import ANONYMOUS, USER, Caller
from memoryd.daemon.system.process import process_name

log = logging.getLogger(__name__)

MAX_CONNECTIONS = 512  # one more is answered with `busy`

MAX_IN_FLIGHT = 64  # unanswered calls of one connection
SLOW_READER_S = 10.0
FIRST_CALL_S = 10.0  # for the first call, and for a token where one is required
FRAME_S = 30.0  # from the first byte of a frame to its last
IDLE_S = 5.0  # after this, a connection may be closed to make room for a new one
MAX_UNKNOWN_BYTES = 64 * 1024  # of a frame that comes before the token, if one is required
MAX_RECEIVED_BYTES = 256 * 1024 * 1024  # of unfinished frames of all clients together
_SMALL_BYTES = 64 * 1024  # this much of a frame is allowed, however much other clients have sent
_WRITE_HIGH_WATER = 1024 * 1024
_LINGER_S = 1.0

End = Callable[[Any], None]  # receives the outcome of a call: a result, an error, or a finished future


class ConnectionHost(Protocol):
    """The part of the server that a connection uses."""

    core: Core
    jobs: Runner
    loop: asyncio.AbstractEventLoop
    meters: Meters
    subscriptions: Subscriptions
    connections: "set[Connection]"
    leaving: "set[Connection]"
    received_bytes: int
    facts: ServerFacts
    draining: bool
    served_at: float

    def submit(self, lane: str, work: LaneWork, client: "Connection") -> None:
        """Run a client's work on a lane; raise `Busy` if the lane is full."""

    def forget(self, client: "Connection") -> None:
        """Drop the waiting calls of a client that has disconnected."""


class Connection(asyncio.Protocol):
    """One client's connection."""

    def __init__(self, server: ConnectionHost, bound: Callable[[], Caller | None] | None = None) -> None:
        self._server = server
        self._frames = FrameReader()
        self._transport: asyncio.Transport | None = None
        self._slow: asyncio.TimerHandle | None = None
        self._late: asyncio.TimerHandle | None = None  # runs while a frame is unfinished
        self._received_bytes = 0  # of the unfinished frame
        self._heard_at = time.monotonic()
        self._reading = True
        self._is_starting = False
        self._is_bound = bound is not None
        self._caller = (bound() or ANONYMOUS) if bound else ANONYMOUS if server.core.tokens.required else USER
        self._peer = Peer(0, -1)
        self._since = server.core.clock()
        self._calls, self._name = 0, ""
        self._subscriptions: set[Subscriber] = set()
        self.in_flight = 0

    # Transport -------------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Refuse connections of other users, and connections beyond the limit."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=_WRITE_HIGH_WATER)
        self._peer = find_peer(transport.get_extra_info("socket"))
        if self._peer.uid != os.getuid():
            log.warning("refused a connection of another user")
            transport.abort()
            return
        if len(self._server.connections) >= MAX_CONNECTIONS and not self._make_room():
            self._dismiss(Busy("The daemon has too many connections.", {"retry_after_ms": 500}))
            return
        self._server.connections.add(self)
        self._server.loop.call_later(FIRST_CALL_S, self._drop_silent)

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop the client's waiting calls; those that are running finish, and their replies are dropped."""
        del exc
        self._server.forget(self)
        self._server.connections.discard(self)
        self._server.leaving.discard(self)
        self._transport = None
        self._count_received(0)
        for timer in (self._slow, self._late):
            if timer:
                timer.cancel()
        for subscription in list(self._subscriptions):
            subscription.fail(Unavailable("The client has left."))

    def data_received(self, data: bytes) -> None:
        """Start the calls of complete frames, up to `MAX_IN_FLIGHT`."""
        if self in self._server.leaving:
            return
        try:
            self._start_calls(self._frames.feed(data))
        except MemoryError:
            self._dismiss(Busy("The daemon has not enough memory for this call.", {"retry_after_ms": 500}))
        self._watch_frame()
        self._regulate()

    def pause_writing(self) -> None:
        """Stop reading from a client that does not read its replies; disconnect it after `SLOW_READER_S`."""
        self._slow = self._server.loop.call_later(SLOW_READER_S, self._drop_slow)
        self._regulate()

    def resume_writing(self) -> None:
        """Continue to serve a client that reads its replies again."""
        if self._slow:
            self._slow.cancel()
            self._slow = None
        for subscription in list(self._subscriptions):
            subscription.flush(self._server.core.clock())
        self._regulate()

    def describe(self) -> Connected:
        """Describe the client and its calls. Threads: any."""
        return Connected(
            pid=self._peer.pid,
            name=process_name(self._peer.pid),
            since=self._since,
            calls=self._calls,
            under_way=self.in_flight,
            subscriptions=len(self._subscriptions),
            token=self._caller.name,
        )

    def close_when_sent(self) -> None:
        """Close once all output is sent; say farewell unless a call is unanswered, because it may have been run."""
        if self._transport:
            if not self.in_flight:
                self._write(envelope.FAREWELL)
            self._transport.close()

    def _dismiss(self, reason: MemorydError) -> None:
        """Send the reason and close, but continue to read for `_LINGER_S`.

        A client that writes to a closed socket gets an error, and would never read the reason.
        """
        self._refuse(0, reason)
        self._server.connections.discard(self)
        self._server.leaving.add(self)
        self._frames = FrameReader()
        self._count_received(0)
        if self._transport:
            self._transport.write_eof()
            self._server.loop.call_later(_LINGER_S, self.abort)
        self._regulate()

    def abort(self) -> None:
        """Close at once."""
        if self._transport:
            self._transport.abort()

    def _drop_slow(self) -> None:
        log.warning("dropped a client that did not read its replies")
        self.abort()

    # Limits ----------------------------------------------------------------------------------------------------------

    def _make_room(self) -> bool:
        """Close the connection that has been idle longest; its client reconnects for its next call."""
        idle = [one for one in self._server.connections if one.is_idle()]
        longest = min(idle, key=lambda one: one._heard_at, default=None)
        if longest is not None:
            longest._dismiss(Unavailable("The connection was idle and others waited.", {"retry_after_ms": 100}))
        return longest is not None

    def is_idle(self) -> bool:
        """Return whether the client has made no call for a while and waits for no reply."""
        return not self.in_flight and not self._subscriptions and time.monotonic() - self._heard_at > IDLE_S

    def _drop_silent(self) -> None:
        if self in self._server.connections and (not self._calls or self._caller is ANONYMOUS):
            self._dismiss(Unavailable(f"No call was made within {FIRST_CALL_S:g} s.", {"retry_after_ms": 100}))

    def _watch_frame(self) -> None:
        """Limit the time and the size of an unfinished frame."""
        size = self._frames.size if self._can_start_more() else 0
        self._count_received(size)
        if self._late and not size:
            self._late.cancel()
            self._late = None
        elif size and not self._late:
            self._late = self._server.loop.call_later(FRAME_S, self._drop_late, self._calls)
        if size > MAX_UNKNOWN_BYTES and self._caller is ANONYMOUS:
            self._dismiss(BadFrame(f"A frame of more than {MAX_UNKNOWN_BYTES} bytes came before a token."))
        elif size > _SMALL_BYTES and self._server.received_bytes > MAX_RECEIVED_BYTES:
            self._dismiss(Busy("The daemon is sent too much at once.", {"retry_after_ms": 500}))

    def _count_received(self, size: int) -> None:
        self._server.received_bytes += size - self._received_bytes
        self._received_bytes = size

    def _drop_late(self, calls: int) -> None:
        """Close a connection whose frame is unfinished, unless calls since then show that this is a later frame."""
        self._late = None
        if self._calls > calls:
            self._watch_frame()
        elif self in self._server.connections:
            self._dismiss(BadFrame(f"A frame was not complete after {FRAME_S:g} s."))

    def _can_start_more(self) -> bool:
        """Return whether another call may be started: the client is below its limit and reads its replies."""
        if self._transport is None or self._transport.is_closing() or self in self._server.leaving:
            return False
        return self._slow is None and self.in_flight < MAX_IN_FLIGHT

    def _regulate(self) -> None:
        """Start calls that were held back; read from the client only while it may start more calls."""
        if self._can_start_more():
            self._start_calls(self._frames.feed())
        if self._transport is None or self._transport.is_closing():
            return
        is_wanted = self._can_start_more() or self in self._server.leaving
        if is_wanted != self._reading:
            self._reading = is_wanted
            (self._transport.resume_reading if is_wanted else self._transport.pause_reading)()

    def _start_calls(self, payloads: Iterator[bytes]) -> None:
        """Start calls up to the limit; disconnect a client that sends a frame over the limit, whose end is unknown."""
        if self._is_starting:  # called from an inline call in the loop below, which continues
            return
        self._is_starting = True
        try:
            while self._can_start_more() and (payload := next(payloads, None)) is not None:
                self._receive(payload)
        except BadFrame as error:
            self._dismiss(error)
        finally:
            self._is_starting = False

    # Calls -----------------------------------------------------------------------------------------------------------

    def _receive(self, payload: bytes) -> None:
        self._heard_at = time.monotonic()
        request_id, call = envelope.read_call(payload, self._server.draining)
        try:
            if isinstance(call, MemorydError):
                raise call
            self._caller = self._server.core.tokens.read_present(self._caller)
            call = access.admit(call, self._caller, self._server.core.tokens)
            access.check_room(call, self._server.core.store)
        except MemorydError as error:
            self._refuse(request_id, error)
            return
        self._begin(request_id, call)

    def _begin(self, request_id: int, call: Call[Any]) -> None:
        self.in_flight += 1
        self._calls += 1
        server, began = self._server, time.perf_counter()
        server.served_at = time.monotonic()
        report, follow = partial(self._report, request_id), partial(self._follow, request_id)
        declared = DECLARED[type(call)]
        parts = server.core, report, server.facts, self._caller, self._become, server.jobs, follow
        context = CallContext(*parts, "" if declared.reads else self._find_process())
        lane = _choose_lane(call)
        if lane == "inline":
            later = partial(self._hand_over, request_id, call, began)
            self._work(call, context, partial(self._finish, request_id, call, began), later)
            return
        work = partial(self._work, call, context, partial(self._hand_over, request_id, call, began))
        try:
            server.submit(lane, work, self)
        except MemorydError as error:
            self._finish(request_id, call, began, error)
        self._regulate()

    def _find_process(self) -> str:
        if not self._name:
            self._name = f"{process_name(self._peer.pid)} ({self._peer.pid})"
        return self._name

    def _follow(self, request_id: int, view: EventView, limit: int | None) -> "Future[Subscribed]":
        """Subscribe this client; return a future that finishes when the subscription ends."""
        subscription = Subscriber(request_id, view, limit, self._write, lambda: self._slow is not None)
        self._server.loop.call_soon_threadsafe(self._add_subscription, subscription)
        return subscription.ended

    def _add_subscription(self, subscription: Subscriber) -> None:
        if self._transport is None or self._server.draining:
            subscription.fail(envelope.stopping_error())
            return
        self._subscriptions.add(subscription)
        subscription.ended.add_done_callback(lambda _: self._subscriptions.discard(subscription))
        self._server.subscriptions.add(subscription)

    def _become(self, caller: Caller) -> None:
        """Act for another caller, beginning with the next call."""
        if self._is_bound:
            raise Forbidden("This connection is bound to a token and accepts no other.")
        self._caller, self._is_bound = caller, caller.confined

    def _work(self, call: Call[Any], context: CallContext, end: End, end_later: End | None = None) -> LaneWork | None:
        """Run a call and pass its outcome to `end`; a future passes its own to `end_later`, on the future's thread."""
        try:
            context.core.check_going_on()
            result = run_call(context, call)
        except BaseException as error:
            end(error)
            return None
        if isinstance(result, Generator):
            return self._run_next_part(call, context, end, result)
        if isinstance(result, Future):
            result.add_done_callback(end_later or end)
        else:
            end(result)
        return None

    def _run_next_part(self, call: Call[Any], context: CallContext, end: End, parts: Parts[Any]) -> LaneWork | None:
        """Run the next part of a long call; return a function for the part after that, unless the client has left.

        A call that only reads is abandoned when the daemon stops, because its client repeats it with the next daemon.
        """
        try:
            next(parts)
            if self._transport is None:
                end(Unavailable("The client has left."))
            elif self._server.draining and DECLARED[type(call)].reads:
                end(envelope.stopping_error())
            else:
                return partial(self._run_next_part, call, context, end, parts)
        except StopIteration as done:
            end(done.value)
        except BaseException as error:
            end(error)
        return None

    def _hand_over(self, request_id: int, call: Call[Any], began: float, outcome: Any) -> None:
        """Encode the reply on the thread that ran the call, and pass it to the loop."""
        reply = envelope.answer(request_id, outcome)
        try:
            self._server.loop.call_soon_threadsafe(self._send, call, began, reply)
        except RuntimeError:
            log.info("a reply was ready after the loop had ended")

    def _finish(self, request_id: int, call: Call[Any], began: float, outcome: Any) -> None:
        self._send(call, began, envelope.answer(request_id, outcome))

    def _send(self, call: Call[Any], began: float, reply: envelope.EncodedReply) -> None:
        self.in_flight -= 1
        now = time.perf_counter()
        if type(call) is not Subscribe:  # a subscription may last for days, which would spoil the latencies
            self._server.meters.count(method_name(type(call)), now - began, reply.failed, now)
        self._write(reply.data)
        self._regulate()

    def _report(self, request_id: int, event: Progress) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._server.loop.call_soon_threadsafe(self._write, envelope.progress(request_id, event))

    def _refuse(self, request_id: int, error: MemorydError) -> None:
        self._write(envelope.encode_refusal(request_id, error))

    def _write(self, data: bytes) -> None:
        if self._transport and not self._transport.is_closing() and self not in self._server.leaving:
            try:
                self._transport.write(data)
            except MemoryError:  # part of the frame may be sent, so no other can follow
                self.abort()


def _choose_lane(call: Call[Any]) -> LaneName:
    """Return the lane of a call; for `delete` and `get` it depends on their arguments."""
    if isinstance(call, Delete) and not (call.ids or call.keys):
        return "bulk"  # by a filter
    if isinstance(call, Get) and call.around is not None:
        return "interactive"
    return DECLARED[type(call)].lane

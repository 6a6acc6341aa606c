"""The socket's side: frames in, calls to their lanes, replies out.

One asyncio loop. A connection may have many calls under way; replies go out as they finish, matched by id.
Backpressure: past `max_in_flight` calls a connection is not read any further; past a lane's capacity a call gets
`busy`; a client that does not read its replies for `slow_reader_s` is dropped.
"""

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from memoryd.client.errors import BadFrame, Busy, MemorydError, Unavailable
from memoryd.client.frames import FrameReader
from memoryd.client.protocol import Call, Connected, Progress, Subscribe, Subscribed, Welcome, method_name
from memoryd.daemon import access, envelope, room
from memoryd.daemon.config import ServerConfig
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.view import View
from memoryd.daemon.dispatch import HANDLERS, Context, Route, ServerFacts, carry_out, perform
from memoryd.daemon.lanes import Lane
from memoryd.daemon.lifecycle.runner import Runner
from memoryd.daemon.meters import Meters
from memoryd.daemon.peer import Peer, peer_of, process_name
from memoryd.daemon.store.caller import NOBODY, USER, Caller
from memoryd.daemon.subscriptions import Subscription, Subscriptions
from memoryd.daemon.succession import Succession

log = logging.getLogger(__name__)

_WRITE_HIGH_WATER = 1024 * 1024
_POLL_S = 0.01
_LINGER_S = 1.0
_CROWDED_S = 0.2

R = TypeVar("R")


class Server:
    """Accepts connections on a listening socket and answers calls until it is stopped."""

    def __init__(
        self, core: Core, config: ServerConfig, listener: socket.socket, stop: Callable[[], None], jobs: Runner
    ) -> None:
        self.core, self.config, self.jobs = core, config, jobs
        self.served_at = 0.0  # when the latest call began
        core.crowded = self._crowded
        self.meters = Meters()
        self.subscriptions = Subscriptions(core)
        self.connections: set[Connection] = set()
        self.leaving: set[Connection] = set()
        self.draining = self.restarting = False
        self._stop, self._succession = stop, Succession(core.store, config)
        self._started_at = time.monotonic()
        self._listener = listener
        self._lanes = {
            "interactive": Lane("interactive", config.workers, config.max_queued),
            "bulk": Lane("bulk", 1, config.max_queued_bulk, nice=True),
            "control": Lane("control", 1, config.max_queued),
        }
        self.facts = ServerFacts(
            started_at=self._started_at,
            socket=str(listener.getsockname()),
            connections=lambda: len(self.connections),
            clients=lambda: [connection.told() for connection in self.connections.copy()],
            queued=self._queued,
            methods=self.meters.read,
            stop=self._end,
            restart=self._restart,
            welcome=self._welcome,
        )
        self._asyncio_server: asyncio.Server | None = None

    async def start(self) -> None:
        """Begin to accept connections."""
        self.loop = asyncio.get_running_loop()
        # Its unix variant removes the socket's file at the end from Python 3.13 on, whoever it belongs to. A duplicate,
        # since asyncio closes what it is given: clients that come during the drain wait in the queue of the other one.
        self._asyncio_server = await self.loop.create_server(lambda: Connection(self), sock=self._listener.dup())

    async def stop(self) -> None:
        """Take no more connections, let the calls under way finish within `drain_s`, close.

        Each client is told before its stream ends, once it waits for nothing: so one that sends a call at this very
        moment knows that it was not carried out, and sends it again to the successor.
        """
        self.draining = True
        if self._asyncio_server:
            self._asyncio_server.close()
        self.subscriptions.close(stopping())
        await asyncio.to_thread(self.jobs.close)
        give_up_at = time.monotonic() + self.config.drain_s
        while any(connection.in_flight for connection in self.connections) and time.monotonic() < give_up_at:
            await asyncio.sleep(_POLL_S)
        for connection in list(self.connections):
            connection.part()
        while self.connections and time.monotonic() < give_up_at:  # replies on their way out
            await asyncio.sleep(_POLL_S)
        for connection in [*self.connections, *self.leaving]:
            connection.abort()
        for lane in self._lanes.values():
            await asyncio.to_thread(lane.close)

    def _end(self) -> None:
        """Take no call from the next one on: whoever was told that the daemon stops meets another one after that."""
        self.draining = True
        self._stop()

    def _restart(self) -> None:
        """Give way to a successor."""
        self.restarting = True
        self._end()

    def _welcome(self, version: str) -> Welcome:
        found = self._succession.welcome(version, time.monotonic() - self._started_at)
        if found.restarting and not self.draining:
            self._restart()
        return found

    def perform(self, call: Call[R]) -> R:
        """Carry out a call of the daemon's own, on the calling thread; wait for its result."""
        own = Context(self.core, lambda event: None, self.facts, USER, lambda caller: None, self.jobs, _nobody)
        return perform(own, call)

    def _crowded(self) -> bool:
        """Tell whether clients are being served, so that background work had better hold back."""
        lately = time.monotonic() - self.served_at < _CROWDED_S
        return lately or any(lane.pending() for lane in self._lanes.values())

    def submit(self, route: Route, work: Callable[[], None]) -> None:
        """Run work on its lane, which may refuse with `Busy`."""
        self._lanes[route.lane].submit(work)

    def _queued(self) -> dict[str, int]:
        waiting = {name: lane.pending() for name, lane in self._lanes.items()}
        return {**waiting, "writes": self.core.store.waiting_writes()}


class Connection(asyncio.Protocol):
    """One client's stream."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._frames = FrameReader()
        self._transport: asyncio.Transport | None = None
        self._slow: asyncio.TimerHandle | None = None
        self._reading = True
        self._taking = False
        self._caller = NOBODY if server.core.tokens.required else USER
        self._peer = Peer(0, -1)
        self._since = server.core.clock()
        self._calls = 0
        self._subscriptions: set[Subscription] = set()
        self.in_flight = 0

    # Transport -------------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Refuse other users and one connection too many."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=_WRITE_HIGH_WATER)
        self._peer = peer_of(transport.get_extra_info("socket"))
        if self._peer.uid != os.getuid():
            log.warning("refused a connection of another user")
            transport.abort()
            return
        if len(self._server.connections) >= self._server.config.max_connections:
            self._dismiss(Busy("The daemon has too many connections.", {"retry_after_ms": 500}))
        else:
            self._server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the client; its calls under way finish and their replies are dropped."""
        del exc
        self._server.connections.discard(self)
        self._server.leaving.discard(self)
        self._transport = None
        if self._slow:
            self._slow.cancel()
        for subscription in list(self._subscriptions):
            subscription.fail(Unavailable("The client has gone."))

    def data_received(self, data: bytes) -> None:
        """Take the whole frames, as many as may be under way at once."""
        if self in self._server.leaving:
            return
        self._take_frames(self._frames.feed(data))
        self._regulate()

    def pause_writing(self) -> None:
        """The client does not read: read nothing more from it, and drop it if that lasts."""
        self._slow = self._server.loop.call_later(self._server.config.slow_reader_s, self._drop_slow)
        self._regulate()

    def resume_writing(self) -> None:
        """The client reads again."""
        if self._slow:
            self._slow.cancel()
            self._slow = None
        for subscription in list(self._subscriptions):
            subscription.flush(self._server.core.clock())
        self._regulate()

    def told(self) -> Connected:
        """Return who is connected and what it calls. Threads: any."""
        return Connected(
            pid=self._peer.pid,
            name=process_name(self._peer.pid),
            since=self._since,
            calls=self._calls,
            under_way=self.in_flight,
            subscriptions=len(self._subscriptions),
            token=self._caller.name,
        )

    def part(self) -> None:
        """Close after what is written has gone out; say farewell unless a call is under way, whose end is not known."""
        if self._transport:
            if not self.in_flight:
                self._write(FAREWELL)
            self._transport.close()

    def _dismiss(self, reason: MemorydError) -> None:
        """Say why and end the stream, but hear the client out: one that meets a closed door while it speaks never
        reads what was said to it."""
        self._refuse(0, reason)
        self._server.connections.discard(self)
        self._server.leaving.add(self)
        if self._transport:
            self._transport.write_eof()
            self._server.loop.call_later(_LINGER_S, self.abort)
        self._regulate()

    def abort(self) -> None:
        """Close at once."""
        if self._transport:
            self._transport.abort()

    def _drop_slow(self) -> None:
        if self._transport:
            log.warning("dropped a client that did not read its replies")
            self._transport.abort()

    def _takes_more(self) -> bool:
        """Tell whether the client may have more calls under way and reads its replies."""
        if self._transport is None or self._transport.is_closing() or self in self._server.leaving:
            return False
        return self._slow is None and self.in_flight < self._server.config.max_in_flight

    def _regulate(self) -> None:
        """Take frames that were held back; read from the client only while it may have more calls under way."""
        if self._takes_more():
            self._take_frames(self._frames.feed())
        if self._transport is None or self._transport.is_closing():
            return
        wanted = self._takes_more() or self in self._server.leaving
        if wanted != self._reading:
            self._reading = wanted
            (self._transport.resume_reading if wanted else self._transport.pause_reading)()

    def _take_frames(self, payloads: Iterator[bytes]) -> None:
        """Begin calls while more may be under way. A frame over the limit ends the stream: what follows it is lost."""
        if self._taking:  # a call that was answered inline: the loop below goes on
            return
        self._taking = True
        try:
            while self._takes_more() and (payload := next(payloads, None)) is not None:
                self._receive(payload)
        except BadFrame as error:
            self._dismiss(error)
        finally:
            self._taking = False

    # Calls -----------------------------------------------------------------------------------------------------------

    def _receive(self, payload: bytes) -> None:
        request_id = 0
        try:
            request = envelope.request_of(payload)
            request_id = request.id
            if self._server.draining:  # before all else: the successor may know what this daemon does not
                raise stopping()
            call = access.admit(envelope.call_of(request), self._caller, self._server.core.tokens)
            room.check(call, self._server.core.store)
        except MemorydError as error:
            self._refuse(request_id, error)
            return
        self._begin(request_id, call, HANDLERS[type(call)])

    def _begin(self, request_id: int, call: Call[Any], route: Route) -> None:
        self.in_flight += 1
        self._calls += 1
        began = time.perf_counter()
        report = partial(self._report, request_id)
        self._server.served_at = time.monotonic()
        server = self._server
        follow = partial(self._follow, request_id)
        context = Context(server.core, report, server.facts, self._caller, self._become, server.jobs, follow)
        if route.lane == "inline":
            self._finished(call, began, request_id, envelope.answer(request_id, partial(carry_out, context, call)))
            return
        work = partial(self._work, request_id, call, context, began)
        try:
            self._server.submit(route, work)
        except MemorydError as error:
            self._finished(call, began, request_id, (envelope.refusal(request_id, error), True))
        self._regulate()

    def _follow(self, request_id: int, view: View, limit: int | None) -> "Future[Subscribed]":
        """Subscribe this client; the future is done when the subscription ends."""
        subscription = Subscription(request_id, view, limit, self._write, lambda: self._slow is not None)
        self._server.loop.call_soon_threadsafe(self._begin_to_follow, subscription)
        return subscription.ended

    def _begin_to_follow(self, subscription: Subscription) -> None:
        if self._transport is None or self._server.draining:
            subscription.fail(stopping())
            return
        self._subscriptions.add(subscription)
        subscription.ended.add_done_callback(lambda _: self._subscriptions.discard(subscription))
        self._server.subscriptions.add(subscription)

    def _become(self, caller: Caller) -> None:
        """Speak for another caller from the next call on."""
        self._caller = caller

    def _work(self, request_id: int, call: Call[Any], context: Context, began: float) -> None:
        """Carry a call out on a worker; a future is answered when the writer is done with it."""
        try:
            result = carry_out(context, call)
        except BaseException as error:
            self._hand_over(call, began, request_id, envelope.failure(request_id, error))
            return
        if isinstance(result, Future):
            result.add_done_callback(
                lambda done: self._hand_over(call, began, request_id, envelope.answer(request_id, done.result))
            )
        else:
            self._hand_over(call, began, request_id, envelope.answer(request_id, lambda: result))

    def _hand_over(self, call: Call[Any], began: float, request_id: int, answer: tuple[bytes, bool]) -> None:
        """Give an answer made on another thread to the loop."""
        try:
            self._server.loop.call_soon_threadsafe(self._finished, call, began, request_id, answer)
        except RuntimeError:
            log.info("an answer came after the loop had ended")

    def _finished(self, call: Call[Any], began: float, request_id: int, answer: tuple[bytes, bool]) -> None:
        data, failed = answer
        self.in_flight -= 1
        now = time.perf_counter()
        if type(call) is not Subscribe:  # how long somebody listened is no latency
            self._server.meters.count(method_name(type(call)), now - began, failed, now)
        self._write(data)
        self._regulate()

    def _report(self, request_id: int, event: Progress) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._server.loop.call_soon_threadsafe(self._write, envelope.progress(request_id, event))

    def _refuse(self, request_id: int, error: MemorydError) -> None:
        self._write(envelope.refusal(request_id, error))

    def _write(self, data: bytes) -> None:
        if self._transport and not self._transport.is_closing() and self not in self._server.leaving:
            self._transport.write(data)


def stopping() -> Unavailable:
    """Return what calls and connections are told from the beginning of a stop on; nothing was done for them."""
    return Unavailable("The daemon is stopping.", {"retry_after_ms": 100})


FAREWELL = envelope.refusal(0, stopping())


def _nobody(view: View, limit: int | None) -> "Future[Subscribed]":
    """Refuse: the daemon's own calls have nobody to send events to."""
    raise Unavailable("Only a client can follow events.")

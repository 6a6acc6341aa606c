"""The queue of events for subscribers: any thread adds events, the event loop sends them.

Events within a hundredth of a second are sent together. For a subscriber that does not read, a bounded number of events
waits; later ones are only counted, and reported as `missed`. Like any client that does not read, it is disconnected in
the end.

Threads: `Subscriptions._receive` is called on any thread, everything else on the event loop.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress

from memoryd.client.errors import MemorydError, Unauthenticated
from memoryd.client.protocol import Event, Subscribed
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.events import Happening
from memoryd.daemon.server import envelope
from memoryd.daemon.server.view import EventView

GATHER_S = 0.01
MAX_WAITING = 1000  # events for a subscriber that does not read
_PART_BYTES = 65536  # written before the next check whether the client reads


class Subscriber:
    """One subscriber: the events that it sees, the events that wait for it, and its final reply."""

    def __init__(
        self,
        request_id: int,
        view: EventView,
        limit: int | None,
        write: Callable[[bytes], None],
        full: Callable[[], bool],
    ) -> None:
        self._request_id, self._view, self._limit = request_id, view, limit
        self._write, self._full = write, full
        self._waiting: deque[Event] = deque()
        self._missed_now = self.sent = self.missed = 0
        self.ended: Future[Subscribed] = Future()

    def take(self, happenings: Sequence[Happening], now: float) -> None:
        """Send the events that the subscriber may see, as long as it reads them."""
        if not self._view.is_valid():
            self.fail(Unauthenticated("The token of this subscription is no longer valid."))
            return
        for happening in happenings:
            event = self._view.event_of(happening)
            if event is None:
                continue
            if self._missed_now or (len(self._waiting) >= MAX_WAITING and self._full()):
                self._missed_now += 1
            else:
                self._waiting.append(event)
        self.flush(now)

    def flush(self, now: float) -> None:
        """Write the waiting events as long as the client reads; then report how many it missed."""
        while self._waiting and not self._full() and not self.ended.done():
            self._write(b"".join(self._take_batch()))
            if self._limit is not None and self.sent >= self._limit:
                self.ended.set_result(Subscribed(events=self.sent, missed=self.missed))
        if self._missed_now and not self._waiting and not self._full() and not self.ended.done():
            count, self._missed_now = self._missed_now, 0
            self.missed += count
            self._write(self._frame(Event(kind="missed", at=now, count=count)))

    def _take_batch(self) -> list[bytes]:
        frames: list[bytes] = []
        size = 0
        while self._waiting and size < _PART_BYTES and (self._limit is None or self.sent < self._limit):
            frames.append(self._frame(self._waiting.popleft()))
            size += len(frames[-1])
            self.sent += 1
        return frames

    def _frame(self, event: Event) -> bytes:
        return envelope.progress(self._request_id, event)

    def start(self, now: float) -> None:
        """Tell the subscriber that it receives every event from now on."""
        self._write(self._frame(Event(kind="started", at=now)))

    def fail(self, error: MemorydError) -> None:
        """End the subscription with an error."""
        if not self.ended.done():
            self.ended.set_exception(error)


class Subscriptions:
    """All subscribers of the daemon. It listens to events only if there are subscribers."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._all: set[Subscriber] = set()
        self._pending: list[Happening] = []
        self._scheduled = False
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def __len__(self) -> int:
        return len(self._all)

    def add(self, subscription: Subscriber) -> None:
        """Begin to send events to a subscriber."""
        self._loop = asyncio.get_running_loop()
        if not self._all:
            self._core.events.listen(self._receive)
        else:
            self._deliver()  # so that the new subscriber does not receive earlier events
        self._all.add(subscription)
        subscription.ended.add_done_callback(lambda _: self._remove(subscription))
        subscription.start(self._core.clock())

    def _remove(self, subscription: Subscriber) -> None:
        self._all.discard(subscription)
        if not self._all:
            self._core.events.listen(None)
            self._pending.clear()

    def close(self, reason: MemorydError) -> None:
        """End all subscriptions with an error."""
        for subscription in list(self._all):
            subscription.fail(reason)

    def _receive(self, happenings: Sequence[Happening]) -> None:
        with self._lock:
            self._pending += happenings
            if self._scheduled or self._loop is None:
                return
            self._scheduled = True
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._loop.call_later, GATHER_S, self._deliver)

    def _deliver(self) -> None:
        with self._lock:
            happenings, self._pending, self._scheduled = self._pending, [], False
        now = self._core.clock()
        for subscription in list(self._all) if happenings else ():
            subscription.take(happenings, now)

"""Lanes: bounded queues of calls in front of worker threads. A full lane refuses a call at once.

The clients take turns: the next call is the first one of the client whose last turn is longest ago. One client has at
most half of the workers, so many or long calls of one client do not hold up the others. Long work returns early with a
function for the rest, which waits for its client's next turn. Threads: any may call.
"""

import logging
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from memoryd.client.errors import Busy
from memoryd.daemon.system.process import lower_priority

_POLL_S = 0.01

log = logging.getLogger(__name__)

LaneWork = Callable[[], "LaneWork | None"]  # returns what is left to do; must not raise


class Lane:
    """`threads` workers and room for `capacity` waiting calls."""

    def __init__(self, name: str, threads: int, capacity: int, nice: bool = False) -> None:
        self.name = name
        self._threads = threads
        self._share = max(1, threads // 2)  # workers of one client
        self._capacity = capacity + threads
        self._pool = ThreadPoolExecutor(threads, name, initializer=lower_priority if nice else None)
        self._lock = threading.Lock()
        self._waiting: OrderedDict[object, deque[LaneWork]] = OrderedDict()  # by client, in the order of their turns
        self._running: Counter[object] = Counter()  # calls under way, by client
        self._pending = self._busy = 0  # calls that wait or run; workers that are awake

    def submit(self, work: LaneWork, client: object = None) -> None:
        """Queue a client's work; raise `Busy` when the lane is full."""
        with self._lock:
            if self._pending >= self._capacity:
                raise Busy(f"{self._pending} {self.name} calls are under way or waiting.", {"retry_after_ms": 100})
            self._pending += 1
            self._waiting.setdefault(client, deque()).append(work)
            awake = self._busy == self._threads
            self._busy += not awake
        if not awake:
            self._pool.submit(self._serve)

    def drop(self, client: object) -> None:
        """Drop the waiting calls of a client."""
        with self._lock:
            self._pending -= len(self._waiting.pop(client, ()))

    def count(self) -> int:
        """Return how many calls wait or run."""
        return self._pending

    def run_waiting(self) -> None:
        """Run the waiting calls on this thread in any order; those that must not run any more refuse by themselves."""
        with self._lock:
            waiting = [work for calls in self._waiting.values() for work in calls]
            self._waiting.clear()
        for work in waiting:
            work()
        with self._lock:
            self._pending -= len(waiting)

    def close(self, limit_s: float) -> bool:
        """Drop waiting calls and end the threads; return whether the running calls have finished their part."""
        with self._lock:
            self._capacity = 0
            self._pending -= sum(map(len, self._waiting.values()))
            self._waiting.clear()
        self._pool.shutdown(wait=False)
        give_up_at = time.monotonic() + limit_s
        while self._pending and time.monotonic() < give_up_at:
            time.sleep(_POLL_S)
        return not self._pending

    def _serve(self) -> None:
        while turn := self._take_next():
            client, work = turn
            rest = None
            try:
                rest = work()
            except Exception:
                log.exception("a call broke its worker's rule not to raise")
            finally:
                self._end_turn(client, rest)

    def _take_next(self) -> tuple[object, LaneWork] | None:
        """Take the next work of the client whose turn it is; None sends the worker to sleep."""
        with self._lock:
            for client, waiting in self._waiting.items():
                if self._running[client] < self._share:
                    work = waiting.popleft()
                    self._running[client] += 1
                    self._waiting.move_to_end(client)
                    if not waiting:
                        del self._waiting[client]
                    return client, work
            self._busy -= 1
            return None

    def _end_turn(self, client: object, rest: LaneWork | None) -> None:
        with self._lock:
            self._running[client] -= 1
            if not self._running[client]:
                del self._running[client]
            if rest is None or not self._capacity:
                self._pending -= 1
            else:
                self._waiting.setdefault(client, deque()).appendleft(rest)

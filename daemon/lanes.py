"""Lanes: bounded queues of calls in front of worker threads. A full lane refuses at once instead of letting wait."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from memoryd.client.errors import Busy
from memoryd.daemon.process import be_nice

log = logging.getLogger(__name__)


class Lane:
    """`threads` workers and room for `capacity` waiting calls."""

    def __init__(self, name: str, threads: int, capacity: int, nice: bool = False) -> None:
        self.name = name
        self._capacity = capacity + threads
        self._pool = ThreadPoolExecutor(threads, name, initializer=be_nice if nice else None)
        self._pending = 0
        self._lock = threading.Lock()

    def submit(self, work: Callable[[], None]) -> None:
        """Queue work, which must not raise; raise `Busy` when the lane is full."""
        with self._lock:
            if self._pending >= self._capacity:
                raise Busy(f"{self._pending} {self.name} calls are under way or waiting.", {"retry_after_ms": 100})
            self._pending += 1
        self._pool.submit(self._work, work)

    def pending(self) -> int:
        """Return how many calls wait or run."""
        return self._pending

    def close(self) -> None:
        """Let the running calls finish and end the threads."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _work(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception:
            log.exception("a call broke its worker's rule not to raise")
        finally:
            with self._lock:
                self._pending -= 1

"""Run the work of long calls on separate threads, so that they do not block a lane."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from memoryd.client.errors import Unavailable
from memoryd.daemon.system.process import lower_priority

T = TypeVar("T")

_JOIN_LIMIT_S = 2.0  # for all


class Background:
    """The threads of long calls. `stopping` is set when the daemon stops, before its last calls are answered."""

    def __init__(self) -> None:
        self._threads: set[threading.Thread] = set()
        self._lock = threading.Lock()
        self.stopping = threading.Event()
        self.on_close: list[Callable[[], None]] = []  # called first, to abort slow work that threads wait for

    def check_open(self) -> None:
        """Raise `Unavailable` once the daemon stops."""
        if self.stopping.is_set():
            raise Unavailable("The daemon is stopping; what was begun is not finished.")

    def run(self, name: str, work: Callable[[], T]) -> "Future[T]":
        """Run work on a new low-priority thread."""
        self.check_open()
        future: Future[T] = Future()

        def run() -> None:
            lower_priority()
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
            finally:
                with self._lock:
                    self._threads.discard(thread)

        thread = threading.Thread(target=run, name=name, daemon=True)
        with self._lock:  # otherwise the thread might end before it is registered
            thread.start()
            self._threads.add(thread)
        return future

    def close(self) -> None:
        """Stop the running work."""
        self.stopping.set()
        for call in self.on_close:
            call()
        with self._lock:
            threads = list(self._threads)
        give_up_at = time.monotonic() + _JOIN_LIMIT_S
        for thread in threads:
            thread.join(max(0.0, give_up_at - time.monotonic()))

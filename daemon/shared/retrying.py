"""The state of the line to a place; a line that failed is opened again after 1, 2, 4 … 60 s."""

import math
import random
import threading
import time
from collections.abc import Callable
from typing import Literal

from memoryd.client.errors import MemorydError, Unavailable

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0

LineState = Literal["idle", "connecting", "ready", "away"]


class Retrying:
    """The state of a line."""

    def __init__(self) -> None:
        self._again_at, self._pause_s = 0.0, FIRST_PAUSE_S
        self.stopping = threading.Event()
        self.state: LineState = "idle"
        self.reason: MemorydError | None = None  # why it is `away`
        self.on_ready: Callable[[], None] = lambda: None
        self.on_away: Callable[[MemorydError], None] = lambda error: None

    def may_try(self) -> bool:
        """Return whether a request would be sent, or would open the line."""
        return self.state != "away" or time.monotonic() >= self._again_at

    def retry_s(self) -> float:
        """Return the seconds until the line is tried again, 0 for now."""
        return max(0.0, self._again_at - time.monotonic()) if self.state == "away" else 0.0

    def hurry(self) -> None:
        """Skip the pause: the next request opens the line."""
        self._again_at = -math.inf

    def _note_success(self) -> None:
        self.state, self.reason, self._pause_s = "ready", None, FIRST_PAUSE_S
        self.on_ready()

    def _note_failure(self, error: MemorydError) -> None:
        self.on_away(error)
        # Not the error itself, which may be `Forbidden`: the place refused the line, not the call.
        self.reason = Unavailable(error.message)
        self.state = "away"
        self._again_at = time.monotonic() + self._pause_s * random.uniform(0.75, 1.25)
        self._pause_s = min(LONGEST_PAUSE_S, 2 * self._pause_s)

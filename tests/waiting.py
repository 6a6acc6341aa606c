"""How tests wait: they poll a condition with one limit."""

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], bool], limit_s: float = 60.0) -> None:
    """Poll a condition with one limit."""
    give_up_at, pause_s = time.monotonic() + limit_s, 0.005
    while not condition():
        assert time.monotonic() < give_up_at, "the condition did not come true in time"
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.2, 0.03)  # what is waited for needs the processor, too

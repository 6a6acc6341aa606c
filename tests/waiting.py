"""How tests wait: they poll a condition with one limit."""

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], bool], limit_s: float = 60.0) -> None:
    """Poll a condition with one limit."""
    give_up_at = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < give_up_at, "the condition did not come true in time"
        time.sleep(0.005)

"""An exclusive lock on a file or folder, which the system releases when its process ends."""

import time

_PAUSE_S = 0.01


def take(descriptor: int, limit_s: float) -> None:
    """Take the lock of an open file; raise `BlockingIOError` when another process holds it for `limit_s`."""
    import fcntl  # Windows has none

    give_up_at = time.monotonic() + limit_s
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= give_up_at:
                raise
            time.sleep(_PAUSE_S)

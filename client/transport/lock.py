"""An exclusive lock on a file or folder, which the system releases when the process ends."""

import time

_PAUSE_S = 0.01


def take(descriptor: int, limit_s: float) -> None:
    """Lock an open file; raise `BlockingIOError` if another process holds the lock for `limit_s`."""
    import fcntl  # missing on Windows

    give_up_at = time.monotonic() + limit_s
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= give_up_at:
                raise
            time.sleep(_PAUSE_S)

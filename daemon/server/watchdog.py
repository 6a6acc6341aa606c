"""The watchdog: systemd gets a pulse from the daemon only while the daemon works.

The pulse is a task of the event loop, so it ends by itself if the loop hangs. It is also withheld while the writer is
stuck, because a daemon without a writer cannot acknowledge any write. A long write does not count as stuck: the
writer's connection reports progress after each million steps of a statement.

A daemon whose database, lock or socket was deleted or moved can neither be reached nor store anything, so it stops.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from memoryd.daemon.system import notify
from memoryd.daemon.system.presence import WatchedFile, find_missing

WRITER_LIMIT_S = 60.0  # no single step of the writer takes nearly as long; waiting for a lock ends after 10 s
_PULSES = 3  # within systemd's limit
_FILE_CHECK_S = 3.0
LOST = 74  # exit code of a daemon whose files were deleted or moved

log = logging.getLogger(__name__)


def read_interval_s() -> float | None:
    """Return how often systemd expects a pulse from this process, None if it expects none."""
    limit_us, pid = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID")
    if not limit_us.isdigit() or not int(limit_us) or pid not in (None, str(os.getpid())):
        return None
    return int(limit_us) / 1e6 / _PULSES


async def pulse(every_s: float | None, writer_silent_s: Callable[[], float], limit_s: float = WRITER_LIMIT_S) -> None:
    """Send systemd a pulse at intervals, if it expects one, as long as the writer works."""
    is_logged = False
    while every_s:
        silent_s = writer_silent_s()
        if silent_s < limit_s:
            notify.notify_systemd("WATCHDOG=1")
        elif not is_logged:
            is_logged = True
            log.critical("the writer has not moved for %.0f s; systemd gets no more pulses", silent_s)
        await asyncio.sleep(every_s)


async def wait_for_loss(watched: Iterable[WatchedFile]) -> Path:
    """Wait until a file is no longer where it was; return its path."""
    files = list(watched)
    while not (missing := find_missing(files)):
        await asyncio.sleep(_FILE_CHECK_S)
    return missing

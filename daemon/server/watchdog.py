"""The watchdog's pulse: systemd hears from the daemon only while it does its work.

The pulse is a task of the event loop, so a loop that hangs is silent by itself. It also holds back while the writer is
stuck: acknowledged writes come from there alone, so a daemon without it is up in name only. A long write is not a
stuck one: the writer's own connection reports each million steps of a statement.

A daemon whose database, lock or socket was deleted or moved serves nobody and keeps nothing: it ends.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from memoryd.daemon.system import notify
from memoryd.daemon.system.presence import WatchedFile, find_missing

WRITER_LIMIT_S = 60.0  # nothing the writer does in one step takes nearly as long; waiting for a lock ends after 10 s
_PULSES = 3  # within systemd's limit
_LOOK_EVERY_S = 3.0  # at files
LOST = 74  # exit code of a daemon whose files were taken away

log = logging.getLogger(__name__)


def read_interval_s() -> float | None:
    """Return how often systemd wants to hear from this process, None if it does not."""
    limit_us, pid = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID")
    if not limit_us.isdigit() or not int(limit_us) or pid not in (None, str(os.getpid())):
        return None
    return int(limit_us) / 1e6 / _PULSES


async def pulse(every_s: float | None, writer_silent_s: Callable[[], float], limit_s: float = WRITER_LIMIT_S) -> None:
    """Notify systemd at intervals, if it wants that, that the daemon is alive, as long as the writer is."""
    is_told = False
    while every_s:
        silent_s = writer_silent_s()
        if silent_s < limit_s:
            notify.notify_systemd("WATCHDOG=1")
        elif not is_told:
            is_told = True
            log.critical("the writer has not moved for %.0f s: no further word to the watchdog", silent_s)
        await asyncio.sleep(every_s)


async def wait_for_loss(watched: Iterable[WatchedFile]) -> Path:
    """Return the path of the first file that is not where it was, once there is one."""
    files = list(watched)
    while not (missing := find_missing(files)):
        await asyncio.sleep(_LOOK_EVERY_S)
    return missing

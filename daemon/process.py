"""What the operating system tells about this process, and what it is asked for."""

import os
import threading

_NICE = 10  # of 19


def rss_bytes() -> int:
    """Return the resident memory in bytes."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def be_nice(by: int = _NICE) -> None:
    """Let the threads of interactive calls go before the calling one."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), by)

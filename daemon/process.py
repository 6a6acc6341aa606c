"""What the operating system tells about this process, and what it is asked for."""

import ctypes
import os
import threading

_NICE = 10  # of 19
_libc = ctypes.CDLL(None)


class _Mallinfo2(ctypes.Structure):
    """What glibc's mallinfo2(3) returns."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    )


def rss_bytes() -> int:
    """Return the resident memory in bytes."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def be_nice(by: int = _NICE) -> None:
    """Let the threads of interactive calls go before the calling one.

    One that is nicer already, as in a daemon that a client of low priority started, stays so: only root may go back.
    """
    thread = threading.get_native_id()
    os.setpriority(os.PRIO_PROCESS, thread, max(by, os.getpriority(os.PRIO_PROCESS, thread)))


def kept_bytes() -> int:
    """Return how much of its memory the allocator has free, given back or not; 0 where the C library does not tell."""
    if not hasattr(_libc, "mallinfo2"):  # another C library, or glibc before 2.33
        return 0
    _libc.mallinfo2.restype = _Mallinfo2
    return int(_libc.mallinfo2().fordblks)


def return_memory() -> None:
    """Give freed memory back to the system; every arena is locked while it is looked through (some milliseconds)."""
    if hasattr(_libc, "malloc_trim"):
        _libc.malloc_trim(0)

"""What the operating system tells about this process."""

import os


def rss_bytes() -> int:
    """Return the resident memory in bytes."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

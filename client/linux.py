"""Functions that only Linux has, and the error on other systems.

These are the peer of a socket, uptime and id of the boot, files of /proc, the processors that may be used and the C
library. The service manager is in `transport/activation`.

A client, memctl and the daemon call `check` when they start, so that no other module has to. This module can be
imported on any system, because `memctl --help` and `import memoryd.client` work there.
"""

import os
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from memoryd.client.errors import Unavailable

if TYPE_CHECKING:
    import ctypes
    import socket

_SYSTEM_NAMES = {"darwin": "macOS", "win32": "Windows", "cygwin": "Windows"}


class Peer(Struct, frozen=True):
    """A process and its user."""

    pid: int
    uid: int


def is_here() -> bool:
    """Return whether this is Linux."""
    return sys.platform == "linux"


def check() -> None:
    """Raise `Unavailable` on another system, with a way to use memoryd there."""
    if not is_here():
        system = _SYSTEM_NAMES.get(sys.platform, sys.platform)
        alternative = "WSL 2 or a container" if system == "Windows" else "a container or a virtual machine"
        raise Unavailable(
            f"memoryd runs on Linux, not on {system}; use it in {alternative}, or give your agent the address of"
            " `memctl mcp --http` on a Linux machine, over ssh (docs/machines.md)."
        )


def find_peer(connection: "socket.socket") -> Peer:
    """Return the process at the other end of a Unix socket."""
    import socket
    import struct

    credentials = struct.Struct("3i")  # ucred: process, user, group
    pid, uid, _ = credentials.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, credentials.size))
    return Peer(pid, uid)


def measure_uptime_s() -> float:
    """Return the seconds since the boot, sleep included."""
    import time

    return time.clock_gettime(time.CLOCK_BOOTTIME)


def read_boot_id() -> str:
    """Return the id of this boot; empty if it cannot be read."""
    return read_process("sys/kernel/random", "boot_id").decode().strip()


def read_process(pid: int | str, name: str) -> bytes:
    """Return a file of /proc about a process; empty if it cannot be read, for example because the process has ended."""
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""


def count_processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))


@cache
def libc() -> "ctypes.CDLL | Any":
    """Return the C library of this process, with an errno for each thread."""
    import ctypes

    return ctypes.CDLL(None, use_errno=True)

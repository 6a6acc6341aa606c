"""What Linux offers for files that other programs write too: exchanging two of them, and asking who writes one.

Where a file system has neither (network, FAT), as nearly as plain calls can.
"""

import ctypes
import errno
import fcntl
import os
import secrets
import signal
import stat
import time

EXCHANGE, NO_REPLACE = 2, 1
PREFIX = ".memoryd-"  # of drafts; hidden, so no scan takes them for notes
WRITER_LIMIT_S = 3.0  # until a program that has a file open for writing is given up on
STEP_S = 0.005
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SET_SIGNAL = 10  # F_SETSIG: which signal says that somebody waits for a lease; the usual one would end the process

_libc = ctypes.CDLL(None, use_errno=True)


def rename(folder: int, origin: str, target: str, flags: int) -> None:
    """Rename with `renameat2`; where the file system cannot, as nearly as the plain calls can."""
    number = errno.ENOSYS
    if hasattr(_libc, "renameat2"):
        if _libc.renameat2(folder, os.fsencode(origin), folder, os.fsencode(target), flags) == 0:
            return
        number = ctypes.get_errno()
    if number not in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
        raise OSError(number, os.strerror(number), target)
    if flags == NO_REPLACE:
        _copy(folder, origin, target)
        return
    aside = f"{PREFIX}{secrets.token_hex(8)}.tmp"
    try:
        os.link(target, aside, src_dir_fd=folder, dst_dir_fd=folder)  # so that what is replaced can be looked at
    except PermissionError:  # no links here
        _copy(folder, target, aside)
    os.rename(origin, target, src_dir_fd=folder, dst_dir_fd=folder)
    os.rename(aside, origin, src_dir_fd=folder, dst_dir_fd=folder)


def _copy(folder: int, origin: str, target: str) -> None:
    with open(os.open(origin, READ, dir_fd=folder), "rb") as source:
        data, mode = source.read(), stat.S_IMODE(os.fstat(source.fileno()).st_mode)
    with open(os.open(target, WRITE, mode, dir_fd=folder), "wb") as copy:
        copy.write(data)
        copy.flush()
        os.fsync(copy.fileno())


def is_unwritten(descriptor: int) -> bool:
    """Wait until no program has a file open for writing; say whether that is so, or cannot be known."""
    give_up_at = time.monotonic() + WRITER_LIMIT_S
    while True:
        try:
            fcntl.fcntl(descriptor, _SET_SIGNAL, signal.SIGURG)
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except BlockingIOError:
            if time.monotonic() > give_up_at:
                return False
            time.sleep(STEP_S)
            continue
        except OSError:
            return True  # no leases here, or a file of another user
        # Somebody who opens it for writing waits from here on, and is seen.
        is_wanted = fcntl.fcntl(descriptor, fcntl.F_GETLEASE) != fcntl.F_RDLCK
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        if not is_wanted:
            return True

"""What hooks could not tell the daemon: one line of JSON per call, in order, sent when it answers again.

One file of mode 0600 beside the database. Its lock is held to append a line and to take out lines, never while the
daemon is asked: a daemon that hangs delays no other hook. A turn has its id and time from the moment it was said, so
what is sent twice (a hook killed between sending and taking out) is taken once. Over `MAX_BYTES` new lines are refused.
"""

import fcntl
import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from memoryd.client import paths, trust
from memoryd.client.credentials import redact_tree
from memoryd.client.memctl.hooks.wire import Link, Refused, Silent

MAX_BYTES = 16 * 1024 * 1024
# What the daemon will refuse again, however often it is asked.
_HOPELESS = frozenset({"invalid", "conflict", "not_found", "forbidden", "bad_frame", "unknown_method"})


def path() -> str:
    """Return where the spool is."""
    return os.path.join(paths.data_folder(), "hooks.spool")


def append(call: dict[str, Any]) -> bool:
    """Keep a call for later, without credentials; tell whether there was room. It is on disk when this returns.

    Raise `Untrusted` where the folder or the spool belongs to another user.
    """
    folder = os.path.dirname(path())
    os.makedirs(folder, mode=0o700, exist_ok=True)
    trust.check_data_folder(folder)
    line = msgspec.json.encode(redact_tree(call, Counter())) + b"\n"
    with _locked(os.O_RDWR | os.O_CREAT) as file:
        size = os.fstat(file).st_size
        if size + len(line) > MAX_BYTES:
            return False
        if size and os.pread(file, 1, size - 1) != b"\n":
            line = b"\n" + line  # whoever wrote there last was killed half-way
        os.pwrite(file, line, size)
        os.fdatasync(file)
    return True


def waiting() -> int:
    """Return how many calls wait."""
    return _read().count(b"\n") if _size() else 0


def replay(link: Link, until: float) -> None:
    """Send what waits, oldest first, to a moment of the monotonic clock; what the daemon has is taken out."""
    if not _size():
        return
    data, taken = _read(), 0
    try:
        for line in data.splitlines(keepends=True):
            if time.monotonic() > until or not _passed_on(link, line):
                break
            taken += len(line)
    finally:
        _take_out(data[:taken])


def _passed_on(link: Link, line: bytes) -> bool:
    """Send one line; tell whether it is done with. Half a line never becomes a whole one."""
    try:
        return sent(link, msgspec.json.decode(line, type=dict[str, Any]))
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError, RecursionError):
        return True


def sent(link: Link, call: dict[str, Any]) -> bool:
    """Send a call; tell whether it is done with: taken, or such that the daemon will never take it."""
    try:
        link.call(**call)
    except Silent:
        return False
    except Refused as refused:
        return str(refused) in _HOPELESS
    return True


def _size() -> int:
    """Return the size of the spool, 0 for one that is another user's: what it says is not sent."""
    try:
        status = os.lstat(path())
    except OSError:
        return 0
    return status.st_size if trust.is_trusted(status.st_uid) else 0


def _read() -> bytes:
    with _locked(os.O_RDWR) as file:
        return os.pread(file, MAX_BYTES, 0)


def _take_out(beginning: bytes) -> None:
    """Take the beginning out, unless another hook has done so. A crash in between leaves lines twice, none lost."""
    if not beginning:
        return
    with _locked(os.O_RDWR) as file:
        data = os.pread(file, MAX_BYTES, 0)
        if data.startswith(beginning):
            rest = data[len(beginning) :]
            os.pwrite(file, rest, 0)
            os.ftruncate(file, len(rest))


@contextmanager
def _locked(flags: int) -> Iterator[int]:
    file = os.open(path(), flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        trust.check_owner(path(), os.fstat(file).st_uid)
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file
    finally:
        os.close(file)

"""The daemon, which kills itself at one of its writes to the database: python dying_daemon.py NUMBER [OPTION…]."""

import itertools
import os
import signal
import sys

import apsw

PLACES = itertools.count(1)
LAST = int(sys.argv[1])


def die_at_last() -> bool:
    """Return whether this is the place; the caller may still do a part of what it was about to do."""
    return next(PLACES) == LAST


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class _File(apsw.VFSFile):
    def xWrite(self, data: bytes, offset: int) -> None:
        if die_at_last():
            super().xWrite(data[: len(data) // 2], offset)
            die()
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        if die_at_last():
            die()
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        if die_at_last():
            die()
        super().xSync(flags)


class _System(apsw.VFS):
    def xOpen(self, name: "str | apsw.URIFilename | None", flags: list[int]) -> apsw.VFSFile:
        return _File("unix", name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        if die_at_last():
            die()
        super().xDelete(filename, syncdir)


if __name__ == "__main__":
    SYSTEM = _System("dying", "unix", makedefault=True)
    from memoryd.daemon.__main__ import main

    sys.exit(main(sys.argv[2:]))

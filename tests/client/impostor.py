"""Another user's process that listens where a daemon should: it keeps what it is sent. Only root can start one."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NOBODY = 65534
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can start a process of another user")

# It is this test's interpreter, which another user may not be able to start: so it changes its user once it runs.
_LISTEN = f"""
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
os.setgroups([])
os.setgid({NOBODY})
os.setuid({NOBODY})
os.umask(0)
os.makedirs(os.path.dirname(sys.argv[1]), exist_ok=True)
listener.bind(sys.argv[1])
listener.listen()
print("ready", flush=True)
while True:
    stream, _ = listener.accept()
    stream.settimeout(20)
    while data := stream.recv(65536):
        sys.stdout.buffer.write(data)
    sys.stdout.flush()
"""


class Impostor:
    """The running process; `heard` ends it and returns what it was sent."""

    def __init__(self, child: "subprocess.Popen[bytes]") -> None:
        self._child = child

    def heard(self) -> bytes:
        self._child.terminate()
        return self._child.communicate(timeout=60)[0]


@contextmanager
def impostor(path: Path) -> Iterator[Impostor]:
    """Listen at a path as another user for the length of a block; the path's folder is made where it is missing."""
    command = [sys.executable, "-c", _LISTEN, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        try:
            assert child.stdout.readline() == b"ready\n"
            yield Impostor(child)
        finally:
            child.terminate()

"""Start the daemon when none answers: detached, and once, however many clients race.

The first client takes a lock beside the socket and starts the daemon; the others wait for the lock, find the daemon
answering and go on. The daemon tells through a pipe when it is ready or why it is not.
"""

import fcntl
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from memoryd.client import paths
from memoryd.client.errors import Unavailable

START_LIMIT_S = 30.0


def start(socket_path: Path, arguments: Sequence[str] = ()) -> None:
    """Start a daemon at `socket_path` unless one answers by now; return when it is ready, raise `Unavailable`."""
    make_private(socket_path.parent)
    with _lock(socket_path.with_name(socket_path.name + ".start")):
        if not answers(socket_path):
            _launch(socket_path, arguments)


def answers(socket_path: Path) -> bool:
    """Tell whether a daemon accepts connections at `socket_path`."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(os.fspath(socket_path))
        except OSError:
            return False
        return True


def make_private(folder: Path) -> None:
    """Create a folder with mode 0700; one that exists is left as it is."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"The folder {folder} cannot be made: {error.strerror}.") from None


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    give_up_at = time.monotonic() + START_LIMIT_S
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > give_up_at:
                    raise Unavailable(
                        f"Another process has been starting the daemon for {START_LIMIT_S:g} s."
                    ) from None
                time.sleep(0.01)
        yield
    finally:
        os.close(descriptor)


def _launch(socket_path: Path, arguments: Sequence[str]) -> None:
    if find_spec("apsw") is None:
        raise Unavailable("No daemon answers and none is installed here; run: pip install 'memoryd[daemon]'")
    log_path = paths.data_dir() / "memoryd.log"
    make_private(log_path.parent)
    ready, told = os.pipe()
    command = [
        sys.executable,
        "-m",
        "memoryd.daemon",
        "--socket",
        str(socket_path),
        "--ready-fd",
        str(told),
        *arguments,
    ]
    try:
        with open(log_path, "ab", opener=_private) as log:
            # The shell leaves at once, so the daemon is nobody's child and no client has to wait for its end.
            shell = ["/bin/sh", "-c", '"$@" &', "memoryd", *command]
            subprocess.run(
                shell,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[told],
                start_new_session=True,
                check=True,
            )
        os.close(told)
        told = -1
        _await_ready(ready, log_path)
    finally:
        os.close(ready)
        if told >= 0:
            os.close(told)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _await_ready(ready: int, log_path: Path) -> None:
    readable, _, _ = select.select([ready], [], [], START_LIMIT_S)
    word = os.read(ready, 4096).decode("utf-8", "replace") if readable else ""
    if word == "READY":
        return
    if not readable:
        raise Unavailable(f"The daemon was not ready within {START_LIMIT_S:g} s; see {log_path}.")
    raise Unavailable(f"The daemon did not start: {word or f'see {log_path}'}")

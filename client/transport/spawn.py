"""Start the daemon if none answers: through systemd if the service is installed, else as a detached process.

If several clients race, the first one takes a lock beside the socket and starts the daemon; the others wait for the
lock and then find the daemon. The daemon reports through a pipe that it is ready, or why it failed.
"""

import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO

from memoryd.client.errors import Unavailable
from memoryd.client.extras import advise
from memoryd.client.transport import activation, other_socket, paths, trust
from memoryd.client.transport.lock import take

START_LIMIT_S = 30.0
LOCK_LIMIT_S = START_LIMIT_S + 5.0  # so that waiting clients see the result, even of a start that failed
# Variables that systemd sets for a process that it starts; they are wrong for the daemon, which outlives that process.
_NOT_INHERITED = ("NOTIFY_SOCKET", "JOURNAL_STREAM", "INVOCATION_ID", "WATCHDOG_PID", "WATCHDOG_USEC")


def start(socket_path: Path, arguments: Sequence[str] = ()) -> str:
    """Start a daemon at `socket_path` unless one answers by now; return its socket once it is ready.

    This also enables hooks again after memoryd was uninstalled. Raise `Unavailable`.
    """
    trust.make_private(socket_path.parent)
    with suppress(OSError):
        os.unlink(paths.removed_mark())
    with _lock(socket_path.with_name(socket_path.name + ".start")):
        if there := locate(socket_path):
            return there
        if activation.is_enabled(socket_path) and activation.start():
            return str(socket_path)
        try:
            _launch(socket_path, arguments)
        except Unavailable:
            if there := locate(socket_path):  # another process has started one
                return there
            raise
    return str(socket_path)


def locate(socket_path: Path) -> str:
    """Return the socket of the daemon: `socket_path`, or the one in the lock of the data folder; empty for none."""
    return str(socket_path) if is_answering(socket_path) else other_socket.find(str(socket_path))


def is_answering(socket_path: Path) -> bool:
    """Return whether a daemon listens at `socket_path`; raise `Untrusted` if it belongs to another user."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(os.fspath(socket_path))
            trust.check_connection(probe, os.fspath(socket_path))
        except BlockingIOError:  # a daemon listens, but its queue of connections is full
            return True
        except OSError as error:
            trust.check_denied(error, os.fspath(socket_path))
            return False
        return True


def make_private(folder: Path) -> None:
    """Create a folder with mode 0700; an existing folder is not changed."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"The folder {folder} cannot be made: {error.strerror}.") from None


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Unavailable(f"No daemon answers and none can be started: {path}: {error.strerror}.") from None
    try:
        try:
            take(descriptor, LOCK_LIMIT_S)
        except BlockingIOError:
            raise Unavailable(f"Another process has been starting the daemon for {LOCK_LIMIT_S:g} s.") from None
        yield
    finally:
        os.close(descriptor)


def _launch(socket_path: Path, arguments: Sequence[str]) -> None:
    if find_spec("apsw") is None:
        raise Unavailable(f"No daemon answers and none is installed here; {advise('daemon')}")
    log_path = paths.data_dir() / "memoryd.log"
    make_private(log_path.parent)
    ready, report = os.pipe()
    try:
        try:
            options = ["--socket", str(socket_path), "--log-file", str(log_path), "--ready-fd", str(report)]
            _run([*options, *arguments], log_path, report)
        finally:
            os.close(report)
        _await_ready(ready, log_path, socket_path)
    finally:
        os.close(ready)


def _run(arguments: Sequence[str], log_path: Path, report: int) -> None:
    # The shell exits at once, so the daemon is reparented and the client need not reap it. With -P the daemon does not
    # import modules from the client's current directory.
    daemon = [sys.executable, "-P", "-m", "memoryd.daemon", *arguments]
    with _open_log(log_path) as log:
        subprocess.run(
            ["/bin/sh", "-c", '"$@" &', "memoryd", *daemon],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[report],
            env={name: value for name, value in os.environ.items() if name not in _NOT_INHERITED},
            start_new_session=True,
            check=True,
        )


def _open_log(path: Path) -> BinaryIO:
    try:
        return open(path, "ab", opener=lambda name, flags: os.open(name, flags, 0o600))
    except OSError as error:
        raise Unavailable(f"No daemon answers and none can be started: {path}: {error.strerror}.") from None


def _await_ready(ready: int, log_path: Path, socket_path: Path) -> None:
    readable, _, _ = select.select([ready], [], [], START_LIMIT_S)
    word = os.read(ready, 4096).decode("utf-8", "replace") if readable else ""
    if word == "READY":
        return
    if not readable:
        raise Unavailable(f"The daemon was not ready within {START_LIMIT_S:g} s; see {log_path}.")
    raise Unavailable(f"No daemon answers at {socket_path}, and none did start: {word or f'see {log_path}'}")

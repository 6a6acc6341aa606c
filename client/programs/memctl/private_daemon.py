"""A temporary daemon in a folder of its own, which is stopped and removed at the end.

If memctl is killed, a shell that waits for its end kills the daemon and removes the folder.

Socket, database and log are in that folder, so the user's daemon and data are not touched. Only the models are shared.
"""

import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from memoryd.client.errors import MemorydError, Unavailable
from memoryd.client.programs.memctl.local import environment, require_daemon
from memoryd.client.protocol import Shutdown
from memoryd.client.transport.paths import MAX_SOCKET_PATH_BYTES
from memoryd.client.transport.sync import Client

PID_FILE = "pid"
_GUARD = """cat > /dev/null
[ -d "$1" ] || exit 0
read -r pid < "$1/$2" && kill -KILL "$pid"
while [ -d "$1" ] && [ $((tries += 1)) -le 20 ]; do rm -rf "$1" && sleep 0.2; done"""
START_LIMIT_S = 60.0
STOP_LIMIT_S = 15.0


class PrivateDaemon:
    """The process and its folder; it may be killed and started again on the same data."""

    def __init__(self, folder: Path, arguments: Sequence[str] = ()) -> None:
        self.folder = folder
        self.socket = folder / "s"
        self.data_dir = folder / "data"
        self.log = folder / "log"
        self.clock = folder / "clock"  # its modification time is the daemon's time, if `clock` was given
        self._arguments = arguments
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id of the running daemon."""
        return self._process.pid if self._process else 0

    def client(self, namespace: str = "", timeout_s: float = 600.0) -> Client:
        """Return a client of this daemon."""
        return Client(namespace, socket=self.socket, token="", timeout_s=timeout_s, autostart=False)

    def start(self) -> None:
        """Start the daemon and return when it is ready; raise `Unavailable` with the reason if it fails."""
        ready, report = os.pipe()
        paths = ["--socket", str(self.socket), "--data-dir", str(self.data_dir), "--ready-fd", str(report)]
        try:
            with self.log.open("ab") as log:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "memoryd.daemon", *paths, *self._arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=[report],
                    env=environment(),
                    start_new_session=True,  # so that Ctrl-C interrupts memctl alone, which stops the daemon itself
                )
        finally:
            os.close(report)
        (self.folder / PID_FILE).write_text(f"{self.pid}\n")
        try:
            self._await_ready(ready)
        finally:
            os.close(ready)

    def _await_ready(self, ready: int) -> None:
        readable, _, _ = select.select([ready], [], [], START_LIMIT_S)
        word = os.read(ready, 4096).decode("utf-8", "replace") if readable else f"not ready after {START_LIMIT_S:g} s"
        if word != "READY":
            lines = self.log.read_text("utf-8", "replace").splitlines()
            raise Unavailable(f"The temporary daemon did not start: {word or (lines or ['its log is empty'])[-1]}")

    def kill(self) -> None:
        """End the daemon at once with SIGKILL, like a power failure."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None
            (self.folder / PID_FILE).unlink(missing_ok=True)

    def stop(self) -> None:
        """Ask the daemon to stop; kill it if it does not."""
        if self._process and self._process.poll() is None:
            with suppress(MemorydError, subprocess.TimeoutExpired):
                with self.client(timeout_s=STOP_LIMIT_S) as client:
                    client.call(Shutdown())
                self._process.wait(STOP_LIMIT_S)
        self.kill()


@contextmanager
def run_private_daemon(
    arguments: Sequence[str] = (), config: str = "", clock: float | None = None
) -> Iterator[PrivateDaemon]:
    """Run a daemon in a temporary folder; stop it and remove the folder at the end, also on Ctrl-C and SIGTERM.

    `config` is the text of a configuration file for it, instead of the user's. With `clock` (UTC seconds) its time is
    the modification time of the file `clock`, which begins there and changes only if somebody sets it.
    """
    require_daemon()
    with make_guarded_folder() as folder:
        if config:
            (folder / "config.toml").write_text(config, "utf-8")
            arguments = [*arguments, "--config", str(folder / "config.toml")]
        if clock is not None:
            (folder / "clock").touch()
            os.utime(folder / "clock", (clock, clock))
            arguments = [*arguments, "--clock", str(folder / "clock")]
        daemon = PrivateDaemon(folder, arguments)
        try:
            daemon.start()
            yield daemon
        finally:
            daemon.stop()


@contextmanager
def make_guarded_folder() -> Iterator[Path]:
    """Make a temporary folder that is removed at the end, also on Ctrl-C, SIGTERM, and when this process is killed."""
    with _catch_signals():
        folder = _make_short_folder()
        guard = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "sh", str(folder), PID_FILE],
            stdin=subprocess.PIPE,  # ends with this process
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            guard.communicate()


def _make_short_folder() -> Path:
    """Make a private folder whose path is short enough for a socket inside."""
    folder = tempfile.mkdtemp(prefix="memoryd-")
    if len(os.fsencode(folder)) + len("/s.start") > MAX_SOCKET_PATH_BYTES:
        os.rmdir(folder)
        folder = tempfile.mkdtemp(prefix="memoryd-", dir="/tmp")
    return Path(folder)


@contextmanager
def _catch_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP unwind the stack, so that the folder is removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = {number: signal.signal(number, _exit) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _exit(number: int, frame: object) -> None:
    raise SystemExit(128 + number)

"""Stop the daemon for work on its database, and restart it with the same options.

The new files are prepared next to the database. The next process that holds the lock of the data directory puts them in
place: this one if no daemon runs, else the next daemon. So a daemon that a client starts in between never sees a
half-finished state.
"""

import time
from argparse import Namespace
from pathlib import Path

import msgspec

from memoryd.client import linux
from memoryd.client.errors import MemorydError, TimedOut, Unavailable
from memoryd.client.programs.memctl.link import client_for
from memoryd.client.programs.memctl.local import read_output
from memoryd.client.protocol import Shutdown, Status
from memoryd.client.rescue import RescueReport
from memoryd.client.transport import paths, spawn

MODULE = "memoryd.daemon.upkeep.rescue"
_STOP_S = 60.0
_LOCK_S = 10.0


def get_status(args: Namespace) -> Status | None:
    """Return the status of the daemon, None if none answers."""
    with client_for(args, autostart=False) as client:
        try:
            return client.status()
        except Unavailable:
            return None


def folder_of(status: Status | None) -> Path:
    """Return the data directory: that of the running daemon, else the default one."""
    return Path(status.data_dir) if status else paths.data_dir()


def rescue(folder: Path, command: str, *words: str, wait_s: float = 0.0) -> RescueReport:
    """Run a command on a data directory in a separate process."""
    options = ["--data-dir", str(folder), "--wait-s", str(wait_s)]
    return msgspec.json.decode(read_output(MODULE, [command, *words, *options], progress=False), type=RescueReport)


def exchange(args: Namespace, status: Status | None, report: RescueReport) -> RescueReport:
    """If a daemon runs, put the prepared files in place between its end and its restart."""
    if report.taken_up or status is None:
        return report
    folder = Path(status.data_dir)
    try:
        ask_to_stop(args)
    except BaseException:  # refused or interrupted: a later start must not do it
        rescue(folder, "cancel")
        raise
    wait_until_gone(args, status.pid)
    before = set(folder.glob("before-*"))
    try:
        taken = rescue(folder, "take-up", wait_s=_LOCK_S)
    except MemorydError:  # a daemon was started meanwhile and has put them in place
        taken = RescueReport()
    start(args, status.options)
    kept = taken.kept or next((str(path) for path in sorted(set(folder.glob("before-*")) - before)), "")
    return msgspec.structs.replace(report, taken_up=True, kept=kept)


def stop(args: Namespace, status: Status) -> None:
    """Stop a daemon and wait until its process has ended; raise `TimedOut`."""
    ask_to_stop(args)
    wait_until_gone(args, status.pid)


def ask_to_stop(args: Namespace) -> None:
    """Ask a daemon to stop; raise its error if it refuses."""
    with client_for(args, autostart=False) as client:
        client.call(Shutdown())


def wait_until_gone(args: Namespace, pid: int) -> None:
    """Wait until the process of a daemon has ended; raise `TimedOut`."""
    give_up_at = time.monotonic() + max(args.timeout, _STOP_S)
    while is_alive(pid):
        if time.monotonic() > give_up_at:
            raise TimedOut(
                f"The daemon (pid {pid}) still runs; the restored database is used if it restarts within ten minutes."
            )
        time.sleep(0.02)


def start(args: Namespace, arguments: list[str]) -> None:
    """Start a daemon unless one answers already, for example through socket activation."""
    with client_for(args, autostart=False) as client:
        spawn.start(client.socket_path, arguments)
        client.status()


def is_alive(pid: int) -> bool:
    """Return whether a process is running; a zombie is not."""
    state = linux.read_process(pid, "stat").rpartition(b")")[2].split()[:1]
    return state not in ([], [b"Z"], [b"X"])

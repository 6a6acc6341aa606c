"""Stopping a daemon for work on its database, and starting it again as it was.

The work is made ready beside the database and taken up by the next process that holds the lock of the data
directory: this one if no daemon runs, else the next daemon. So a client that starts a daemon in between never meets
half of it.
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
    """Return the status of the daemon that answers, None if none does."""
    with client_for(args, autostart=False) as client:
        try:
            return client.status()
        except Unavailable:
            return None


def folder_of(status: Status | None) -> Path:
    """Return the data directory: that of the running daemon, else the usual one."""
    return Path(status.data_dir) if status else paths.data_dir()


def rescue(folder: Path, command: str, *words: str, wait_s: float = 0.0) -> RescueReport:
    """Run one command on a data directory in a process of its own."""
    options = ["--data-dir", str(folder), "--wait-s", str(wait_s)]
    return msgspec.json.decode(read_output(MODULE, [command, *words, *options], progress=False), type=RescueReport)


def exchange(args: Namespace, status: Status | None, report: RescueReport) -> RescueReport:
    """See that what was made ready is taken up: stop the daemon, if one runs, and start it again."""
    if report.taken_up or status is None:
        return report
    arguments = read_arguments(status)
    folder = Path(status.data_dir)
    try:
        ask_to_stop(args)
    except BaseException:  # refused or interrupted: nothing of it may happen at a later start
        rescue(folder, "cancel")
        raise
    wait_until_gone(args, status.pid)
    before = set(folder.glob("before-*"))
    try:
        taken = rescue(folder, "take-up", wait_s=_LOCK_S)
    except MemorydError:  # somebody started a daemon meanwhile: it has taken it up
        taken = RescueReport()
    start(args, arguments)
    kept = taken.kept or next((str(path) for path in sorted(set(folder.glob("before-*")) - before)), "")
    return msgspec.structs.replace(report, taken_up=True, kept=kept)


def stop(args: Namespace, status: Status) -> None:
    """Stop a daemon and wait until its process has ended; raise `TimedOut`."""
    ask_to_stop(args)
    wait_until_gone(args, status.pid)


def ask_to_stop(args: Namespace) -> None:
    """Ask a daemon to stop; raise the error with which it refuses."""
    with client_for(args, autostart=False) as client:
        client.call(Shutdown())


def wait_until_gone(args: Namespace, pid: int) -> None:
    """Wait until the process of a daemon has ended; raise `TimedOut`."""
    give_up_at = time.monotonic() + max(args.timeout, _STOP_S)
    while is_alive(pid):
        if time.monotonic() > give_up_at:
            raise TimedOut(
                f"The daemon (pid {pid}) still runs; the restored one is used if it starts within ten minutes."
            )
        time.sleep(0.02)


def start(args: Namespace, arguments: list[str]) -> None:
    """Start a daemon unless one answers by now, as where its socket is held for it."""
    with client_for(args, autostart=False) as client:
        spawn.start(client.socket_path, arguments)
        client.status()


def is_alive(pid: int) -> bool:
    """Return whether a process is still at work; one that only waits to be collected by its parent is not."""
    state = linux.read_process(pid, "stat").rpartition(b")")[2].split()[:1]
    return state not in ([], [b"Z"], [b"X"])


def read_arguments(status: Status) -> list[str]:
    """Return the options that start a daemon again as it was, wherever this process and its environment are."""
    return status.options or ["--data-dir", status.data_dir]  # an older one does not say them

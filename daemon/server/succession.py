"""How the daemon is replaced by its successor: when an upgrade makes that necessary, and how the socket is passed on.

The listening socket outlives the daemon, so a client that connects during the restart waits in its queue and is not
refused. If a service manager (systemd) holds the socket, the daemon exits with `RESTART` and is started again.
Otherwise the process becomes the successor (exec), with the same process id and arguments and the socket's number.
"""

import logging
import os
import re
import socket
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path

import memoryd
from memoryd.client.protocol import PROTOCOL_VERSION, Welcome
from memoryd.daemon.store.store import Store

RESTART = 75  # exit code; the unit names it in RestartForceExitStatus
OPTION = "--listener-fd"
RESTART_AFTER_S = 10.0  # a younger daemon does not restart by itself
_TRIED = "restarted_for"  # setting: the version for which the daemon restarted, until that version runs

log = logging.getLogger(__name__)


class Succession:
    """Decides at a client's greeting whether a newer version takes over. Called on the event loop.

    If so, `restart` is called on the writer's thread.
    """

    def __init__(self, store: Store, restart: Callable[[], None]) -> None:
        self._store, self._restart = store, restart
        self._tried = store.read_setting(_TRIED) or ""
        if self._tried == memoryd.__version__:
            store.set_setting(_TRIED, "")
            self._tried = ""

    def greet(self, client: str, uptime_s: float) -> Welcome:
        """Return the answer to a client of a version.

        Each version is tried once: if one restart did not bring it, another one would not either. The restart waits
        until that is on disk, because a daemon that stops refuses the writes that still wait.
        """
        installed = read_installed_version()
        due = is_newer(installed, memoryd.__version__) and not is_newer(installed, client) and installed != self._tried
        restarting = due and uptime_s >= RESTART_AFTER_S
        if restarting:
            log.info("memoryd %s was installed and %s runs: restarting", installed, memoryd.__version__)
            self._tried = installed
            self._store.set_setting(_TRIED, installed).add_done_callback(self._restart_if_noted)
        return Welcome(
            version=memoryd.__version__, protocol=PROTOCOL_VERSION, installed=installed, restarting=restarting
        )

    def _restart_if_noted(self, noted: "Future[None]") -> None:
        if noted.exception() is None:
            self._restart()


def read_installed_version() -> str:
    """Return the version that a daemon started now would have: the one in the files that this one was loaded from."""
    try:
        text = Path(memoryd.__file__).read_text("utf-8")
    except (OSError, UnicodeDecodeError):  # being replaced at this moment, or deleted
        return memoryd.__version__
    match = re.search(r'^__version__ = "([^"]+)"', text, re.MULTILINE)
    return match.group(1) if match else memoryd.__version__


def is_newer(one: str, other: str) -> bool:
    """Return whether one release is newer than another; suffixes such as rc1 or dev3 are ignored."""
    return _parse_version(one) > _parse_version(other)


def _parse_version(version: str) -> tuple[int, ...]:
    match = re.match(r"\d+(\.\d+)*", version)
    numbers = [int(number) for number in match.group().split(".")] if match else []
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def become_successor(listener: socket.socket, options: Sequence[str]) -> None:
    """Replace this process by a new daemon that serves the same socket. Everything else must be closed by now."""
    os.set_inheritable(listener.fileno(), True)
    os.execv(sys.executable, [sys.executable, *read_program(), *options, OPTION, str(listener.fileno())])


def read_program() -> list[str]:
    """Return the beginning of this process's command line, which names the program, valid in any directory."""
    words = sys.orig_argv[1:]
    program = words[: len(words) - len(sys.argv[1:])]
    if program and program[-1] == sys.argv[0]:  # a script
        program[-1] = str(sys.modules["__main__"].__file__)
    return program

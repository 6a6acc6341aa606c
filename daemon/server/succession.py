"""How the daemon hands over to its successor: when an upgrade calls for one, and how it takes over the socket.

The listening socket outlives the daemon, so a client that connects meanwhile waits in its queue and is not refused. If
a service manager (systemd) holds it, the daemon ends with `RESTART` and is started again. Else the process becomes the
successor (exec): same process id, same arguments, the socket passed by its number.
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
_TRIED = "restarted_for"  # setting: the version that a restart was to bring, until it did

log = logging.getLogger(__name__)


class Succession:
    """Says whether a client's greeting means that a newer version is to take over. Called on the event loop.

    `restart` is called then, on the writer's thread.
    """

    def __init__(self, store: Store, restart: Callable[[], None]) -> None:
        self._store, self._restart = store, restart
        self._tried = store.read_setting(_TRIED) or ""
        if self._tried == memoryd.__version__:
            store.set_setting(_TRIED, "")
            self._tried = ""

    def greet(self, client: str, uptime_s: float) -> Welcome:
        """Return the answer to a client of a version.

        A version is tried once: if the restart did not bring it, another one would not either. So the restart begins
        when that is on disk: the end of a daemon refuses writes that still wait.
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
    """Return the version that a daemon started now would have: what is on disk where this one was loaded from."""
    try:
        text = Path(memoryd.__file__).read_text("utf-8")
    except (OSError, UnicodeDecodeError):  # being replaced at this moment, or deleted
        return memoryd.__version__
    match = re.search(r'^__version__ = "([^"]+)"', text, re.MULTILINE)
    return match.group(1) if match else memoryd.__version__


def is_newer(one: str, other: str) -> bool:
    """Return whether one release is newer than another; what follows the numbers (rc1, dev3) does not count."""
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
    """Return the words of this process's command line that name its program, whatever the working directory is now."""
    words = sys.orig_argv[1:]
    program = words[: len(words) - len(sys.argv[1:])]
    if program and program[-1] == sys.argv[0]:  # a script
        program[-1] = str(sys.modules["__main__"].__file__)
    return program

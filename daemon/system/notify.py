"""Report the daemon's state to the process that started it: systemd over a datagram socket, a client over a pipe."""

import logging
import os
import socket
from contextlib import suppress

log = logging.getLogger(__name__)


def notify_systemd(state: str) -> None:
    """Send a state such as READY=1 to systemd's notify socket, if there is one."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as notify:
            notify.sendto(state.encode(), address)
    except OSError as error:  # nobody listens, which does not matter
        log.warning("%s could not be notified at %r: %s", state, address, error.strerror)


def notify_starter(ready_fd: int | None, word: str) -> None:
    """Write READY or an error to the pipe of the client that started the daemon, and close the pipe."""
    if ready_fd is None:
        return
    with suppress(OSError):  # the client no longer exists
        os.write(ready_fd, word.encode()[:4096])
    with suppress(OSError):
        os.close(ready_fd)

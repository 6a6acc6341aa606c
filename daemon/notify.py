"""Tell whoever started the daemon how it is: systemd by its datagram socket, a client by the pipe it gave."""

import os
import socket


def systemd(state: str) -> None:
    """Send a state such as READY=1 to systemd's notify socket, if there is one."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as notify:
        notify.sendto(state.encode(), address)


def starter(ready_fd: int | None, word: str) -> None:
    """Write READY or the reason of a failure to the pipe of the client that started the daemon, and close it."""
    if ready_fd is None:
        return
    try:
        os.write(ready_fd, word.encode()[:4096])
        os.close(ready_fd)
    except OSError:
        pass  # the client is gone

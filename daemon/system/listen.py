"""The listening socket, which systemd or a predecessor passes or which is created here: its lock, and closing it.

To ensure a single instance, the daemon holds two exclusive locks until it ends: one next to the socket and one in the
data directory. The holder of the socket's lock may remove an existing socket file, since no running daemon can own it.
"""

import os
import socket
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from memoryd.client.errors import Conflict, Invalid, StorageFailed, Unavailable
from memoryd.client.transport import trust
from memoryd.client.transport.lock import take

_FIRST_PASSED_FD = 3
BACKLOG = 512


def lock(path: Path, what: str, wait_s: float = 0.0, address: str = "") -> int:
    """Take an exclusive lock for the life of the process; raise `Conflict` when another daemon holds it for `wait_s`.

    A daemon that stops closes its socket first and its database last, and its successor waits for that. The holder
    writes its `address` into the file, for the error message of other daemons.
    """
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StorageFailed(f"{path.parent} is not writable: {error.strerror}.") from None
    try:
        take(descriptor, wait_s)
    except BlockingIOError:
        there = os.pread(descriptor, 4096, 0).decode("utf-8", "replace")
        os.close(descriptor)
        at = f" and listens at {there}" if there else ""
        raise Conflict(f"Another daemon already serves {what}{at}; `memctl doctor` says which.") from None
    if address:
        with suppress(OSError):  # on a full disk; the address is only informative
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, address.encode("utf-8", "surrogateescape"), 0)
    return descriptor


def open_bound(path: Path) -> socket.socket:
    """Return a new listening socket in a private folder; replace a stale one."""
    if not path.is_absolute():
        raise Invalid(f"The socket {path} of [access] is no absolute path.")
    trust.make_private(path.parent)
    try:
        if path.is_socket():
            path.unlink()
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        made.bind(str(path))
        path.chmod(0o600)
        made.listen(BACKLOG)
    except OSError as error:
        raise StorageFailed(f"The socket {path} of [access] cannot be opened: {error.strerror or error}.") from None
    return made


def is_passed() -> bool:
    """Return whether systemd passed a socket to this process (LISTEN_FDS)."""
    return os.environ.get("LISTEN_PID") == str(os.getpid()) and os.environ.get("LISTEN_FDS") == "1"


def take_passed_socket() -> socket.socket | None:
    """Return the socket that systemd passed, None if there is none."""
    if not is_passed():
        return None
    for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"):
        os.environ.pop(name, None)
    return take_inherited_socket(_FIRST_PASSED_FD)


def take_inherited_socket(descriptor: int) -> socket.socket:
    """Return the listening socket that this process was started with."""
    os.set_inheritable(descriptor, False)
    listener = socket.socket(fileno=descriptor)
    if listener.family != socket.AF_UNIX:
        raise Invalid("The passed socket is not a Unix socket; memoryd does not listen on the network.")
    return listener


def listen(path: Path) -> socket.socket:
    """Create the socket at `path`, mode 0600, in a private folder; replace a stale one. The caller holds its lock."""
    trust.make_private(path.parent)
    _remove_stale(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(os.fspath(path))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise Unavailable(f"The socket {path} cannot be made: {error.strerror}.") from None
    finally:
        os.umask(before)
    return listener


class Listener(NamedTuple):
    """A listening socket. `inode` identifies the file of a socket created here; a service manager removes its own."""

    socket: socket.socket
    path: Path
    held: bool
    inode: int


def open_listener(path: Path, inherited: int | None) -> Listener:
    """Return the socket to serve: a service manager's, a predecessor's (its number is `inherited`) or a new one."""
    passed = take_passed_socket()
    bound = passed or (take_inherited_socket(inherited) if inherited is not None else listen(path))
    place = Path(bound.getsockname())
    return Listener(bound, place, passed is not None, _read_inode(place))


def retire(listener: Listener, farewell: bytes) -> None:
    """Close the socket: remove its file if it is ours, then refuse the clients in its queue."""
    with listener.socket:
        if listener.held:
            return
        if listener.inode == _read_inode(
            listener.path
        ):  # otherwise the file is that of another daemon or service manager
            listener.path.unlink()
        listener.socket.setblocking(False)
        with suppress(OSError):  # an empty queue raises an error, too, which ends the loop
            while True:
                waiting, _ = listener.socket.accept()
                with waiting, suppress(OSError):
                    waiting.setblocking(False)
                    waiting.send(farewell)


def _read_inode(path: Path) -> int:
    try:
        return path.lstat().st_ino
    except OSError:
        return 0


def _remove_stale(path: Path) -> None:
    """Remove the socket of a killed daemon, but no other kind of file."""
    try:
        status = path.lstat()
        if stat.S_ISSOCK(status.st_mode):
            trust.check_socket(str(path), status)
            path.unlink()
            return
    except FileNotFoundError:
        return
    except OSError as error:
        raise Unavailable(f"The socket {path} cannot be made: {error.strerror}.") from None
    raise Conflict(f"{path} is there and is not a socket; remove it or choose another socket path.")

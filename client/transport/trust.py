"""Whose a socket and its folder are: those of another user are refused before anything is sent.

Without XDG_RUNTIME_DIR the socket is in the shared temporary folder, where anybody may be the first to make it. This
user and root are trusted: root could read everything anyway, and a service manager of the system listens as root.
"""

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from memoryd.client.errors import Unavailable, Untrusted
from memoryd.client.linux import find_peer

if TYPE_CHECKING:
    import socket
    from pathlib import Path

_ADVICE = "choose a socket in a folder of your own with XDG_RUNTIME_DIR or MEMORYD_SOCKET"
_OTHERS = f"{_ADVICE}. A daemon serves its own user; others use MCP at an address (docs/server-team.md)"
_WRITABLE = stat.S_IWGRP | stat.S_IWOTH


def check_connection(connection: "socket.socket", address: str) -> None:
    """Raise `Untrusted` unless the socket, its folder and the process that listens are this user's or root's."""
    try:
        check_folder(os.path.dirname(address))
        check_socket(address, os.lstat(address))
    except FileNotFoundError:  # a daemon that ends has removed it since; who listens is known all the same
        pass
    _check_user(f"The process that listens at {address}", find_peer(connection).uid)


def check_denied(error: OSError, address: str) -> None:
    """Raise `Untrusted` when a socket could not be reached because its folder is another user's."""
    if isinstance(error, PermissionError):
        with suppress(OSError):  # a folder around it may be closed, too
            check_folder(os.path.dirname(address))


def check_folder(folder: str) -> None:
    """Raise `Untrusted` when another user owns a socket's folder or may exchange what is in it; OSError."""
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode):
        what = "a symbolic link" if stat.S_ISLNK(status.st_mode) else "no folder"
        raise Untrusted(f"{folder} is {what}, where the folder of the socket should be; remove it, or {_ADVICE}.")
    _check_user(f"The folder {folder}", status.st_uid)
    if status.st_mode & _WRITABLE and not status.st_mode & stat.S_ISVTX:  # sticky: nobody can exchange others' files
        from shlex import quote

        raise Untrusted(
            f"Other users may write in the folder {folder}; run `chmod go-w {quote(folder)}`, or {_ADVICE}."
        )


def make_private(folder: "Path") -> None:
    """Make a socket's folder with mode 0700; raise `Unavailable`, or `Untrusted` for one that cannot be used.

    Our own folder with wider rights is narrowed where its name says that it is memoryd's.
    """
    try:
        if not folder.is_symlink():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _narrow(folder)
        check_folder(str(folder))
    except OSError as error:
        raise Unavailable(f"The folder {folder} cannot be used: {error.strerror}.") from None


def is_trusted(uid: int) -> bool:
    """Return whether what belongs to a user may be used: our own, or root's."""
    return uid in (os.getuid(), 0)


def check_data_folder(folder: str) -> None:
    """Raise `Untrusted` when a folder of data, or the link that leads to it, belongs to another user; OSError."""
    for status in (os.lstat(folder), os.stat(folder)):
        check_owner(folder, status.st_uid)


def check_owner(path: str, uid: int) -> None:
    """Raise `Untrusted` for a file or folder of data that belongs to another user."""
    _check_user(path, uid, "choose a folder of your own with MEMORYD_DATA_DIR")


def check_socket(address: str, status: os.stat_result) -> None:
    """Raise `Untrusted` when what is at a socket's path leads elsewhere or belongs to another user."""
    if stat.S_ISLNK(status.st_mode):
        raise Untrusted(f"{address} is a symbolic link, which is not followed; name the socket itself, or {_ADVICE}.")
    _check_user(f"The socket {address}", status.st_uid)


def _narrow(folder: "Path") -> None:
    if not folder.name.startswith("memoryd") or not _is_open(os.lstat(folder)):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if _is_open(os.fstat(descriptor)):  # still: it may have been exchanged
            os.fchmod(descriptor, 0o700)
    finally:
        os.close(descriptor)


def _is_open(status: os.stat_result) -> bool:
    return status.st_uid == os.getuid() and bool(status.st_mode & (stat.S_IRWXG | stat.S_IRWXO))


def _check_user(what: str, uid: int, advice: str = _OTHERS) -> None:
    if is_trusted(uid):
        return
    import pwd

    try:
        user = f"the user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        user = f"user {uid}"
    raise Untrusted(f"{what} belongs to {user}, not to you; {advice}.")

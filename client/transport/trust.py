"""Check who owns a socket and its folder: those of other users are refused before anything is sent.

Without XDG_RUNTIME_DIR the socket is in the shared temporary folder, where another user may create it first. This user
and root are trusted: root can read everything anyway, and the system's service manager listens as root.
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
    """Raise `Untrusted` unless the socket, its folder and the listening process belong to this user or root."""
    try:
        check_folder(os.path.dirname(address))
        check_socket(address, os.lstat(address))
    except FileNotFoundError:  # removed by a daemon that is ending; the listening process is still checked
        pass
    _check_user(f"The process that listens at {address}", find_peer(connection).uid)


def check_denied(error: OSError, address: str) -> None:
    """Raise `Untrusted` if a socket could not be reached because its folder belongs to another user."""
    if isinstance(error, PermissionError):
        with suppress(OSError):  # a parent folder may be closed too
            check_folder(os.path.dirname(address))


def check_folder(folder: str) -> None:
    """Raise `Untrusted` if another user owns a socket's folder or can replace files in it; may raise OSError."""
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode):
        what = "a symbolic link" if stat.S_ISLNK(status.st_mode) else "no folder"
        raise Untrusted(f"{folder} is {what}, where the folder of the socket should be; remove it, or {_ADVICE}.")
    _check_user(f"The folder {folder}", status.st_uid)
    if status.st_mode & _WRITABLE and not status.st_mode & stat.S_ISVTX:  # sticky: only owners can replace files
        from shlex import quote

        raise Untrusted(
            f"Other users may write in the folder {folder}; run `chmod go-w {quote(folder)}`, or {_ADVICE}."
        )


def make_private(folder: "Path") -> None:
    """Create a socket's folder with mode 0700; raise `Unavailable`, or `Untrusted` if it must not be used.

    A folder of this user with wider permissions is restricted if its name shows that it is memoryd's.
    """
    try:
        if not folder.is_symlink():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _narrow(folder)
        check_folder(str(folder))
    except OSError as error:
        raise Unavailable(f"The folder {folder} cannot be used: {error.strerror}.") from None


def is_trusted(uid: int) -> bool:
    """Return whether files and processes of a user are trusted: this user's and root's are."""
    return uid in (os.getuid(), 0)


def check_data_folder(folder: str) -> None:
    """Raise `Untrusted` if a data folder, or the link to it, belongs to another user; may raise OSError."""
    for status in (os.lstat(folder), os.stat(folder)):
        check_owner(folder, status.st_uid)


def check_owner(path: str, uid: int) -> None:
    """Raise `Untrusted` if a data file or folder belongs to another user."""
    _check_user(path, uid, "choose a folder of your own with MEMORYD_DATA_DIR")


def check_socket(address: str, status: os.stat_result) -> None:
    """Raise `Untrusted` if a socket's path is a symbolic link or belongs to another user."""
    if stat.S_ISLNK(status.st_mode):
        raise Untrusted(f"{address} is a symbolic link, which is not followed; name the socket itself, or {_ADVICE}.")
    _check_user(f"The socket {address}", status.st_uid)


def _narrow(folder: "Path") -> None:
    if not folder.name.startswith("memoryd") or not _is_open(os.lstat(folder)):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if _is_open(os.fstat(descriptor)):  # checked again: it may have been replaced
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

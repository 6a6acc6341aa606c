"""The daemon of this data folder, where it listens at another socket than this environment names.

Without XDG_RUNTIME_DIR (cron, `su -`, `docker exec`), or with that of an editor's own, the usual socket is another one
than that of the shell which started the daemon. The lock in the data folder says at which that listens. It is read only
where nobody answers at the usual one, and what it says is believed only if socket and process are this user's own and
the daemon itself names this data folder: a lock outlives its daemon, and another one may listen there by now.
"""

import os
import socket

import msgspec

from memoryd.client.errors import MemorydError, Untrusted
from memoryd.client.linux import find_peer
from memoryd.client.transport import paths, trust
from memoryd.client.transport.frames import FrameReader, frame

LIMIT_S = 10.0  # for its first reply


class _Status(msgspec.Struct):
    data_dir: str


class _Reply(msgspec.Struct, array_like=True):
    """A result that names a data folder; any other reply is refused by its types."""

    kind: int
    id: int
    body: _Status


def find(address: str, limit_s: float = LIMIT_S) -> str:
    """Return the socket of the daemon that serves this environment's data folder elsewhere; empty: there is none.

    Where MEMORYD_SOCKET or an option chose `address`, no other one is looked for.
    """
    if os.environ.get("MEMORYD_SOCKET") or address != paths.socket_address():
        return ""
    folder = paths.data_folder()
    try:
        there = _read_lock(os.path.join(folder, "memoryd.lock"))
        if there == address or not os.path.isabs(there):
            return ""
        return there if os.path.realpath(_ask_folder(there, limit_s)) == os.path.realpath(folder) else ""
    except (OSError, ValueError, MemorydError):  # nobody is there, or it is not to be trusted
        return ""


def _read_lock(path: str) -> str:
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        trust.check_owner(path, os.fstat(file).st_uid)
        return os.read(file, 4096).decode("utf-8", "surrogateescape")
    finally:
        os.close(file)


def _ask_folder(address: str, limit_s: float) -> str:
    """Return the data folder that a daemon of this user names; OSError, `MemorydError`, ValueError for all else."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(limit_s)
        connection.connect(address)
        trust.check_connection(connection, address)
        if {os.lstat(address).st_uid, find_peer(connection).uid} != {os.getuid()}:
            raise Untrusted(f"{address} is root's: what is not named by this user has to be this user's own.")
        connection.sendall(frame(msgspec.msgpack.encode([1, 1, {"method": "status"}])))
        reader = FrameReader()
        while received := connection.recv(65536):
            for payload in reader.feed(received):
                return msgspec.msgpack.decode(payload, type=_Reply).body.data_dir
    raise ConnectionError("it closed the connection")

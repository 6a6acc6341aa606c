"""Find the daemon of this data folder if it listens at another socket than the usual one.

Without XDG_RUNTIME_DIR (cron, `su -`, `docker exec`), or with one that an editor has set, the usual socket differs from
that of the shell which started the daemon. The lock file in the data folder contains the daemon's socket. It is read
only if no daemon answers at the usual socket. A lock file outlives its daemon, and another daemon may listen there by
now, so the socket and the process must belong to this user and the daemon must report this data folder.
"""

import os
import socket

import msgspec

from memoryd.client.errors import MemorydError, Untrusted
from memoryd.client.linux import find_peer
from memoryd.client.transport import paths, trust
from memoryd.client.transport.frames import FrameReader, frame

LIMIT_S = 10.0  # for the daemon's first reply


class _Status(msgspec.Struct):
    data_dir: str


class _Reply(msgspec.Struct, array_like=True):
    """A result with a data folder; decoding fails for any other reply."""

    kind: int
    id: int
    body: _Status


def find(address: str, limit_s: float = LIMIT_S) -> str:
    """Return the socket of the daemon that serves this environment's data folder at another address, empty for none.

    If MEMORYD_SOCKET or an option chose `address`, no other socket is looked for.
    """
    if os.environ.get("MEMORYD_SOCKET") or address != paths.socket_address():
        return ""
    folder = paths.data_folder()
    try:
        there = _read_lock(os.path.join(folder, "memoryd.lock"))
        if there == address or not os.path.isabs(there):
            return ""
        return there if os.path.realpath(_ask_folder(there, limit_s)) == os.path.realpath(folder) else ""
    except (OSError, ValueError, MemorydError):  # no daemon listens there, or it is not trusted
        return ""


def _read_lock(path: str) -> str:
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        trust.check_owner(path, os.fstat(file).st_uid)
        return os.read(file, 4096).decode("utf-8", "surrogateescape")
    finally:
        os.close(file)


def _ask_folder(address: str, limit_s: float) -> str:
    """Ask a daemon of this user for its data folder; raise OSError, `MemorydError` or ValueError on failure."""
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

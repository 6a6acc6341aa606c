"""The command `serve-stdio`, which another machine's daemon runs over ssh.

It passes the frames of the socket on over standard input and output. The daemon here binds the connection to a token
(`confine`) before it receives anything of the other machine, so this command needs no checks. Without a token the
connection is the owner's, for somebody who logs in here as the user and could run any command anyway. The first frame
on standard output, with the id 0, says whom the connection speaks for or why it is refused.
"""

import os
import socket
import sys
import threading
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from typing import Any

import msgspec

from memoryd.client.errors import MemorydError
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.link import client_for
from memoryd.client.projects.roots import read_roots
from memoryd.client.protocol import ERROR, PROTOCOL_VERSION, RESULT, Confine, Identity, ListTokens
from memoryd.client.protocol.shared import Greeting
from memoryd.client.transport.frames import frame
from memoryd.client.transport.sync import Client, detach

_BLOCK_BYTES = 256 * 1024


def _declare(parser: ArgumentParser) -> None:
    about = "name of the token to bind to; its secret is not needed; left out: the owner's access, for `memctl sync`"
    parser.add_argument("name", metavar="TOKEN", nargs="?", help=about)


def _serve(args: Namespace) -> None:
    try:
        with client_for(args) as client:
            identity = _identify(client, args.name)
            connection = detach(client)
    except MemorydError as error:
        _write(_encode(ERROR, error.code, error.message))
        raise
    repositories = list(read_roots().get(identity.namespace, ()))
    greeting = Greeting(
        name=identity.name,
        namespace=identity.namespace,
        role=identity.role,
        protocol=PROTOCOL_VERSION,
        repositories=repositories,
    )
    _write(_encode(RESULT, greeting))
    threading.Thread(target=_pass_on, args=(connection,), daemon=True).start()
    with connection, suppress(ConnectionResetError):
        while received := connection.recv(_BLOCK_BYTES):
            _write(received)


def _identify(client: Client, token: str | None) -> Identity:
    """Return whom the client's connection speaks for; without a token raise unless that is the owner."""
    if token is not None:
        return client.call(Confine(name=token))
    client.call(ListTokens())  # only the owner may call this
    return Identity(name="", namespace="", role="owner")


def _encode(kind: int, *body: Any) -> bytes:
    return frame(msgspec.msgpack.encode((kind, 0, *body)))


def _pass_on(connection: socket.socket) -> None:
    """Pass standard input on to the daemon until the other machine ends it."""
    with suppress(OSError):
        while received := os.read(sys.stdin.fileno(), _BLOCK_BYTES):
            connection.sendall(received)
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


COMMANDS = {
    "serve-stdio": Command(
        _declare,
        _serve,
        "  memctl serve-stdio anna    # run over ssh, by the daemon of another machine\n"
        "  memctl serve-stdio         # the same, by `memctl sync` there\n"
        '  # authorized_keys: restrict,command="memctl serve-stdio anna" ssh-ed25519 …',
    ),
}

"""A relay on loopback in front of a server, which can end a connection at any message."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from math import inf


class Relay:
    """Passes on what comes, after `left` blocks of either way nothing more; `meet` is what a client meets first."""

    def __init__(self, port: int, meet: Callable[[socket.socket], socket.socket] = lambda client: client) -> None:
        self._port, self._meet = port, meet
        self._passed, self._most = 0, inf  # threads write the one, tests the other: neither loses what the other says
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def left(self) -> float:
        return self._most - self._passed

    @left.setter
    def left(self, blocks: float) -> None:
        self._most = self._passed + blocks

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        address = "127.0.0.1", self._port
        with suppress(OSError), client, socket.create_connection(address) as server, self._meet(client) as met:
            back = threading.Thread(target=self._pass_on, args=(server, met), daemon=True)
            back.start()
            self._pass_on(met, server)
            back.join(10)

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self._passed += 1
                if self.left < 0:
                    break
                target.sendall(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

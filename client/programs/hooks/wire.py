"""A minimal client for hooks: calls are plain maps, since defining the protocol's classes takes longer than a call.

A test decodes every call of the hooks like the daemon does. All calls on a link share one deadline.
"""

import socket
import struct
import time
from typing import Any

import msgspec

from memoryd.client.errors import Invalid, Untrusted
from memoryd.client.transport import paths, trust

VERSION = 1
_LENGTH = struct.Struct(">I")
_RESULT, _ERROR = 0, 1


class Silent(Exception):
    """There is no daemon, or it did not answer in time."""


class CallRefused(Exception):
    """The daemon refused a call; the text is the error's code."""


class DaemonLink:
    """A connection for consecutive calls, until a time of the monotonic clock."""

    def __init__(self, give_up_at: float) -> None:
        self._give_up_at = give_up_at
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._number = 0
        try:
            self._set_timeout()
            token = paths.environment_token() or paths.owner_token()
            self._connect(paths.socket_address())
        except (OSError, Invalid, Untrusted) as error:
            self.close()
            raise Silent(str(error)) from None
        if token:
            try:
                self.call("authenticate", token=token)
            except (Silent, CallRefused) as error:  # also for a refused token, so that calls are spooled, not lost
                self.close()
                raise Silent(str(error)) from None

    def _connect(self, address: str) -> None:
        try:
            self._socket.connect(address)
        except OSError:
            from memoryd.client.transport import other_socket

            address = other_socket.find(address, self._give_up_at - time.monotonic())
            if not address:
                raise
            self._socket.connect(address)
        trust.check_connection(self._socket, address)

    def call(self, method: str, **fields: Any) -> dict[str, Any]:
        """Send a call and return its result; raise `Silent` or `CallRefused`."""
        self._number += 1
        data = msgspec.msgpack.encode([VERSION, self._number, {"method": method, **fields}])
        try:
            self._set_timeout()
            self._socket.sendall(_LENGTH.pack(len(data)) + data)
            while True:
                reply = msgspec.msgpack.decode(self._receive(_LENGTH.unpack(self._receive(_LENGTH.size))[0]))
                if (
                    reply[1] != self._number
                ):  # the reply to a call that has timed out, or 0 if the daemon announces its end
                    continue
                if reply[0] == _ERROR:
                    raise CallRefused(str(reply[2]))
                if reply[0] == _RESULT:
                    result: dict[str, Any] = reply[2]
                    return result
        except OSError as error:
            raise Silent(str(error)) from None

    def _receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            self._set_timeout()
            part = self._socket.recv(size - len(data))
            if not part:
                raise ConnectionError("the daemon closed the connection")
            data += part
        return data

    def _set_timeout(self) -> None:
        left_s = self._give_up_at - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("the time of the hook is over")
        self._socket.settimeout(left_s)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

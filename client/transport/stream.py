"""The blocking client's stream to the daemon, with one call under way at a time."""

import socket
import time
from contextlib import suppress

from memoryd.client.errors import TimedOut
from memoryd.client.protocol import Reply
from memoryd.client.transport import trust
from memoryd.client.transport.exchange import (
    CONNECT_PAUSE_S,
    SILENT,
    BrokenStream,
    OnProgress,
    decode_reply,
    is_greeting,
    progress_of,
)
from memoryd.client.transport.frames import FrameReader


def connect(address: str, timeout_s: float) -> socket.socket:
    """Return a socket that is connected to a daemon of this machine; raise `OSError`, `TimedOut` or `Untrusted`."""
    connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connected.settimeout(timeout_s)
    give_up_at = time.monotonic() + timeout_s
    try:
        while True:
            try:
                connected.connect(address)
                trust.check_connection(connected, address)
                return connected
            except BlockingIOError:  # a daemon listens, but its queue of connections is full
                if time.monotonic() > give_up_at:
                    raise TimedOut(f"The daemon took no connection within {timeout_s:g} s.") from None
                time.sleep(CONNECT_PAUSE_S)
    except BaseException:
        connected.close()
        raise


class Stream:
    """One stream to the daemon with one call under way at a time."""

    def __init__(self, connected: socket.socket, greeting: bytes) -> None:
        self._greeting = greeting  # sent with the first call
        self._reads = True  # whether the pending call only reads
        self._heard = False  # whether the daemon ever sent anything
        self._socket = connected
        self._reader = FrameReader()

    def exchange(self, data: bytes, timeout_s: float, on_progress: OnProgress | None, reads: bool) -> Reply:
        """Send a request and return its final reply; raise `BrokenStream` or `TimedOut`."""
        self._reads = reads
        self.send(data, timeout_s)
        while True:
            reply = self.read_reply()
            if (event := progress_of(reply)) is None:
                return reply
            if on_progress:
                on_progress(event)

    def read_reply(self) -> Reply:
        """Return the next reply; raise `BrokenStream` or `TimedOut`."""
        while True:
            for payload in self._reader.feed():
                reply = decode_reply(payload)
                if not is_greeting(reply):
                    return reply
            self._reader.feed(self._receive())

    def wait_at_most(self, seconds: float | None) -> None:
        """Set the time limit for each further reply; None for no limit."""
        self._socket.settimeout(seconds)

    def send(self, data: bytes, timeout_s: float) -> None:
        """Send a request; raise `BrokenStream` or `TimedOut`."""
        data, self._greeting = self._greeting + data, b""
        self._socket.settimeout(timeout_s)
        try:
            self._socket.sendall(data)
        except TimeoutError:
            raise TimedOut(f"The daemon did not take the call within {timeout_s:g} s; nothing was changed.") from None
        except (BrokenPipeError, ConnectionResetError):
            pass  # the daemon may have sent the reason before it closed the stream: read it
        except OSError as error:
            raise BrokenStream(str(error), self._heard) from None

    def _receive(self) -> bytes:
        try:
            received = self._socket.recv(262144)
        except TimeoutError:
            raise TimedOut(SILENT[self._reads].format(self._socket.gettimeout())) from None
        except OSError as error:
            raise BrokenStream(str(error), self._heard) from None
        if not received:
            raise BrokenStream("the daemon closed the connection", self._heard)
        self._heard = True
        return received

    def is_open(self) -> bool:
        """Return whether an idle stream is still open, so that no call fails because the daemon was restarted."""
        self._socket.setblocking(False)
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False  # end of the stream, or a reply that no call waits for

    def detach(self) -> socket.socket:
        """Return the socket, which the caller owns from now on; only between two calls."""
        self._socket.settimeout(None)
        return self._socket

    def interrupt(self) -> None:
        """Close the stream; calls that wait for a reply fail."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.close()

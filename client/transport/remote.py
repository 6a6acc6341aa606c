"""The blocking client of the daemon on another machine: ssh runs `memctl serve-stdio` there, as its owner."""

import socket
import subprocess
import tempfile
from contextlib import suppress

from memoryd.client.errors import BadFrame, Forbidden, TimedOut, Unavailable
from memoryd.client.transport import ssh
from memoryd.client.transport.exchange import BrokenStream
from memoryd.client.transport.stream import Stream
from memoryd.client.transport.sync import Client

_END_S = 5.0  # how long ssh may take to end


class RemoteClient(Client):
    """A client of the daemon on another host, which ssh knows by the name `host`.

    The connection is opened by the first call, or by `open`. `memctl` is the command that runs memctl on the host.
    Error messages name `command`, whose option `--memctl` sets it.
    """

    def __init__(self, host: str, memctl: str, command: str, namespace: str, timeout_s: float) -> None:
        super().__init__(namespace, token="", timeout_s=timeout_s, autostart=False)
        self._host, self._command = host, command
        self._line = ssh.build_owner_command(host, memctl)
        self._child: subprocess.Popen[bytes] | None = None

    def open(self) -> None:
        """Open the connection before the first call."""
        self._idle.append(self._connect())

    def close(self) -> None:
        """Close the connection."""
        super().close()
        self._end_child()

    def _end_child(self) -> None:
        if self._child:
            self._child.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(_END_S)

    def _connect(self) -> Stream:
        self._end_child()
        ours, theirs = socket.socketpair()
        ours.settimeout(self.timeout_s)
        stream = Stream(ours, b"")
        try:
            with theirs, tempfile.TemporaryFile() as said:
                way = theirs.fileno()
                self._child = subprocess.Popen(self._line, stdin=way, stdout=way, stderr=said, start_new_session=True)
                theirs.close()  # so that the stream ends when ssh ends
                try:
                    self._greet(stream)
                except BrokenStream:
                    with suppress(subprocess.TimeoutExpired):
                        self._child.wait(_END_S)
                    said.seek(0)
                    raise Unavailable(ssh.explain(self._host, said.read(), "", self._command)) from None
        except OSError as error:
            stream.close()
            raise Unavailable(f"{self._line[0]} cannot be started: {error.strerror}.") from None
        except BaseException:
            stream.close()
            raise
        return stream

    def _greet(self, stream: Stream) -> None:
        """Read the first frame; raise an error unless the connection has the rights of the other machine's owner."""
        try:
            greeting = ssh.read_greeting(self._host, stream.read_reply())
        except BadFrame:
            raise Unavailable(ssh.say_no_memoryd(self._host)) from None
        except TimedOut:
            raise TimedOut(f"{self._host} says nothing for {self.timeout_s:g} s.") from None
        if greeting.role != "owner":
            raise Forbidden(
                f"{self._host} lets this key in for its token {greeting.name} ({greeting.role} of {greeting.namespace})"
                " alone; use a key whose line in authorized_keys there has no command=."
            )

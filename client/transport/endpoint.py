"""Base of both clients: namespace, token, socket and timeout, and the search for the daemon."""

import itertools
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memoryd.client.calls import Methods
from memoryd.client.errors import Invalid, Unavailable
from memoryd.client.fields import namespace_text
from memoryd.client.projects.project import current_namespace, namespace_of_environment
from memoryd.client.transport import paths, trust
from memoryd.client.transport.exchange import greeting

if TYPE_CHECKING:
    from pathlib import Path

_LONGEST_S = 1_000_000_000  # some thirty years; sockets do not support much longer timeouts


class Endpoint(Methods, ABC):
    """A client without its streams; `Client` documents the arguments."""

    def __init__(
        self,
        namespace: str | Sequence[str] | None = None,
        *,
        socket: str | os.PathLike[str] | None = None,
        token: str | None = None,
        timeout_s: float = 30.0,
        autostart: bool = True,
    ) -> None:
        self.namespace = _choose_namespace(token) if namespace is None else namespace_text(namespace)
        self._address = paths.socket_address(socket)
        self.timeout_s = _check_timeout(timeout_s)
        self.autostart = autostart
        self._greeting = greeting(paths.environment_token() if token is None else token)
        self._ids = itertools.count(1)
        self._prepare_streams()

    @abstractmethod
    def _prepare_streams(self) -> None:
        """Create the client's empty container of streams."""

    @property
    def socket_path(self) -> "Path":
        """Path of the usual socket; if no daemon listens there, the lock of the data folder may name another socket."""
        return paths.socket_path(self._address)

    def _find_or_start(self, error: OSError) -> str:
        """Find a daemon that listens at another socket, or start one; return its socket.

        Raise `Unavailable` if there is none and autostart is off.
        """
        from memoryd.client.transport import other_socket, spawn

        if found := other_socket.find(self._address, self.timeout_s):
            return found
        if not self.autostart:
            trust.check_denied(error, self._address)
            absent = isinstance(error, FileNotFoundError | ConnectionRefusedError)
            reason = "; start one with `memctl up`" if absent else f": {error.strerror or error}"
            raise Unavailable(f"No daemon answers at {self._address}{reason}.") from None
        return spawn.start(self.socket_path)


def describe_silent(address: str, error: OSError) -> Unavailable:
    """Return the error for a daemon that was found or started but does not accept a connection."""
    return Unavailable(f"The daemon does not answer at {address}: {error}.")


def _check_timeout(timeout_s: float) -> float:
    """Return the time limit of a call; raise `Invalid` unless it is a positive number that sockets support."""
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float) or not 0 < timeout_s <= _LONGEST_S:
        raise Invalid(f"`timeout_s` must be a number of seconds above 0 and at most {_LONGEST_S:,}, not {timeout_s!r}.")
    return timeout_s


def _choose_namespace(token: str | None) -> str:
    """Return the default namespace of a client: the environment's, the token's (empty), else the project's."""
    named = namespace_of_environment()
    if named is None:
        named = "" if token else current_namespace()
    return named

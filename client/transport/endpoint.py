"""What both clients are before they connect: whom they speak for, where the daemon listens, how long they wait."""

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

_LONGEST_S = 1_000_000_000  # some thirty years; a socket cannot wait for much longer


class Endpoint(Methods, ABC):
    """A client without its streams; `Client` says what the arguments mean."""

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
        """Make what holds the streams of a kind of client, without any in it."""

    @property
    def socket_path(self) -> "Path":
        """Where the daemon listens; where none does, the lock of the data folder may name another place."""
        return paths.socket_path(self._address)

    def _find_or_start(self, error: OSError) -> str:
        """Return where the daemon listens when it does not do so at the usual socket; start one where none does.

        Raise `Unavailable` where this client is not to start one.
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
    """Return the error for a daemon that was found or started and still takes no connection."""
    return Unavailable(f"The daemon does not answer at {address}: {error}.")


def _check_timeout(timeout_s: float) -> float:
    """Return the limit of one call; raise `Invalid` for what is no length of time that can be waited for."""
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float) or not 0 < timeout_s <= _LONGEST_S:
        raise Invalid(f"`timeout_s` must be a number of seconds above 0 and at most {_LONGEST_S:,}, not {timeout_s!r}.")
    return timeout_s


def _choose_namespace(token: str | None) -> str:
    """Return the namespace of a client that names none: the environment's, a token's own, else the project's."""
    named = namespace_of_environment()
    if named is None:
        named = "" if token else current_namespace()
    return named

"""The way to the daemon: a client as the options say, and calls placed at the namespace and reach they name."""

import argparse
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from memoryd.client.errors import Unauthenticated, Unavailable
from memoryd.client.memctl.output import print_note, show
from memoryd.client.protocol import Call, Reach, Redacted, Scoped
from memoryd.client.transport import paths
from memoryd.client.transport.exchange import OnProgress, greeting
from memoryd.client.transport.sync import Client

if TYPE_CHECKING:
    from memoryd.client.transport.subscription import Subscription

R = TypeVar("R")
C = TypeVar("C", bound=Call[Any])


class OwnersClient(Client):
    """A client that presents the owner's token to a daemon that wants one, unless `MEMORYD_TOKEN` says who it is."""

    def call(self, call: Call[R], on_progress: OnProgress | None = None) -> R:
        """Send one call; if the token at hand is not the daemon's, try the one that the daemon names, or none."""
        try:
            return super().call(call, on_progress)
        except Unauthenticated as error:
            self._become_owner(error)
            return super().call(call, on_progress)

    def subscribe(self, *args: Any, **options: Any) -> "Subscription":
        """Follow events; as `call`, try the owner's token when none or another is refused."""
        try:
            return super().subscribe(*args, **options)
        except Unauthenticated as error:
            self._become_owner(error)
            return super().subscribe(*args, **options)

    def _become_owner(self, error: Unauthenticated) -> None:
        if os.environ.get("MEMORYD_TOKEN"):
            raise error
        self._greeting = greeting(paths.read_token(str(error.data.get("owner_token", ""))))
        self.close()


def client_for(args: argparse.Namespace, *, autostart: bool = True) -> Client:
    """Return a client; `autostart` false is for commands that make no sense with a daemon started for them."""
    autostart = autostart and not args.no_autostart
    return OwnersClient(
        namespace_of(args), socket=args.socket, token=own_token(), timeout_s=args.timeout, autostart=autostart
    )


def own_token() -> str:
    """Return the token that memctl presents: of the environment, else the owner's, empty where there is none."""
    return os.environ.get("MEMORYD_TOKEN") or paths.owner_token()


def send(args: argparse.Namespace, call: Call[R]) -> R:
    """Send one call and return its result."""
    with client_for(args) as client:
        result = client.call(apply_options(args, call))
    say_redacted(getattr(result, "redacted", {}))
    return result


def show_result(
    args: argparse.Namespace, call: Call[R], text: Callable[[R], str], shown: Callable[[R], Any] | None = None
) -> R:
    """Send one call and return its result; print it as text, or with --json as it is or what `shown` takes of it."""
    result = send(args, call)
    show(args, shown(result) if shown else result, lambda: text(result))
    return result


def ask_running(args: argparse.Namespace, call: Call[R]) -> R:
    """Send one call to a daemon that runs already; raise `Unavailable` where none does."""
    with client_for(args, autostart=False) as client:
        try:
            return client.call(call)
        except Unavailable:
            raise Unavailable(f"No daemon runs at {client.socket_path}; start one with `memctl up`.") from None


def say_redacted(kinds: Redacted) -> None:
    """Say on stderr what was removed before it was stored."""
    if kinds:
        removed = describe_credentials(kinds)
        print_note(f"memctl: removed before storing: {removed}. --allow-secrets stores texts as they are.")


def describe_credentials(kinds: Redacted) -> str:
    """Return kinds of credentials in a few words."""
    from memoryd.client.credentials import describe_kinds  # needed seldom

    return describe_kinds(kinds)


def apply_options(args: argparse.Namespace, call: C) -> C:
    """Return the call at the namespace and with the reach of the options, and with credentials where these are asked
    for."""
    if getattr(args, "allow_secrets", False):
        call = msgspec.structs.replace(call, allow_secrets=True)
    if isinstance(call, Scoped):
        return msgspec.structs.replace(call, namespace=namespace_of(args), reach=reach_of(args))
    return call


def namespace_of(args: argparse.Namespace) -> str:
    """Return the caller's namespace: the option, else the environment, else the root."""
    given = args.namespace if args.namespace is not None else os.environ.get("MEMORYD_NAMESPACE", "")
    return str(given).strip("/")


def reach_of(args: argparse.Namespace) -> Reach | None:
    """Return what the command sees: all of it, with a namespace what is visible from there, with a token its bounds."""
    given: Reach | None = getattr(args, "reach", None)
    if os.environ.get("MEMORYD_TOKEN"):
        return given
    return given or ("visible" if namespace_of(args) else "all")

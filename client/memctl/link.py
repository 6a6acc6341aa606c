"""The way to the daemon: a client as the options say, and calls placed at the namespace and reach they name."""

import argparse
import os
from typing import Any, TypeVar

import msgspec

from memoryd.client.protocol import Call, Reach, Scoped
from memoryd.client.sync import Client, OnProgress

R = TypeVar("R")
C = TypeVar("C", bound=Call[Any])


def client_for(args: argparse.Namespace, *, autostart: bool = True) -> Client:
    """Return a client; `autostart` false is for commands that make no sense with a daemon started for them."""
    return Client(
        namespace_of(args),
        socket=args.socket,
        timeout_s=args.timeout,
        autostart=autostart and not args.no_autostart,
    )


def send(args: argparse.Namespace, call: Call[R], on_progress: OnProgress | None = None) -> R:
    """Send one call and return its result."""
    with client_for(args) as client:
        return client.call(placed(args, call), on_progress)


def placed(args: argparse.Namespace, call: C) -> C:
    """Return the call at the namespace and with the reach of the options."""
    if isinstance(call, Scoped):
        return msgspec.structs.replace(call, namespace=namespace_of(args), reach=reach_of(args))
    return call


def namespace_of(args: argparse.Namespace) -> str:
    """Return the caller's namespace: the option, else the environment, else the root."""
    given = args.namespace if args.namespace is not None else os.environ.get("MEMORYD_NAMESPACE", "")
    return str(given).strip("/")


def reach_of(args: argparse.Namespace) -> Reach:
    """Return what the command sees: all of it, and with a namespace what is visible from there."""
    given: Reach | None = getattr(args, "reach", None)
    return given or ("visible" if namespace_of(args) else "all")

"""Shared roots in PostgreSQL: memctl connects to the server itself, without the daemon."""

from argparse import Namespace
from collections.abc import Callable
from typing import Any, TypeVar

from memoryd.client.errors import MemorydError, ModelUnavailable
from memoryd.client.programs.memctl.link import client_for
from memoryd.client.programs.memctl.output import show
from memoryd.client.protocol.shared import Greeting
from memoryd.client.transport.postgres import schema
from memoryd.client.transport.postgres.connection import explain, open_connection, transact

R = TypeVar("R")


def run_there(name: str, server: str, work: Callable[[Any], R]) -> R:
    """Run `work` in one transaction on a server; raise the server's errors as our own."""
    try:
        with open_connection(server) as connection:
            return transact(connection, work)
    except MemorydError:
        raise
    except Exception as error:
        explained = explain(name, error)
        if explained is None:
            raise
        raise explained from None


def create_root(args: Namespace, name: str, patterns: list[str], server: str) -> None:
    """Create the schema of a root; its vectors are those of the model in use here."""
    with client_for(args) as client:
        model = client.status().model
    size = model.dimensions
    if size is None:
        raise ModelUnavailable(f"The root's vectors are those of the model in use here, and {model.name} is not ready.")
    run_there(name, server, lambda connection: schema.create(connection, name, model.name, size, patterns))
    report = {"name": name, "repositories": patterns, "server": server, "model": model.name}
    text = (
        f"{name} is created there, for {', '.join(patterns)}, with vectors of {model.name}."
        f" `memctl shared grant {name} ROLE --server {server}` lets a role use it, and"
        f" `memctl shared join {name} --server URL` a machine of that role."
    )
    show(args, report, lambda: text)


def ask_greeting(name: str, server: str) -> Greeting:
    """Return the greeting of a root in a database: its facts, and the rights of the address's role."""
    return run_there(name, server, lambda connection: schema.check(connection, name).greet(name))

"""A root in a PostgreSQL database, as memctl meets it: it speaks to the server itself."""

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
    """Do something in one transaction on a server; raise the server's refusal as one of our errors."""
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
    """Make the schema of a root; its vectors are those of the model in use here."""
    with client_for(args) as client:
        model = client.status().model
    size = model.dimensions
    if size is None:
        raise ModelUnavailable(f"The root's vectors are those of the model in use here, and {model.name} is not ready.")
    run_there(name, server, lambda connection: schema.create(connection, name, model.name, size, patterns))
    said = {"name": name, "repositories": patterns, "server": server, "model": model.name}
    text = (
        f"{name} lies there, for {', '.join(patterns)}, with vectors of {model.name}. `memctl shared grant {name} ROLE"
        f" --server {server}` lets a role use it, and `memctl shared join {name} --server URL` a machine of that role."
    )
    show(args, said, lambda: text)


def ask_greeting(name: str, server: str) -> Greeting:
    """Return what the place of a root says of it and of the role of an address."""
    return run_there(name, server, lambda connection: schema.check(connection, name).greet(name))

"""Shared roots in PostgreSQL: memctl connects to the server itself, without the daemon.

It creates a root there, changes the rights in it (`shared grant`, `shared grants`), and computes its vectors again by
another model installed here (`shared migrate`).
"""

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import msgspec

from memoryd.client.errors import Invalid, MemorydError, ModelUnavailable, NotFound, TimedOut
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.link import client_for
from memoryd.client.programs.memctl.model import folder_options, run_models
from memoryd.client.programs.memctl.output import make_printable, show
from memoryd.client.programs.memctl.progress import ProgressBar
from memoryd.client.programs.memctl.text_table import count_text, format_table
from memoryd.client.protocol import GetShared
from memoryd.client.protocol.shared import Greeting
from memoryd.client.transport.postgres import migrating, rights, schema
from memoryd.client.transport.postgres.connection import SCHEME, explain, open_connection, transact
from memoryd.client.transport.postgres.migrating import PendingMemory
from memoryd.client.transport.postgres.rights import Right

R = TypeVar("R")

_TRIES, _PAUSE_S = 60, 1.0  # while other connections hold a lock


def _run_there(name: str, server: str, work: Callable[[Any], R]) -> R:
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
    _run_there(name, server, lambda connection: schema.create(connection, name, model.name, size, patterns))
    report = {"name": name, "repositories": patterns, "server": server, "model": model.name}
    text = (
        f"{name} is created there, for {', '.join(patterns)}, with vectors of {model.name}."
        f" `memctl shared grant {name} ROLE --server {server}` lets a role use it, and"
        f" `memctl shared join {name} --server URL` a machine of that role."
    )
    show(args, report, lambda: text)


def ask_greeting(name: str, server: str) -> Greeting:
    """Return the greeting of a root in a database: its facts, and the rights of the address's role."""
    return _run_there(name, server, lambda connection: schema.check(connection, name).greet(name))


# rights ---------------------------------------------------------------------------------------------------------------


def _declare_root(parser: ArgumentParser) -> None:
    """Declare the arguments for a root in PostgreSQL: its name and its server."""
    parser.add_argument("name", metavar="NAME", help="name of the root")
    about = "speak to the server as its owner, such as postgresql://owner@db/team (default: as the daemon does)"
    parser.add_argument("--server", metavar="URL", help=about)


def _declare_grant(parser: ArgumentParser) -> None:
    _declare_root(parser)
    parser.add_argument("role", metavar="ROLE", help="login role of the server")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--read", action="store_true", help="it may read, and write nothing")
    which.add_argument("--revoke", action="store_true", help="it may do nothing there any more, from its next call on")


def _grant(args: Namespace) -> None:
    if args.revoke:
        _change(args, partial(rights.revoke, root=args.name, role=args.role))
    else:
        _change(args, partial(rights.grant, root=args.name, role=args.role, writes=not args.read))


def _change(args: Namespace, change: Callable[[Any], None]) -> None:
    """Change rights in a root, then show all rights in it."""

    def work(connection: Any) -> list[Right]:
        schema.check(connection, args.name)
        change(connection)
        return rights.list_rights(connection, args.name)

    granted = _run_there(args.name, _find_server(args), work)
    rows = [[make_printable(one.role), _name_right(one)] for one in granted]
    show(args, [one._asdict() for one in granted], lambda: format_table(["ROLE", "MAY"], rows, "Nobody."))


def _find_server(args: Namespace) -> str:
    """Return the address in `--server`, else the one in the configuration."""
    server: str = args.server or ""
    if not server:
        with client_for(args) as client:
            roots = {root.name: root.server for root in client.call(GetShared()).roots}
        if args.name not in roots:
            raise NotFound(f"No root {args.name} is joined here; name its place with --server.")
        server = roots[args.name]
    if not server.startswith(SCHEME):
        raise Invalid(f"{args.name} lies on {server}, where tokens say who may use it: memctl token add, there.")
    return server


def _name_right(right: Right) -> str:
    return "everything: it is the owner" if right.is_owner else "read and write" if right.may_write else "read"


# migrate --------------------------------------------------------------------------------------------------------------


def _declare_migrate(parser: ArgumentParser) -> None:
    _declare_root(parser)
    parser.add_argument("--model", required=True, metavar="MODEL", help="a model that is installed here")


def _migrate(args: Namespace) -> None:
    name, model, server = args.name, args.model, _find_server(args)
    models = run_models("list", "--json", *folder_options())
    installed = {row["name"]: row["dimensions"] for row in models if row["installed"]}
    if model not in installed:
        raise ModelUnavailable(f"{model} is not installed here: memctl model pull {model}")
    size = installed[model]
    run = partial(_retry_while_locked, name, server)
    state = run(partial(migrating.prepare, root=name, model=model, dimensions=size))
    filled = 0
    if state is not None:
        left, total = state
        made: list[tuple[str, str, int]] = []
        with ProgressBar(f"vectors of {model}") as bar:
            while True:
                bar.update(total - max(0, left - filled), total)
                without = run(partial(migrating.fill, root=name, model=model, made=made))
                made = _embed(model, without)
                filled += len(made)
                if not without and run(partial(migrating.switch, root=name, model=model, dimensions=size)):
                    break
    said = {"name": name, "model": model, "dimensions": size, "filled": filled}
    show(args, said, lambda: _text(name, model, filled, state is None))


def _text(name: str, model: str, filled: int, had: bool) -> str:
    if had:
        return f"{name} has the vectors of {model}."
    return (
        f"{name} has the vectors of {model} now; this run made {count_text(filled, 'vector')}. Daemons with another"
        f" model find what is there by words alone, until `memctl model pull {model}` and `memctl model use {model}`."
    )


def _retry_while_locked(name: str, server: str, work: Callable[[Any], R]) -> R:
    """Run `work` in one transaction; try again while other connections hold a lock."""
    for _ in range(_TRIES):
        try:
            return _run_there(name, server, work)
        except TimedOut:
            time.sleep(_PAUSE_S)
    return _run_there(name, server, work)


def _embed(model: str, memories: list[PendingMemory]) -> list[tuple[str, str, int]]:
    """Return the vector of each memory, as text, with its id and version."""
    texts = msgspec.json.encode([one.content for one in memories])
    vectors = run_models("embed", model, *folder_options(), given=texts) if memories else []
    shown = [msgspec.json.encode(vector).decode() for vector in vectors]
    return [(vector, one.id, one.version) for vector, one in zip(shown, memories, strict=True)]


COMMANDS = {
    "shared grant": Command(
        _declare_grant,
        _grant,
        "  memctl shared grant acme ada\n"
        "  memctl shared grant acme bob --read\n"
        "  memctl shared grant acme eve --revoke --server postgresql://db.acme.dev/team",
    ),
    "shared grants": Command(
        _declare_root, partial(_change, change=lambda connection: None), "  memctl shared grants acme"
    ),
    "shared migrate": Command(
        _declare_migrate,
        _migrate,
        "  memctl shared migrate acme --model bge-small-en-v1.5 \\\n      --server postgresql://owner@db.acme.dev/team",
    ),
}

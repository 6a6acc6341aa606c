"""The commands `shared grant` and `shared grants`: rights in a root in PostgreSQL, without the daemon."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import partial
from typing import Any

from memoryd.client.errors import Invalid, NotFound
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.database import run_there
from memoryd.client.programs.memctl.link import client_for
from memoryd.client.programs.memctl.output import make_printable, show
from memoryd.client.programs.memctl.text_table import format_table
from memoryd.client.protocol import GetShared
from memoryd.client.transport.postgres import rights
from memoryd.client.transport.postgres.connection import SCHEME
from memoryd.client.transport.postgres.rights import Right
from memoryd.client.transport.postgres.schema import check


def declare_root(parser: ArgumentParser) -> None:
    """Declare the arguments for a root in PostgreSQL: its name and its server."""
    parser.add_argument("name", metavar="NAME", help="name of the root")
    about = "speak to the server as its owner, such as postgresql://owner@db/team (default: as the daemon does)"
    parser.add_argument("--server", metavar="URL", help=about)


def _declare_grant(parser: ArgumentParser) -> None:
    declare_root(parser)
    parser.add_argument("role", metavar="ROLE", help="login role of the server")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--read", action="store_true", help="it may read, and write nothing")
    which.add_argument("--revoke", action="store_true", help="it may do nothing there any more, from its next call on")


def _show_grants(args: Namespace) -> None:
    _change(args, lambda connection: None)


def _grant(args: Namespace) -> None:
    if args.revoke:
        _change(args, partial(rights.revoke, root=args.name, role=args.role))
    else:
        _change(args, partial(rights.grant, root=args.name, role=args.role, writes=not args.read))


def _change(args: Namespace, change: Callable[[Any], None]) -> None:
    """Change rights in a root, then show all rights in it."""

    def work(connection: Any) -> list[Right]:
        check(connection, args.name)
        change(connection)
        return rights.list_rights(connection, args.name)

    granted = run_there(args.name, find_server(args), work)
    rows = [[make_printable(one.role), _name_right(one)] for one in granted]
    show(args, [one._asdict() for one in granted], lambda: format_table(["ROLE", "MAY"], rows, "Nobody."))


def find_server(args: Namespace) -> str:
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


COMMANDS = {
    "shared grant": Command(
        _declare_grant,
        _grant,
        "  memctl shared grant acme ada\n"
        "  memctl shared grant acme bob --read\n"
        "  memctl shared grant acme eve --revoke --server postgresql://db.acme.dev/team",
    ),
    "shared grants": Command(declare_root, _show_grants, "  memctl shared grants acme"),
}

"""Handlers of the calls about shared roots. What asks a server runs on the bulk lane: it may wait for seconds."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

import msgspec

from memoryd.client import protocol
from memoryd.client.errors import Conflict, Invalid, NotFound
from memoryd.client.shared import calls
from memoryd.client.shared.calls import MigratedServer
from memoryd.client.transport.batches import split_evenly
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import removing
from memoryd.daemon.registry import handles
from memoryd.daemon.shared import sharing
from memoryd.daemon.shared.sharing import lines_of
from memoryd.daemon.shared.tables import shared
from memoryd.daemon.shared.tables.shared import Root
from memoryd.daemon.store import history, namespaces, rows
from memoryd.daemon.store.writer import Transaction

_DROPPED = 100  # memories of one transaction
_PASSING_S = 20.0  # for all that a call asks a server
_MIGRATION_S = 1800.0  # the index of a million vectors takes minutes

if TYPE_CHECKING:
    from memoryd.daemon.shared.server import ServerConnection

T = TypeVar("T")


@handles(calls.GetSharing)
def report(core: Core, call: calls.GetSharing) -> calls.Sharing:
    """Return how sharing is."""
    return lines_of(core).report()


@handles(calls.ShareRoot)
def share_root(core: Core, call: calls.ShareRoot) -> calls.RootPlan:
    """Share a root, or show what that would do."""
    sharing.check_installed()
    from memoryd.daemon.shared import exchange, schema

    _check_root(call.root)
    root = _place(core, call)

    def look(server: "ServerConnection") -> tuple[bool, int]:
        schema.check_version(server)
        exists = exchange.has_root(server, call.root)
        if not (exists or call.dry_run):
            schema.make_root(server, call.root)
        return exists, exchange.count_rows(server, call.root)

    exists, there = _ask(core, root, look)
    chosen = _choose_namespaces(core, call)
    if not call.dry_run:
        lines_of(core).open(sharing.add_root(core, root, [one.namespace for one in chosen]))
    return calls.RootPlan(
        root=call.root, server=root.server, namespaces=chosen, there=there, exists=exists, dry_run=call.dry_run
    )


def _check_root(name: str) -> None:
    namespaces.check(name)
    if not name or "/" in name:
        raise Invalid(f"{name or '/'!r} cannot be shared: what is shared is a first-level namespace, like acme.")


def _place(core: Core, call: calls.ShareRoot) -> Root:
    """Return the root as the call and the settings describe it."""
    given = sharing.settings_of(core, call.root)
    with core.store.reading() as connection:
        known = shared.find_root(connection, call.root)
    address = call.server or given.server or (known.server if known else "")
    passfile = call.passfile or given.passfile or (known.passfile if known else "")
    if not address:
        raise Invalid(f"Say which server: give its address, or set `server` in [shared.{call.root}].")
    if known and call.server and call.server != known.server:
        raise Conflict(f"{call.root} is shared through another server; `memctl shared remove {call.root}` first.")
    conversations = int(call.conversations)
    return Root(name=call.root, server=address, passfile=passfile, conversations=conversations, added_at=core.clock())


def _choose_namespaces(core: Core, call: calls.ShareRoot) -> list[calls.RootNamespace]:
    """Return the namespaces that are shared, with what is shared and what stays."""
    with core.store.reading() as connection:
        there = shared.count_leaving(connection, call.root, call.conversations)
    counts = {name: (going, staying) for name, going, staying in there if going or staying}
    found = call.namespaces if call.namespaces is not None else sorted({call.root, *counts})
    for name in found:
        namespaces.check(name)
        if call.root not in namespaces.list_enclosing(name):
            raise Invalid(f"{name} is not in {call.root}.")
    chosen = [(name, *counts.get(name, (0, 0))) for name in found]
    return [calls.RootNamespace(namespace=name, going=going, staying=staying) for name, going, staying in chosen]


@handles(calls.GrantRoot)
def grant(core: Core, call: calls.GrantRoot) -> protocol.Done:
    """Let a role into a root, or keep it out."""
    sharing.check_installed()
    from memoryd.daemon.shared import schema

    _check_root(call.root)
    root = _find_root(core, call.root, call.server, call.passfile)

    def change(server: "ServerConnection") -> bool:
        if call.access == "none":
            return schema.revoke(server, call.root, call.role)
        schema.grant(server, call.root, call.role, call.access == "write")
        return True

    ended = _ask(core, root, change)
    told = {"read": "reads", "write": "reads and writes", "none": "neither reads nor writes"}[call.access]
    more = "" if ended else " Its sessions go on until a superuser of the server ends them (pg_terminate_backend)."
    return protocol.Done(message=f"{call.role} {told} {call.root} from now on.{more}")


@handles(calls.MigrateServer)
def migrate(core: Core, call: calls.MigrateServer) -> MigratedServer:
    """Make the tables, or bring them to this version."""
    sharing.check_installed()
    from memoryd.daemon.shared import schema, vectors

    root = _find_root(core, call.root, call.server, call.passfile)

    def bring_up(server: "ServerConnection") -> MigratedServer:
        before, after = schema.migrate(server)
        kind, active = schema.read_kind(server), core.embedding.active
        models = {active.embedder.fingerprint: active.embedder.dimensions} if active else {}
        made = vectors.make(server, models)
        return MigratedServer(before=before, after=after, dialect=kind, tested=kind == "PostgreSQL", vectors=made)

    return _ask(core, root, bring_up, _MIGRATION_S)


def _find_root(core: Core, name: str, address: str, passfile: str) -> Root:
    """Return the server that a call means: the one that it names, else that of the shared root."""
    given = sharing.settings_of(core, name)
    if address or given.server:
        place = address or given.server, passfile or given.passfile
        return Root(name=name, server=place[0], passfile=place[1], conversations=0, added_at=0.0)
    with core.store.reading() as connection:
        found = shared.find_root(connection, name)
    if found is None:
        raise NotFound(f"{name or 'No root'} is not shared here; give the address of the server.")
    return msgspec.structs.replace(found, passfile=passfile or found.passfile)


def _ask(core: Core, root: Root, question: "Callable[[ServerConnection], T]", limit_s: float = _PASSING_S) -> T:
    """Ask a root's server something on a connection of its own, with a limit."""
    import psycopg

    from memoryd.daemon.shared import line, server

    opened = line.open_server(core, root.server, root.passfile)
    try:
        with opened.time_limit(limit_s):
            return question(opened)
    except psycopg.Error as error:
        raise server.failure(error) from None
    finally:
        opened.close()


@handles(calls.UnshareRoot)
def unshare(core: Core, call: calls.UnshareRoot) -> protocol.Done:
    """Stop sharing a root; keep or delete what is here of it."""
    with core.store.reading() as connection:
        root = shared.find_root(connection, call.root)
        if root is None:
            raise NotFound(f"{call.root} is not shared.")
        waiting, held = shared.count_waiting(connection, root.id), shared.list_memories(connection, root.id)
    if waiting and not call.force:
        raise Conflict(
            f"{waiting} changes of this machine are not pushed yet, so no other machine would get them; wait until"
            " `memctl shared status` shows none, or give --force.",
            {"waiting": waiting},
        )
    lines_of(core).shut(call.root)
    number = root.id
    core.store.write(lambda transaction: shared.remove_root(transaction.connection, number), over_limit=True).result()
    if not call.drop:
        return protocol.Done(message=f"{call.root} is not shared any more; {len(held)} memories stay here.")
    operation: str | None = None
    for part in split_evenly(held, _DROPPED):
        operation = _drop(core, part, call.root, operation).result()
    undo = f"; `memctl undo {operation[:8]}` brings them back" if operation else ""
    return protocol.Done(message=f"{call.root} is not shared any more; {len(held)} memories are deleted here{undo}.")


def _drop(core: Core, ids: list[str], root: str, operation: str | None) -> "Future[str]":
    """Delete memories here, within an operation."""

    def write(transaction: Transaction) -> str:
        connection = transaction.connection
        begun = operation or history.begin(connection, "unshare", root, core.clock())
        removing.remove(core, transaction, list(rows.read_ids(connection, ids).values()), begun)
        return begun

    return core.store.write(write, over_limit=True)

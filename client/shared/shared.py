"""shared: one memory for several machines, through a PostgreSQL server."""

import time
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from typing import Literal

from memoryd.client.memctl.arguments import declare_nothing, parse_limit
from memoryd.client.memctl.commands import Command
from memoryd.client.memctl.confirming import confirm
from memoryd.client.memctl.link import client_for, send, show_result
from memoryd.client.memctl.output import make_printable, paint, show, undo_text
from memoryd.client.memctl.progress import ProgressBar
from memoryd.client.memctl.table import count_text, format_table, to_one_line
from memoryd.client.protocol import SharedRoot
from memoryd.client.shared import calls
from memoryd.client.times import iso
from memoryd.client.transport.sync import Client

_LOOK_S = 0.2  # between two looks at the first exchange


def _declare_server(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--dsn", default="", metavar="ADDRESS", help="the server: 'host=db.example dbname=team user=ann', no password"
    )
    parser.add_argument("--passfile", default="", metavar="FILE", help="file with the password (default: ~/.pgpass)")


# add -----------------------------------------------------------------------------------------------------------------


def _declare_add(parser: ArgumentParser) -> None:
    parser.add_argument("root", metavar="ROOT", help="a first-level namespace, like acme")
    _declare_server(parser)
    parser.add_argument("--only", action="append", metavar="NS", help="share this namespace of it; repeat for more")
    parser.add_argument("--with-conversations", action="store_true", help="share turns, and what came of them, as well")
    parser.add_argument("--dry-run", action="store_true", help="show what would go and what would stay")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def _add(args: Namespace) -> None:
    call = calls.ShareRoot(
        root=args.root.strip("/"),
        server=args.dsn,
        passfile=args.passfile,
        namespaces=[name.strip("/") for name in args.only] if args.only else None,
        conversations=args.with_conversations,
        dry_run=True,
    )
    with client_for(args) as client:
        plan = client.call(call)
        if args.dry_run:
            return show(args, plan, lambda: _format_plan(plan))
        if not args.yes:
            asked = f"{_format_plan(plan)}\nWhoever may read {plan.root} there gets these."
            confirm(plan.root, "this sends memories to another machine.", asked, "Nothing is shared.")
        names = [one.namespace for one in plan.namespaces]
        fields = {name: getattr(call, name) for name in ("root", "server", "passfile", "conversations")}
        done = client.call(calls.ShareRoot(**fields, namespaces=names))
        if not args.json:
            _follow(client, done.root)
    begun = f"Sharing {paint(make_printable(done.root), 'cyan')}; other namespaces stay here."
    return show(args, done, lambda: f"{_format_plan(done)}\n{begun} See `memctl shared status`.")


def _follow(client: Client, root: str) -> None:
    """Show on a terminal how far the first exchange is; it continues whether anybody looks or not (Ctrl-C)."""
    total = 0
    with ProgressBar(f"exchanging {make_printable(root)}") as bar, suppress(KeyboardInterrupt):
        while bar.visible:
            found = next((one for one in client.call(calls.GetSharing()) if one.root == root), None)
            if found is None or found.state not in ("starting", "ready"):
                return
            to_do = found.unread + found.waiting
            total = max(total, to_do)
            bar.update(total - to_do, total)
            if found.state == "ready" and not to_do:
                return
            time.sleep(_LOOK_S)


def _format_plan(plan: calls.RootPlan) -> str:
    rows = [[make_printable(one.namespace), f"{one.going:,}", f"{one.staying:,}"] for one in plan.namespaces]
    table = format_table(["NAMESPACE", "SHARED", "STAYS HERE"], rows, flexible=1)
    there = f"it has {count_text(plan.there, 'memory')} of {plan.root}" if plan.exists else f"{plan.root} is new there"
    return f"{table}\nServer: {make_printable(plan.server)}; {there}."


# status --------------------------------------------------------------------------------------------------------------


def _show_status(args: Namespace) -> None:
    show_result(args, calls.GetSharing(), _format_sharing)


def _format_sharing(found: calls.Sharing) -> str:
    if not found.roots:
        return "Nothing is shared with other machines; `memctl shared add ROOT --dsn ADDRESS` begins it."
    parts = [_format_root(root) for root in found.roots]
    return "\n".join([f"This machine is {make_printable(found.machine)}.", *parts])


def _format_root(root: SharedRoot) -> str:
    colour = "green" if root.state == "ready" else "yellow"
    head = f"{paint(make_printable(root.root), 'cyan')}  {paint(root.state, colour)}  {make_printable(root.server)}"
    lines = [head, f"  {count_text(root.memories, 'memory')} shared, {count_text(root.waiting, 'change')} to be pushed"]
    lines += [f"  up to {count_text(root.unread, 'change')} of others still to be read"] if root.unread else []
    lines += ["  this machine may only read it"] if not root.writable else []
    lines += ["  more is on the server alone; searches with a deadline ask it"] if root.partial else []
    lines += [f"  {make_printable(root.error)}"] if root.error else []
    last = iso(root.ready_at) or "never"
    lines.append(f"  since the start: {root.pulled:,} pulled, {root.pushed:,} pushed; last {last}")
    lines.append(f"  namespaces: {', '.join(map(make_printable, root.namespaces))}")
    if root.machines:
        lines.append(f"  others: {', '.join(map(make_printable, root.machines))}")
    if root.conflicts:
        lines.append(f"  {count_text(root.conflicts, 'conflict')}: see `memctl shared conflicts`")
    lines += [f"  not exchanged: {one.id[:8]}  {to_one_line(one.reason)}" for one in root.refused]
    return "\n".join(lines)


# conflicts -----------------------------------------------------------------------------------------------------------


def _declare_conflicts(parser: ArgumentParser) -> None:
    parser.add_argument("--limit", type=parse_limit, default=20, metavar="N", help="conflicts shown (default: 20)")


def _show_conflicts(args: Namespace) -> None:
    show_result(args, calls.ListConflicts(limit=args.limit), _format_conflicts, lambda found: found.conflicts)


def _format_conflicts(found: calls.SharedConflicts) -> str:
    if not found.conflicts:
        return "No memory has two versions."
    lines = []
    for one in found:
        where = make_printable(f"{one.machine} ({one.author})" if one.machine else "this machine")
        lines.append(f"{paint(one.memory.id[:8], 'cyan')}  {to_one_line(one.memory.content)}")
        lines.append(f"{paint(one.other.id[:8], 'cyan')}  {to_one_line(one.other.content)}  ({where})\n")
    return "\n".join([*lines, "`memctl shared resolve ID` keeps the version of that id."])


def _declare_resolve(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="the version to keep: its id or the first digits")
    parser.add_argument("--merge", default="", metavar="TEXT", help="a new text in place of all versions")
    parser.add_argument("--both", action="store_true", help="keep all versions, as memories of their own")


def _resolve(args: Namespace) -> None:
    done = send(args, calls.ResolveConflict(id=args.id, content=args.merge, both=args.both))
    kept = f"{paint(done.memory.id[:8], 'cyan')}  {to_one_line(done.memory.content)}"
    show(args, done, lambda: f"{kept}\n{undo_text(done.operation)} takes it back.")


# purge ---------------------------------------------------------------------------------------------------------------


def _declare_purge(parser: ArgumentParser) -> None:
    parser.add_argument("ids", nargs="+", metavar="ID", help="ids or their first digits")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def _purge(args: Namespace) -> None:
    if not args.yes:
        warning = "This erases them on every machine, with their history, and cannot be undone."
        confirm("purge", warning, f"memctl: {warning}", "Nothing was erased.")
    done = send(args, calls.PurgeShared(ids=args.ids))
    later = " The server gets this once it answers." if done.waiting else ""
    held = "\n".join(f"  {make_printable(copy)}" for copy in done.copies)
    show(args, done, lambda: f"Erased {count_text(len(done.ids), 'memory')}.{later} The text may still be in:\n{held}")


# the server ----------------------------------------------------------------------------------------------------------


def _declare_grant(parser: ArgumentParser) -> None:
    parser.add_argument("root", metavar="ROOT", help="the root, made on the server if it is new")
    parser.add_argument("role", metavar="ROLE", help="a login role of the server")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--read", action="store_true", help="it may read alone")
    chosen.add_argument("--revoke", action="store_true", help="it may neither read nor write from now on")
    _declare_server(parser)


def _grant(args: Namespace) -> None:
    access: Literal["read", "write", "none"] = "none" if args.revoke else "read" if args.read else "write"
    call = calls.GrantRoot(
        root=args.root.strip("/"), role=args.role, access=access, server=args.dsn, passfile=args.passfile
    )
    show_result(args, call, lambda done: done.message)


def _declare_migrate(parser: ArgumentParser) -> None:
    parser.add_argument("root", nargs="?", default="", metavar="ROOT", help="the shared root whose server is meant")
    _declare_server(parser)


def _migrate(args: Namespace) -> None:
    done = send(args, calls.MigrateServer(root=args.root.strip("/"), server=args.dsn, passfile=args.passfile))
    kind = done.dialect if done.tested else f"{done.dialect}, on which memoryd is not tested"
    state = "are there already" if done.before == done.after else "are made"
    lack = "" if done.vectors else " Without pgvector there each machine searches what it holds alone."
    show(args, done, lambda: f"The tables of version {done.after} {state} ({kind}).{lack}")


def _declare_remove(parser: ArgumentParser) -> None:
    parser.add_argument("root", metavar="ROOT", help="the shared root")
    parser.add_argument("--drop", action="store_true", help="delete its shared memories on this machine")
    parser.add_argument("--force", action="store_true", help="also when changes are not pushed yet")


def _remove(args: Namespace) -> None:
    call = calls.UnshareRoot(root=args.root.strip("/"), drop=args.drop, force=args.force)
    show_result(args, call, lambda done: done.message)


COMMANDS = {
    "shared add": Command(
        _declare_add,
        _add,
        "  memctl shared add acme --dsn 'host=db.example dbname=team user=ann'\n"
        "  memctl shared add acme --only acme --only acme/api --yes",
    ),
    "shared status": Command(declare_nothing, _show_status, "  memctl shared status\n  memctl shared status --json"),
    "shared conflicts": Command(_declare_conflicts, _show_conflicts, "  memctl shared conflicts"),
    "shared resolve": Command(
        _declare_resolve,
        _resolve,
        "  memctl shared resolve 3f9a\n  memctl shared resolve 3f9a --merge 'The port is 8080'",
    ),
    "shared purge": Command(_declare_purge, _purge, "  memctl shared purge 3f9a --yes"),
    "shared grant": Command(
        _declare_grant,
        _grant,
        "  memctl shared grant acme ann --dsn 'host=db.example user=owner'\n"
        "  memctl shared grant acme guest --read\n  memctl shared grant acme guest --revoke",
    ),
    "shared migrate": Command(_declare_migrate, _migrate, "  memctl shared migrate --dsn 'host=db.example user=owner'"),
    "shared remove": Command(
        _declare_remove, _remove, "  memctl shared remove acme\n  memctl shared remove acme --drop"
    ),
}

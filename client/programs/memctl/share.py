"""The commands `share` (copy or move memories to an enclosing namespace) and `namespaces` (list namespaces)."""

from argparse import ArgumentParser, Namespace

from memoryd.client.calls import share as share_call
from memoryd.client.programs.memctl.arguments import add_reach, parse_limit
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.empty import count_turns
from memoryd.client.programs.memctl.link import send, show_result
from memoryd.client.programs.memctl.output import make_printable, say_degraded, show, undo_text
from memoryd.client.programs.memctl.text_table import count_text, format_table
from memoryd.client.protocol import Namespaces, Shared


def _declare_share(parser: ArgumentParser) -> None:
    parser.add_argument("ids", nargs="+", metavar="ID", help="ids or their first digits; all are shared or none")
    parser.add_argument(
        "--to",
        required=True,
        metavar="NS",
        help="the namespace to share to: any, but with --namespace or a token one around theirs",
    )
    parser.add_argument("--move", action="store_true", help="move them there instead of copying them")
    add_reach(parser)


def _share(args: Namespace) -> None:
    to = args.to.strip("/")
    show_result(args, share_call(*args.ids, to=to, move=args.move), lambda shared: _text(shared, to))


def _text(shared: Shared, to: str) -> str:
    where = make_printable(to) or "/"
    rows = [[one.origin[:8], one.outcome, one.id[:8]] for one in shared]
    if shared.shared:
        return f"{format_table(['ID', 'OUTCOME', 'THERE'], rows)}\n{_root_text(shared, where)}"
    sentence = f"Shared {count_text(len(rows), 'memory')} with {where}; {undo_text(shared.operation)} takes it back."
    return f"{format_table(['ID', 'OUTCOME', 'THERE'], rows)}\n{sentence}"


def _root_text(shared: Shared, where: str) -> str:
    root = make_printable(shared.shared)
    if shared.waiting:
        return f"In {where} they wait here until the machine of {root} answers; `memctl shared waiting` lists them."
    if where.partition("/")[0] != root:
        return f"They are in {where} on this machine now; in {root} they are deleted, and its history there has them."
    return (
        f"They are in {where} on the machine of {root} now: everybody there who may read {root} reads them. Here"
        " nothing is left of them but in backups made before."
    )


def _declare_namespaces(parser: ArgumentParser) -> None:
    parser.add_argument(
        "prefix", nargs="?", default="", metavar="PREFIX", help="only those that begin with these parts; * is any one"
    )
    parser.add_argument("--limit", type=parse_limit, default=100, metavar="N", help="how many (default: 100)")
    add_reach(parser)


def _list_namespaces(args: Namespace) -> None:
    page = send(args, Namespaces(prefix=args.prefix, limit=args.limit))
    rows = [[make_printable(one.name) or "/", f"{one.memories:,}"] for one in page.namespaces]
    show(args, page.namespaces, lambda: _namespaces_text(args, rows, page.total))
    say_degraded(page.degraded)


def _namespaces_text(args: Namespace, rows: list[list[str]], total: int) -> str:
    if not rows:
        which = f"that begins with {make_printable(args.prefix)} " if args.prefix else ""
        return f"No namespace {which}holds a memory."
    number = f"{len(rows)} of {count_text(total, 'namespace')}"
    table = format_table(["NAMESPACE", "MEMORIES"], rows, right=(1,))
    return "\n".join(filter(None, [table, number, count_turns(args)]))


COMMANDS = {
    "namespaces": Command(
        _declare_namespaces,
        _list_namespaces,
        "  memctl namespaces\n  memctl namespaces 'acme/*' --json",
    ),
    "share": Command(
        _declare_share,
        _share,
        "  memctl share 3f9a --to acme\n  memctl share 3f9a 77c0 --to acme/api --move --namespace acme/api/alpha",
    ),
}

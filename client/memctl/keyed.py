"""put: a memory under a key, in place of the one that has it."""

from argparse import ArgumentParser, Namespace

from memoryd.client.calls import put as put_call
from memoryd.client.memctl.arguments import add_kind, add_secrets, merge
from memoryd.client.memctl.commands import Command
from memoryd.client.memctl.link import show_result
from memoryd.client.memctl.memories import read_content
from memoryd.client.memctl.output import make_printable, paint


def _declare_put(parser: ArgumentParser) -> None:
    parser.add_argument("key", metavar="KEY", help="any text of at most 512 bytes, unique in its namespace")
    parser.add_argument("content", metavar="CONTENT", help="what to store; `-` reads standard input")
    add_kind(parser)
    parser.add_argument("--ttl", type=float, metavar="S", help="how many seconds it lives (for good)")
    parser.add_argument("--not-searchable", action="store_true", help="found by its key and in lists only")
    add_secrets(parser)


def _put(args: Namespace) -> None:
    call = put_call(
        args.key,
        read_content(args.content),
        type=args.type,
        metadata=merge(args.metadata),
        ttl_s=args.ttl,
        searchable=not args.not_searchable,
    )
    said = {"created": "Stored", "updated": "Replaced", "unchanged": "Unchanged"}
    show_result(args, call, lambda done: f"{said[done.outcome]}: {make_printable(args.key)} ({paint(done.id, 'cyan')})")


COMMANDS = {
    "put": Command(
        _declare_put,
        _put,
        '  memctl put cache "We cache in Valkey" --namespace acme/api\n'
        "  git show HEAD:README.md | memctl put readme - --metadata lang=en\n"
        "  memctl get --key cache --namespace acme/api",
    )
}

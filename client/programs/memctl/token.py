"""The `token` commands: list, make and revoke tokens."""

from argparse import ArgumentParser, Namespace
from typing import get_args

from memoryd.client.programs.memctl.arguments import Usage, declare_nothing
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.link import named_namespace, show_result
from memoryd.client.programs.memctl.output import make_printable, paint, print_note
from memoryd.client.programs.memctl.text_table import format_table
from memoryd.client.protocol import AddToken, ListTokens, RevokeToken, Role, TokenList
from memoryd.client.times import iso

_TO_THE_MINUTE = len("2026-03-31T14:30")  # the daemon records the last use to the minute


def _declare_add(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="its name, to list and revoke it")
    about = (
        "reader: changes nothing; agent (the default): changes memories in its namespace, whoever wrote them;"
        " lead: also those of enclosing namespaces, including the root"
    )
    parser.add_argument("--role", choices=get_args(Role), default="agent", help=about)


def _add(args: Namespace) -> None:
    namespace = named_namespace(args)
    if namespace == "":
        raise Usage("a token cannot be for the root; give it a namespace, such as --namespace acme.")
    if namespace is None:
        raise Usage("which namespace is the token for? give --namespace NS (see `memctl token add --help`).")
    added = show_result(args, AddToken(name=args.name, namespace=namespace, role=args.role), lambda added: added.token)
    if not args.json:
        name, place = make_printable(added.name), make_printable(added.namespace)
        around = make_printable(" and ".join([*list_around(added.namespace), "the root /"]))
        changes = " It may change and delete all of this, in the root too." if added.role == "lead" else ""
        print_note(
            f"{name} speaks for {place} as {added.role}. It sees {place} with everything inside it,"
            f" and {around}.{changes}"
            " The token is shown only now: give it to the agent as MEMORYD_TOKEN."
        )


def list_around(namespace: str) -> list[str]:
    """Return the namespaces that enclose this one, without the root."""
    parts = namespace.split("/")
    return ["/".join(parts[:length]) for length in range(len(parts) - 1, 0, -1)]


def _list(args: Namespace) -> None:
    show_result(args, ListTokens(), _list_text, lambda page: page.tokens)


def _list_text(tokens: TokenList) -> str:
    rows = []
    for t in tokens:
        names = map(make_printable, (t.name, t.namespace))
        used = f"{(iso(t.last_used_at) or '')[:_TO_THE_MINUTE]}Z" if t.last_used_at else "never"
        rows.append([*names, t.role, iso(t.created_at) or "", used])
    none = "No tokens; `memctl token add NAME --namespace NS` makes one."
    return format_table(["NAME", "NAMESPACE", "ROLE", "CREATED", "LAST USED"], rows, none, flexible=1)


def _declare_revoke(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the token's name")


def _revoke(args: Namespace) -> None:
    name = paint(make_printable(args.name), "cyan")
    call = RevokeToken(name=args.name)
    show_result(args, call, lambda _: f"Revoked {name}; its connections are refused from now on.")


COMMANDS = {
    "token add": Command(
        _declare_add,
        _add,
        "  memctl token add alpha --namespace acme/api/alpha\n"
        "  memctl token add lead --namespace acme/lead --role lead\n"
        "  memctl token add dashboard --namespace acme/dashboard --role reader",
    ),
    "token list": Command(declare_nothing, _list, "  memctl token list\n  memctl token list --json"),
    "token revoke": Command(_declare_revoke, _revoke, "  memctl token revoke alpha"),
}

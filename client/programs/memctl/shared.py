"""The commands `shared status` and `shared waiting`: shared roots, and the saves that wait to be sent to them."""

from argparse import ArgumentParser, Namespace

from memoryd.client.programs.memctl.arguments import declare_nothing
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.link import show_result
from memoryd.client.programs.memctl.output import make_printable, paint
from memoryd.client.programs.memctl.text_table import count_text, format_fields, format_table
from memoryd.client.protocol import GetShared
from memoryd.client.protocol.shared import RootStatus, SharedStatus
from memoryd.client.times import iso

_COLOURS = {"ready": "green", "away": "red"}
_NONE = "No root is shared; `memctl shared join NAME --server ssh://HOST` joins one (docs/sharing.md)."


def _show_status(args: Namespace) -> None:
    show_result(args, GetShared(), lambda status: "\n\n".join(map(_root_text, status.roots)) or _NONE)


def _root_text(root: RootStatus) -> str:
    fields = {
        "server": make_printable(root.server) or "this machine",
        "repositories": make_printable(", ".join(root.repositories)),
        "line": "" if root.state == "here" else paint(root.state, _COLOURS.get(root.state, "dim")),
        "problem": make_printable(root.problem),
        "speaks for": f"{make_printable(root.token)} ({root.role})" if root.token else "",
        "go by themselves": "" if root.state == "here" else root.auto,
        "stay here": make_printable(", ".join(root.exclude)),
        "waiting": f"{count_text(root.waiting, 'save')}; `memctl shared waiting` shows them" if root.waiting else "",
        "left out": f"{count_text(root.unreadable, 'row')} that cannot be read" if root.unreadable else "",
    }
    fields |= {make_printable(name): make_printable(value) for name, value in root.place.items()}
    present = [(name, value) for name, value in fields.items() if value]
    return f"{paint(make_printable(root.name), 'cyan')}\n{format_fields(present)}"


def _declare_waiting(parser: ArgumentParser) -> None:
    about = "try the places now, and send again what one refused or a restore brought"
    parser.add_argument("--send", action="store_true", help=about)


def _show_waiting(args: Namespace) -> None:
    show_result(args, GetShared(send=args.send), _waiting_text, lambda status: status.waiting)


def _waiting_text(status: SharedStatus) -> str:
    rows = []
    for save in status.waiting:
        texts = map(make_printable, (save.namespace, save.preview, save.refused))
        rows.append([save.id[:8], iso(save.since) or "", *texts])
    return format_table(["ID", "SAVED", "NAMESPACE", "TEXT", "REFUSED"], rows, "Nothing waits.", flexible=3)


COMMANDS = {
    "shared status": Command(declare_nothing, _show_status, "  memctl shared status\n  memctl shared status --json"),
    "shared waiting": Command(
        _declare_waiting,
        _show_waiting,
        "  memctl shared waiting\n"
        "  memctl shared waiting --send\n"
        "  memctl delete 3f2a9c1e    # one that is not to be sent",
    ),
}

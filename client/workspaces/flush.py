"""flush: what is worth keeping of a conversation, written into a file of a workspace."""

from argparse import ArgumentParser, Namespace

from memoryd.client.calls import flush
from memoryd.client.memctl.arguments import add_secrets
from memoryd.client.memctl.commands import Command
from memoryd.client.memctl.link import apply_options, client_for, say_redacted
from memoryd.client.memctl.observe import read_turns
from memoryd.client.memctl.output import show
from memoryd.client.workspaces.notes import add_note, remembered_text, resolve_place

_TIMEOUT_S = 300.0  # a language model takes its time
_NOTHING_TO_NOTE = "Nothing of it is worth a note, or the note says it already."


def _declare(parser: ArgumentParser) -> None:
    parser.add_argument(
        "turns", nargs="*", metavar="TURN", help="what was said (default: JSON lines on standard input)"
    )
    parser.add_argument("--role", default="user", metavar="R", help="who said it: user (the default), assistant …")
    add_note(parser)
    add_secrets(parser)


def _flush(args: Namespace) -> None:
    turns, workspace = read_turns(args), resolve_place(args.workspace)
    with client_for(args) as client:
        client.timeout_s = max(client.timeout_s, _TIMEOUT_S)
        done = client.call(apply_options(args, flush(turns, workspace, file=resolve_place(args.file))))
    say_redacted(done.redacted)
    show(args, done, lambda: f"{done.text}\n{remembered_text(done.note)}" if done.note else _NOTHING_TO_NOTE)


COMMANDS = {
    "flush": Command(
        _declare,
        _flush,
        '  memctl flush "We decided to cache in Valkey." --workspace notes\n'
        "  memctl flush --workspace ~/vault < conversation.jsonl",
    ),
}

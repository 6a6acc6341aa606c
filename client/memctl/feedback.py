"""feedback: say whether a memory was useful."""

from argparse import ArgumentParser, Namespace

from memoryd.client.memctl.arguments import add_id, add_reach, add_secrets
from memoryd.client.memctl.commands import Command
from memoryd.client.memctl.link import send
from memoryd.client.memctl.output import paint, show
from memoryd.client.memctl.table import count_text
from memoryd.client.methods import feedback as feedback_call
from memoryd.client.protocol import Changed, Usefulness


def _declare_feedback(parser: ArgumentParser) -> None:
    add_id(parser)
    said = parser.add_mutually_exclusive_group(required=True)
    said.add_argument("--useful", action="store_true", help="it helped: it ranks a little higher from now on")
    said.add_argument("--useless", action="store_true", help="it did not: it ranks a little lower")
    parser.add_argument("--note", default="", metavar="TEXT", help="why, for those who look at the memory")
    add_secrets(parser)
    add_reach(parser)


def _give_feedback(args: Namespace) -> None:
    changed = send(args, feedback_call(args.id, args.useful, args.note))
    show(args, changed, lambda: _text(changed))


def _text(changed: Changed) -> str:
    undo = paint(f"memctl undo {changed.operation}", "cyan")
    return f"Noted: {changed.memory.id[:8]} is {summary(changed.memory.usefulness)}; `{undo}` takes it back."


def summary(usefulness: Usefulness | None) -> str:
    """Return what feedback comes to, in a phrase."""
    if usefulness is None:
        return "not rated"
    parts = [
        f"useful to {usefulness.useful}" if usefulness.useful else "",
        f"useless to {usefulness.useless}" if usefulness.useless else "",
        f"cited {count_text(usefulness.cited, 'time')}" if usefulness.cited else "",
    ]
    return f"{', '.join(part for part in parts if part)} (score ×{usefulness.factor:.3f})"


COMMANDS = {
    "feedback": Command(
        _declare_feedback,
        _give_feedback,
        '  memctl feedback 3f9a --useful\n  memctl feedback 3f9a --useless --note "outdated since version 8"',
    )
}

"""feedback: say whether a memory was useful."""

from argparse import ArgumentParser, Namespace

from memoryd.client.memctl.arguments import add_id, add_reach, add_secrets
from memoryd.client.memctl.commands import Command
from memoryd.client.memctl.link import show_result
from memoryd.client.memctl.output import undo_text
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
    show_result(args, feedback_call(args.id, args.useful, args.note), _text)


def _text(changed: Changed) -> str:
    rated = summary(changed.memory.usefulness)
    return f"Noted: {changed.memory.id[:8]} is {rated}; {undo_text(changed.operation)} takes it back."


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

"""The command `context`: the memories for a task, as text for a prompt."""

from argparse import ArgumentParser, Namespace

from memoryd.client.calls import context as context_call
from memoryd.client.programs.memctl.arguments import accept_whole, add_filters, filters_of
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.link import apply_options, send
from memoryd.client.programs.memctl.output import make_printable, print_note, say_degraded, show
from memoryd.client.protocol.context import MAX_CONTEXT_TOKENS, MIN_CONTEXT_TOKENS


def _declare(parser: ArgumentParser) -> None:
    parser.add_argument("task", nargs="+", metavar="TASK", help="the task, in plain words")
    parser.add_argument(
        "--max-tokens",
        type=accept_whole(MIN_CONTEXT_TOKENS, MAX_CONTEXT_TOKENS),
        default=800,
        metavar="N",
        help="the most tokens of the text (default: 800)",
    )
    add_filters(parser, reach="visible, as for an agent; all outside a project without --namespace")


def _show_context(args: Namespace) -> None:
    call = context_call(" ".join(args.task), max_tokens=args.max_tokens, **filters_of(args))
    context = send(args, call := apply_options(args, call))
    if args.json or context.text:
        show(args, context, lambda: context.text.rstrip("\n"))
    if not context.text:
        place, hint = "", "; `memctl search` shows less relevant memories"
        if call.namespace and call.reach != "all":
            place = f" can be seen from {make_printable(call.namespace)}"
            hint = f"; `--reach all` looks everywhere{hint}"
        print_note(f"memctl: nothing relevant enough{place}{hint}.")
    elif context.omitted:
        print_note(f"memctl: {context.tokens} tokens; {context.omitted} more memories are relevant (--max-tokens).")
    say_degraded(context.degraded)


COMMANDS = {
    "context": Command(
        _declare,
        _show_context,
        '  memctl context "add a cache to the API" --max-tokens 400',
    )
}

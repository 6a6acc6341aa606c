"""The command `completion`: scripts with which a shell completes memctl's words.

The scripts are a few lines long. At each TAB they run `memctl completion words`, which asks the parsers and, for names
that only the daemon knows, a running daemon. So they are never outdated, and TAB never starts a daemon.
"""

from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, Namespace

from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.completion.scripts import SCRIPTS


def _declare(parser: ArgumentParser) -> None:
    parser.add_argument("shell", metavar="SHELL", type=_parse_shell, help=", ".join(SCRIPTS))
    # For `words`: the words typed so far, one per line, beginning with `memctl`. They may look like any option.
    parser.add_argument("line", nargs="?", default="memctl\n", help=SUPPRESS)


def _parse_shell(text: str) -> str:
    if text not in (*SCRIPTS, "words"):
        raise ArgumentTypeError(f"must be one of {', '.join(SCRIPTS)}, not {text!r}")
    return text


def _print_completion(args: Namespace) -> None:
    if args.shell == "words":
        from memoryd.client.programs.memctl.completion import suggesting

        return suggesting.print_words(args)
    from memoryd.client.programs.memctl.output import say

    return say(SCRIPTS[args.shell])


COMMANDS = {
    "completion": Command(
        _declare,
        _print_completion,
        "  source <(memctl completion bash)\n"
        "  memctl completion bash > ~/.local/share/bash-completion/completions/memctl\n"
        "  memctl completion zsh > ~/.zfunc/_memctl\n"
        "  memctl completion fish > ~/.config/fish/completions/memctl.fish",
    )
}

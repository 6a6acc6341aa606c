"""completion: scripts that let a shell complete memctl's words.

The scripts are a few lines: at each TAB they ask `memctl completion words`, which takes the answer from the parsers
and, for names that only the daemon knows, from the daemon. So they never go stale, and TAB never starts a daemon.
"""

from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, Namespace

from memoryd.client.memctl.commands import Command

SHELLS = ("bash", "zsh", "fish")


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("shell", metavar="SHELL", type=_shell, help=", ".join(SHELLS))
    # For `words`, what is typed so far: one word a line, `memctl` itself the first. It may look like any option.
    parser.add_argument("line", nargs="?", default="memctl\n", help=SUPPRESS)


def _shell(text: str) -> str:
    if text not in (*SHELLS, "words"):
        raise ArgumentTypeError(f"there are scripts for {', '.join(SHELLS)}, not for {text!r}")
    return text


def _completion(args: Namespace) -> None:
    if args.shell == "words":
        from memoryd.client.memctl.completion import words

        return words.show(args)
    from memoryd.client.memctl.completion import scripts
    from memoryd.client.memctl.output import say

    return say(scripts.SCRIPTS[args.shell])


COMMANDS = {
    "completion": Command(
        _arguments,
        _completion,
        "  source <(memctl completion bash)\n"
        "  memctl completion bash > ~/.local/share/bash-completion/completions/memctl\n"
        "  memctl completion zsh > ~/.zfunc/_memctl\n"
        "  memctl completion fish > ~/.config/fish/completions/memctl.fish",
    )
}

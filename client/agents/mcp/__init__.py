"""mcp: the memory for agents that speak the Model Context Protocol, over standard input and output.

The protocol is the official SDK's, which is an extra and is imported when the command runs. `schemas` says what the
tools take and return, `tools` what they do, `resources` what can be read, `answers` fits answers into a budget of
tokens, `session` is the way to the daemon, `server` brings them together.
"""

import gc
from argparse import ArgumentParser, Namespace
from importlib.util import find_spec

from memoryd.client.memctl.commands import Command
from memoryd.client.memctl.output import complain


def _declare(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--chatgpt", action="store_true", help="serve `search` and `fetch` too, as ChatGPT's connectors call them"
    )


def _serve(args: Namespace) -> int:
    if find_spec("mcp") is None:
        return complain("The Model Context Protocol is an extra; run: pip install 'memoryd[mcp]'", 1)
    gc.disable()  # the SDK's import makes thousands of classes and no garbage: looking for it takes a tenth of the time
    from memoryd.client.agents.mcp.server import serve

    gc.enable()
    return serve(args)


COMMANDS = {
    "mcp": Command(
        _declare,
        _serve,
        "  memctl mcp                            # for the project of the current folder\n"
        "  memctl mcp --namespace acme/api       # for this namespace\n"
        "  claude mcp add memory -- memctl mcp   # have Claude Code start it",
    )
}

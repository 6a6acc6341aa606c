"""The command `mcp`: serve one agent on standard input and output, or several on a port."""

import gc
from argparse import ArgumentParser, Namespace
from importlib.util import find_spec

from memoryd.client.extras import advise
from memoryd.client.programs.memctl.arguments import Usage, parse_port
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.output import complain

PORT = 8378


def _declare(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--chatgpt", action="store_true", help="serve `search` and `fetch` too, as ChatGPT's connectors call them"
    )
    parser.add_argument("--http", action="store_true", help="serve on a port of 127.0.0.1, with a token")
    parser.add_argument("--port", type=parse_port, metavar="N", help=f"with --http: the port (default: {PORT})")
    about = "with --http: answer also to this host, with any port unless it names one (may be repeated)"
    parser.add_argument("--allow-host", action="append", default=[], metavar="NAME", help=about)


def _serve(args: Namespace) -> int:
    if find_spec("mcp") is None:
        return complain(f"The Model Context Protocol is an extra; {advise('mcp')}", 1)
    if not args.http and (args.port or args.allow_host):
        raise Usage("--port and --allow-host are for --http (see `memctl mcp --help`).")
    gc.disable()  # importing the SDK creates thousands of classes but no garbage; collecting would add a tenth
    from memoryd.client.programs.mcp import server
    from memoryd.client.programs.mcp.tools import CONNECTOR_TOOLS, TOOLS

    tools = {**TOOLS, **(CONNECTOR_TOOLS if args.chatgpt else {})}
    if args.http:
        from memoryd.client.programs.mcp import http

        gc.enable()
        return http.serve(args, tools, args.port or PORT)
    gc.enable()
    return server.serve(args, tools)


COMMANDS = {
    "mcp": Command(
        _declare,
        _serve,
        "  memctl mcp                            # for the project of the current folder\n"
        "  memctl mcp --namespace acme/api       # for this namespace\n"
        "  claude mcp add memory -- memctl mcp   # have Claude Code start it\n"
        "  memctl mcp --http                     # for hosts that take an address",
    )
}

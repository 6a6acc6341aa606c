"""web: a page on 127.0.0.1 in which a person sees what agents remember, and takes things back.

It is a client like any other: the daemon never listens on TCP. `guard` hands the page its token and refuses what does
not come from it, `calls` passes the allowed calls on as JSON and streams what happens, `reports` composes what the page
only shows, `serving` brings them together. `static/` is the page: ES modules that need no build step. Starlette and
uvicorn are an extra, imported when the command runs.
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from importlib.util import find_spec

from memoryd.client.memctl.commands import Command
from memoryd.client.memctl.output import complain

PORT = 8377


def _declare(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--port", type=_parse_port, metavar="N", help=f"the port on 127.0.0.1 (default: {PORT}, else a free one)"
    )
    parser.add_argument("--no-open", action="store_true", help="open no browser; the address is printed in any case")


def _parse_port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise ArgumentTypeError(f"{text!r} is not a port from 1 to 65535")
    return int(text)


def _serve(args: Namespace) -> int:
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        return complain("The page is an extra; run: pip install 'memoryd[web]'", 1)
    from memoryd.client.memctl.web.serving import serve

    return serve(args, PORT)


COMMANDS = {"web": Command(_declare, _serve, "  memctl web\n  memctl web --port 9000 --no-open")}

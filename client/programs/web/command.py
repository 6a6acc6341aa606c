"""The command `web`."""

from argparse import ArgumentParser, Namespace
from importlib.util import find_spec

from memoryd.client.extras import advise
from memoryd.client.programs.memctl.arguments import parse_port
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.output import complain

PORT = 8377


def _declare(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--port", type=parse_port, metavar="N", help=f"the port on 127.0.0.1 (default: {PORT}, else a free one)"
    )
    parser.add_argument("--no-open", action="store_true", help="open no browser; the address is printed in any case")


def _serve(args: Namespace) -> int:
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        return complain(f"The page is an extra; {advise('web')}", 1)
    from memoryd.client.programs.web.serving import serve

    return serve(args, PORT)


COMMANDS = {"web": Command(_declare, _serve, "  memctl web\n  memctl web --port 9000 --no-open")}

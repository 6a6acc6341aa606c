"""man: the manual pages memctl(1) and memoryd(1), which `make manual` makes from the tables and puts beside this."""

import subprocess
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from shutil import which

from memoryd.client.memctl.commands import Command
from memoryd.client.memctl.output import note, say_bytes

PAGES = ("memctl", "memoryd")


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("page", nargs="?", default="memctl", choices=PAGES, metavar="PAGE", help=" or ".join(PAGES))


def _man(args: Namespace) -> int:
    path = page(args.page)
    if not sys.stdout.isatty():
        say_bytes(path.read_bytes())
        return 0
    if not which("man"):
        note("memctl: there is no `man` here; this is the page as it is written.")
        say_bytes(path.read_bytes())
        return 0
    return subprocess.run(["man", "-l", str(path)], check=False).returncode


def page(name: str) -> Path:
    """Return the file of a page."""
    return Path(__file__).with_name(f"{name}.1")


COMMANDS = {
    "man": Command(
        _arguments, _man, "  memctl man\n  memctl man memoryd\n  memctl man > ~/.local/share/man/man1/memctl.1"
    )
}

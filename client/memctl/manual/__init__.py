"""man: the manual pages memctl(1) and memoryd(1), which `make manual` makes from the tables and puts beside this."""

import subprocess
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from shutil import which

from memoryd.client.memctl.commands import Command
from memoryd.client.memctl.output import print_note, say_bytes

PAGES = ("memctl", "memoryd")


def _declare(parser: ArgumentParser) -> None:
    parser.add_argument("page", nargs="?", default="memctl", choices=PAGES, metavar="PAGE", help=" or ".join(PAGES))


def _show_page(args: Namespace) -> int:
    path = page_path(args.page)
    if sys.stdout.isatty() and which("man"):
        return subprocess.run(["man", "-l", str(path)], check=False).returncode
    if sys.stdout.isatty():
        print_note("memctl: there is no `man` here; this is the page as it is written.")
    say_bytes(path.read_bytes())
    return 0


def page_path(name: str) -> Path:
    """Return the file of a page."""
    return Path(__file__).with_name(f"{name}.1")


COMMANDS = {
    "man": Command(
        _declare, _show_page, "  memctl man\n  memctl man memoryd\n  memctl man > ~/.local/share/man/man1/memctl.1"
    )
}

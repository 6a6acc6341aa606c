"""The command `top`: print `stats` again and again; on a terminal each replaces the one before."""

import os
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager

from memoryd.client.calls import stats as stats_call
from memoryd.client.errors import TimedOut, Unavailable
from memoryd.client.programs.memctl.arguments import accept_number
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.link import client_for
from memoryd.client.programs.memctl.output import is_terminal, say, say_json
from memoryd.client.programs.memctl.stats import stats_text

_INTERVAL_S, _LONGEST_S = 1.0, 3600
_LIMIT_S = 5.0  # for one answer, so that a daemon that hangs is noticed
_INTERRUPTED = 130
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l\x1b[?7l", "\x1b[?7h\x1b[?25h\x1b[?1049l"  # alternate screen without line wrap
_WIPE = "\x1b[H\x1b[J"


def _declare(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--interval",
        type=accept_number(0.1, _LONGEST_S),
        default=_INTERVAL_S,
        metavar="S",
        help="seconds between updates (default: 1)",
    )


def _watch(args: Namespace) -> int:
    """Print the statistics until Ctrl-C. The daemon must run at the start, but may stop and restart later."""
    args.timeout = min(args.timeout, _LIMIT_S)
    live = is_terminal() and not args.json
    with client_for(args, autostart=False) as client:
        stats, gone = client.call(stats_call()), ""
        try:
            with _open_screen(live):
                while True:
                    if args.json and not gone:
                        say_json(stats)
                    elif not args.json:
                        _draw("\n\n".join(filter(None, [gone, stats_text(stats)])), live)
                    time.sleep(args.interval)
                    try:
                        stats, gone = client.call(stats_call()), ""
                    except (Unavailable, TimedOut) as error:
                        gone = f"{error.message} The figures below are the last ones."
        except KeyboardInterrupt:
            return _INTERRUPTED


def _draw(text: str, live: bool) -> None:
    """Print the text; on a terminal replace the former text, and cut the new one to the number of rows."""
    if not live:
        return say(f"{text}\n")
    _write(_WIPE)
    return say("\n".join(text.split("\n")[: os.get_terminal_size(1).lines - 1]))


@contextmanager
def _open_screen(live: bool) -> Iterator[None]:
    _write(_ENTER if live else "")
    try:
        yield
    finally:
        _write(_LEAVE if live else "")


def _write(codes: str) -> None:
    if codes:
        sys.stdout.write(codes)
        sys.stdout.flush()


COMMANDS = {"top": Command(_declare, _watch, "  memctl top\n  memctl top --interval 5\n  memctl top --json")}

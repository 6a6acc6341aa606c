"""top: a live view of the daemon: calls, latencies, tiers, queues, jobs, clients."""

import time
from argparse import ArgumentParser, Namespace

from memoryd.client.calls import stats as stats_call
from memoryd.client.errors import Forbidden, TimedOut, Unavailable
from memoryd.client.memctl.arguments import accept_number
from memoryd.client.memctl.commands import Command
from memoryd.client.memctl.link import client_for
from memoryd.client.memctl.output import show
from memoryd.client.memctl.top import screen as screens
from memoryd.client.memctl.top.picture import ORDERS, Sample, draw_frame
from memoryd.client.transport.sync import Client

INTERVAL_S, LONGEST_S = 2.0, 3600
LOOK_S = 0.2  # how soon a key or another size of the terminal is noticed
LIMIT_S = 5.0  # for one answer: a daemon that hangs shall be seen to hang
INTERRUPTED = 130


def _declare_top(parser: ArgumentParser) -> None:
    parser.add_argument("--once", action="store_true", help="print one frame and exit")
    parser.add_argument(
        "--interval",
        type=accept_number(0.1, LONGEST_S),
        default=INTERVAL_S,
        metavar="S",
        help="seconds between two frames (default: 2)",
    )
    parser.add_argument(
        "--sort", choices=ORDERS, default="calls", help="what calls are ordered by; the key s changes it"
    )


def _show_top(args: Namespace) -> int | None:
    args.timeout = min(args.timeout, LIMIT_S)
    with client_for(args, autostart=False) as client:
        if args.once or args.json:
            sample = _take_sample(client, None)
            if sample.stats is None:
                raise Unavailable(f"{sample.error}; start one with `memctl up`.")
            size = screens.terminal_size()
            show(args, sample.stats, lambda: screens.text_of(draw_frame(sample, None, args.sort, size)[:-1]))
            return None
        try:
            with screens.read_keys(), screens.open_screen() as screen:
                _watch(client, args, screen)
        except KeyboardInterrupt:
            return INTERRUPTED
    return None


def _watch(client: Client, args: Namespace, screen: screens.Screen) -> None:
    """Draw until q is pressed: at each interval, on a key, and when the terminal has another size."""
    now, before, paused, order = _take_sample(client, None), None, False, args.sort
    while True:
        shown = screens.terminal_size()
        state = "paused" if paused else f"every {args.interval:g} s"
        foot = f"q quit · s sort ({order}) · p pause   {state}"
        screen.draw(draw_frame(now, before, order, shown if screen.live else (shown[0], 0), foot))
        due_at = time.monotonic() + args.interval
        key = ""
        while not key and time.monotonic() < due_at and screens.terminal_size() == shown:
            key = screens.wait_for_key(min(LOOK_S, max(0.0, due_at - time.monotonic())))
        if key in ("q", "Q", "\x1b", "\x03"):
            return
        if key == "s":
            order = ORDERS[(ORDERS.index(order) + 1) % len(ORDERS)]
        elif key in ("p", " "):
            paused = not paused
        elif not paused and time.monotonic() >= due_at:
            before, now = now, _take_sample(client, now)


def _take_sample(client: Client, last: Sample | None) -> Sample:
    """Ask for the figures; without an answer the last ones stay, with the reason above them."""
    try:
        stats = client.call(stats_call())
    except (Unavailable, TimedOut) as error:
        why = "no daemon answers" if isinstance(error, Unavailable) else "the daemon does not answer"
        return Sample(last.stats if last else None, time.monotonic(), f"{why} at {client.socket_path}")
    if stats.daemon is None:
        raise Forbidden("Only the machine's user sees how the daemon is; leave MEMORYD_TOKEN out.")
    return Sample(stats, time.monotonic())


COMMANDS = {
    "top": Command(
        _declare_top,
        _show_top,
        "  memctl top\n"
        "  memctl top --interval 0.5 --sort p95\n"
        "  memctl top --once\n"
        "  memctl top --json | jq .daemon.queues",
    )
}

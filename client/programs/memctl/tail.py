"""The command `tail`: follow events, one line each."""

import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace

import msgspec

from memoryd.client.errors import Unavailable
from memoryd.client.programs.memctl.arguments import accept_whole, add_reach
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.link import client_for, reach_of
from memoryd.client.programs.memctl.output import columns, paint, print_note, say_bytes, to_plain
from memoryd.client.programs.memctl.text_table import GAP, count_text, pad, shorten, to_one_line, width
from memoryd.client.protocol import EVENT_KINDS, Event
from memoryd.client.times import iso
from memoryd.client.transport.subscription import Subscription
from memoryd.client.transport.sync import Client

RETRY_S = 0.5
INTERRUPTED = 130
KIND, ID, FROM_TO = 8, 8, 5  # widths
PLACE, BROAD_PLACE = 12, 22  # the width of a namespace: usually, and on a broad terminal
BROAD = 100  # a terminal of at least this width is broad
STYLES = {
    "created": ["green"],
    "promoted": ["green"],
    "deleted": ["red"],
    "dropped": ["red"],
    "warning": ["yellow"],
    "missed": ["yellow"],
    "job": ["dim"],
    "notice": ["cyan"],
}
_SEEN = tuple(kind for kind in EVENT_KINDS if kind not in ("started", "missed"))


def _declare_tail(parser: ArgumentParser) -> None:
    kinds = f"only these, several separated by commas (default: all): {', '.join(_SEEN)}"
    parser.add_argument("--kind", type=_parse_kinds, action="extend", default=[], metavar="KIND", help=kinds)
    parser.add_argument("--count", type=accept_whole(1), metavar="N", help="end after N events")
    add_reach(parser)


def _parse_kinds(text: str) -> list[str]:
    kinds = [kind.strip() for kind in text.split(",")]
    for kind in kinds:
        if kind not in _SEEN:
            raise ArgumentTypeError(f"must be of {', '.join(_SEEN)}, not {kind!r}")
    return kinds


def _follow_events(args: Namespace) -> int | None:
    """Print events until `--count`, Ctrl-C or a closed output; if the daemon stops, wait for the next one."""
    with client_for(args, autostart=False) as client:
        rest = args.count
        followed = _subscribe(client, args, rest)
        try:
            while True:
                with followed:
                    rest = _print_events(followed, args, rest)
                if rest == 0:
                    return None
                followed = _wait_for_daemon(client, args, rest)
        except KeyboardInterrupt:
            return INTERRUPTED


def _subscribe(client: Client, args: Namespace, limit: int | None) -> Subscription:
    return client.subscribe(args.kind, reach=reach_of(args), limit=limit)


def _print_events(followed: Subscription, args: Namespace, rest: int | None) -> int | None:
    """Print events; return how many of `--count` are left if the daemon stops, 0 if there were enough."""
    try:
        for event in followed:
            _show(event, args.json)
            if rest is not None and event.kind != "missed":
                rest -= 1
    except Unavailable:
        return rest
    return 0


def _wait_for_daemon(client: Client, args: Namespace, rest: int | None) -> Subscription:
    print_note("memctl: the daemon has stopped; waiting for the next one.")
    while True:
        time.sleep(RETRY_S)
        try:
            followed = _subscribe(client, args, rest)
        except Unavailable:
            continue
        print_note("memctl: a daemon answers again; events in between are missing.")
        return followed


def _show(event: Event, as_json: bool) -> None:
    if as_json:
        line = msgspec.json.encode(to_plain(event))
    else:
        line = event_line(event, columns()).encode((sys.stdout and sys.stdout.encoding) or "utf-8", "replace")
    say_bytes(line + b"\n")


def event_line(event: Event, size: int) -> str:
    """Return an event as one line of at most `size` columns."""
    cells = [((iso(event.at) or "")[11:19], ["dim"]), (pad(event.kind, KIND), STYLES.get(event.kind, []))]
    if event.kind not in ("job", "warning", "notice", "missed"):
        room = BROAD_PLACE if size >= BROAD else PLACE
        cells += [
            (pad(event.id[:ID], ID), ["cyan"]),
            (pad(_tier_text(event), FROM_TO), []),
            (pad(place_text(event.namespace, room), room), []),
        ]
    used = sum(width(cell) + len(GAP) for cell, _ in cells)
    text = shorten(to_one_line(_text(event)), max(0, size - used))
    return GAP.join([*(paint(cell, *styles) for cell, styles in cells), text]).rstrip()


def place_text(namespace: str, size: int) -> str:
    """Return the end of a namespace, which identifies it better than its beginning."""
    name = to_one_line(namespace) or "/"
    return name if width(name) <= size else "…" + shorten(name[::-1], size)[:-1][::-1]


def _tier_text(event: Event) -> str:
    tier = "docs" if event.tier == "documents" else event.tier
    return f"{event.came_from}→{tier}" if event.came_from in ("L0", "L1", "L2") else tier


def _text(event: Event) -> str:
    if event.kind == "missed":
        return f"{count_text(event.count, 'event')} missing: read faster, or follow fewer kinds"
    if event.kind == "job":
        return f"{event.by} {event.type}: {event.text}"
    if event.kind in ("warning", "notice"):
        return f"{event.by}: {event.text}"
    if event.kind == "indexed":
        return f"{event.text} ({count_text(event.count, 'part')})"
    if event.count > 1:
        return f"{count_text(event.count, 'memory')} ({event.by})"
    moved = f"(from {event.came_from}) " if event.came_from and "→" not in _tier_text(event) else ""
    return moved + event.text


COMMANDS = {
    "tail": Command(
        _declare_tail,
        _follow_events,
        "  memctl tail\n"
        "  memctl tail --namespace acme/api --kind created,updated,deleted\n"
        "  memctl tail --kind warning,job\n"
        "  memctl tail --json | jq .text       (one JSON object a line)",
    )
}

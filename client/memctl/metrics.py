"""metrics: all figures in the text format of Prometheus."""

from argparse import Namespace

from memoryd.client.calls import stats as stats_call
from memoryd.client.errors import Unavailable
from memoryd.client.exposition import format_stats
from memoryd.client.memctl.arguments import no_arguments
from memoryd.client.memctl.commands import Command
from memoryd.client.memctl.link import client_for
from memoryd.client.memctl.output import say_bytes, say_json


def _metrics(args: Namespace) -> None:
    with client_for(args, autostart=False) as client:
        try:
            found = client.call(stats_call())
        except Unavailable:
            raise Unavailable(f"No daemon runs at {client.socket_path}; start one with `memctl up`.") from None
    if args.json:
        say_json(found)
    else:
        say_bytes(format_stats(found).encode())


COMMANDS = {
    "metrics": Command(
        no_arguments,
        _metrics,
        "  memctl metrics\n"
        "  memctl metrics > /var/lib/node_exporter/memoryd.prom\n"
        "The daemon writes such a file itself with, in the configuration:\n"
        '  [metrics]\n  textfile = "/var/lib/node_exporter/memoryd.prom"',
    )
}

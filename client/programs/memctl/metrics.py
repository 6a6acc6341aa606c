"""The command `metrics`: print all metrics in the text format of Prometheus."""

from argparse import Namespace

from memoryd.client.calls import stats as stats_call
from memoryd.client.exposition import format_stats
from memoryd.client.programs.memctl.arguments import declare_nothing
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.link import ask_running
from memoryd.client.programs.memctl.output import say_bytes, say_json


def _print_metrics(args: Namespace) -> None:
    stats = ask_running(args, stats_call())
    if args.json:
        say_json(stats)
    else:
        say_bytes(format_stats(stats).encode())


COMMANDS = {
    "metrics": Command(
        declare_nothing,
        _print_metrics,
        "  memctl metrics\n"
        "  cd /var/lib/node_exporter\n"
        "  memctl metrics > memoryd.new && mv memoryd.new memoryd.prom  # from cron",
    )
}

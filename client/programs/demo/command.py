"""Run the command `demo`."""

import time
from argparse import Namespace

from memoryd.client.programs.demo.agents import run_agents
from memoryd.client.programs.demo.model import CONFIG, prepare_model
from memoryd.client.programs.demo.steps import STEPS, DemoStage
from memoryd.client.programs.memctl.arguments import declare_nothing
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.output import paint, say, say_json
from memoryd.client.programs.memctl.private_daemon import run_private_daemon

NAMES = ("alpha", "beta", "gamma")


def _run_demo(args: Namespace) -> None:
    started = time.monotonic()
    quiet = bool(args.json)
    if not quiet:
        say(paint("memoryd in a minute: one daemon, three agents, one memory", "bold"))
    missing = prepare_model()
    with run_private_daemon(config=CONFIG) as daemon, run_agents(NAMES, daemon.socket) as crew:
        stage = DemoStage(daemon=daemon, crew=crew, quiet=quiet, missing=missing)
        for number, (heading, step) in enumerate(STEPS, 1):
            if not quiet:
                say(f"\n{paint(f'{number}. {heading}', 'bold')}")
            step(stage)
    took_s = time.monotonic() - started
    if quiet:
        say_json({**stage.figures, "took_s": round(took_s, 1), "removed": not daemon.folder.exists()})
        return
    say(f"\nThe daemon has stopped and {daemon.folder} is removed; {took_s:.0f} s in all.")
    command = paint('memctl add "…"', "cyan"), paint('memctl search "…"', "cyan")
    say(f"Your turn: {command[0]}, then {command[1]} (the daemon starts by itself).")


COMMANDS = {"demo": Command(declare_nothing, _run_demo, "  memctl demo")}

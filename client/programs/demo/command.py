"""The command `demo`: let three agents share a memory, in a temporary folder."""

import time
from argparse import Namespace

from memoryd.client.errors import MemorydError
from memoryd.client.programs.demo.agents import run_agents
from memoryd.client.programs.demo.steps import STEPS, DemoStage
from memoryd.client.programs.memctl.arguments import declare_nothing
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.local import effective_settings
from memoryd.client.programs.memctl.model import pull, run_models
from memoryd.client.programs.memctl.output import paint, print_note, say, say_json
from memoryd.client.programs.memctl.private_daemon import run_private_daemon

NAMES = ("alpha", "beta", "gamma")
_CONFIG = "[model]\nfetch = false\n"  # for the demo's daemon, since `_prepare_model` fetches the model


def _run_demo(args: Namespace) -> None:
    started = time.monotonic()
    quiet = bool(args.json)
    if not quiet:
        say(paint("memoryd in a minute: one daemon, three agents, one memory", "bold"))
    missing = _prepare_model()
    with run_private_daemon(config=_CONFIG) as daemon, run_agents(NAMES, daemon.socket) as crew:
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


def _prepare_model() -> str:
    """Install the default model; return why that failed, empty if it is installed. Searches by words need no model."""
    try:
        settings = effective_settings()
        if settings["model"]["fetch"] and not settings["network"]["offline"]:
            pull()
        elif not any(model["installed"] and model["default"] for model in run_models("list", "--json")):
            which = "`offline` is set" if settings["network"]["offline"] else "`fetch = false` is set"
            raise MemorydError(f"none is installed, and {which}")
    except (MemorydError, SystemExit) as error:
        reason = error.message if isinstance(error, MemorydError) else "it could not be fetched"
        print_note(f"memctl: no embedding model ({reason.rstrip('.')}): the demo searches by words only.")
        return reason
    return ""


COMMANDS = {"demo": Command(declare_nothing, _run_demo, "  memctl demo")}

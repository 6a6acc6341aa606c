"""demo: the command."""

import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from memoryd.client.demo.agents import run_agents
from memoryd.client.demo.material import choose_passages
from memoryd.client.demo.model import CONFIG, prepare_model
from memoryd.client.demo.steps import STEPS, DemoStage
from memoryd.client.errors import MemorydError
from memoryd.client.memctl.commands import Command
from memoryd.client.memctl.output import paint, say, say_json
from memoryd.client.memctl.private import run_private_daemon

NAMES = ("alpha", "beta", "gamma")
NO_FILES = "There are no .md or .py files with text below {}; give another folder with --path."


def _declare(parser: ArgumentParser) -> None:
    parser.add_argument("--decay", action="store_true", help="show instead how a half-life lets today's vote win")
    parser.add_argument("--path", type=Path, default=Path(), metavar="DIR", help="the files to remember (this folder)")


def _run_demo(args: Namespace) -> None:
    started = time.monotonic()
    if args.decay:
        from memoryd.client.demo.decay import show_decay

        figures, folder = show_decay(quiet=bool(args.json))
    else:
        figures, folder = _run_agents(args)
    took_s = time.monotonic() - started
    if args.json:
        say_json({**figures, "took_s": round(took_s, 1), "removed": not folder.exists()})
        return
    say(f"\nThe daemon has stopped and {folder} is removed; {took_s:.0f} s in all.")
    command = paint('memctl add "…"', "cyan"), paint('memctl search "…"', "cyan")
    say(f"Your turn: {command[0]}, then {command[1]} (the daemon starts by itself).")


def _run_agents(args: Namespace) -> tuple[dict[str, Any], Path]:
    root = args.path.resolve()
    material = choose_passages(root)
    if not material:
        raise MemorydError(NO_FILES.format(root))
    quiet = bool(args.json)
    if not quiet:
        say(paint("memoryd in a minute: one daemon, three agents, one memory", "bold"))
    missing = prepare_model()
    with run_private_daemon(config=CONFIG) as daemon, run_agents(NAMES, daemon.socket) as crew:
        stage = DemoStage(daemon=daemon, crew=crew, root=root, material=material, quiet=quiet, missing=missing)
        for number, (heading, step) in enumerate(STEPS, 1):
            if not quiet:
                say(f"\n{paint(f'{number}. {heading}', 'bold')}")
            step(stage)
        return stage.figures, daemon.folder


_EXAMPLES = "  memctl demo\n  memctl demo --path ~/notes\n  memctl demo --decay"

COMMANDS = {"demo": Command(_declare, _run_demo, _EXAMPLES)}

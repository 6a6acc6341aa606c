"""demo: what memoryd does, shown with real files and three processes in a temporary folder that is removed again."""

import os
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from memoryd.client.errors import MemorydError
from memoryd.client.memctl.commands import Command
from memoryd.client.memctl.demo.agents import agents
from memoryd.client.memctl.demo.material import MAX_PASSAGES, passages
from memoryd.client.memctl.demo.steps import STEPS, Stage
from memoryd.client.memctl.model import run_models
from memoryd.client.memctl.output import note, paint, say, say_json
from memoryd.client.memctl.private import private_daemon

NAMES = ("alpha", "beta", "gamma")
CONFIG = "[model]\nfetch = false\n"  # the demo fetches it itself, where its progress can be seen
NO_FILES = "There are no .md or .py files with text below {}; give another folder with --path."


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--path", type=Path, default=Path(), metavar="DIR", help="the files to remember (this folder)")
    parser.add_argument(
        "--passages", type=int, default=MAX_PASSAGES, metavar="N", help=f"how many passages ({MAX_PASSAGES})"
    )


def _demo(args: Namespace) -> None:
    started = time.monotonic()
    root = args.path.resolve()
    material = passages(root, max(args.passages, 1))
    if not material:
        raise MemorydError(NO_FILES.format(root))
    quiet = bool(args.json)
    if not quiet:
        say(paint("memoryd in a minute: one daemon, three agents, one memory", "bold"))
    missing = _prepare_model()
    with private_daemon(config=CONFIG) as daemon, agents(NAMES, daemon.socket) as crew:
        stage = Stage(daemon=daemon, crew=crew, root=root, material=material, quiet=quiet, missing=missing)
        for number, (heading, step) in enumerate(STEPS, 1):
            if not quiet:
                say(f"\n{paint(f'{number}. {heading}', 'bold')}")
            step(stage)
        folder = daemon.folder
    _finish(stage, folder, time.monotonic() - started)


def _prepare_model() -> str:
    """Install the default model; return why there is none when that fails, for words do without."""
    try:
        if os.environ.get("MEMORYD_OFFLINE") not in (None, "", "0"):
            if any(model["installed"] and model["default"] for model in run_models("list", "--json")):
                return ""
            raise MemorydError("MEMORYD_OFFLINE is set and none is installed")
        run_models("pull", "--json")
    except (MemorydError, SystemExit) as error:
        reason = error.message if isinstance(error, MemorydError) else "it could not be fetched"
        note(f"memctl: no embedding model ({reason.rstrip('.')}): the demo goes by words only.")
        return reason
    return ""


def _finish(stage: Stage, folder: Path, took_s: float) -> None:
    figures: dict[str, Any] = {**stage.figures, "took_s": round(took_s, 1), "removed": not folder.exists()}
    if stage.quiet:
        say_json(figures)
        return
    say(f"\nThe daemon has stopped and {folder} is removed; {took_s:.0f} s in all.")
    command = paint('memctl add "…"', "cyan"), paint('memctl search "…"', "cyan")
    say(f"Your turn: {command[0]}, then {command[1]} (the daemon starts by itself).")


COMMANDS = {"demo": Command(_arguments, _demo, "  memctl demo\n  memctl demo --path ~/notes --passages 100")}

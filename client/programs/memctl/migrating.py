"""The command `shared migrate`: compute the vectors of a root in PostgreSQL again, by another model installed here."""

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import msgspec

from memoryd.client.errors import ModelUnavailable, TimedOut
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.database import run_there
from memoryd.client.programs.memctl.granting import declare_root, find_server
from memoryd.client.programs.memctl.model import folder_options, run_models
from memoryd.client.programs.memctl.output import show
from memoryd.client.programs.memctl.progress import ProgressBar
from memoryd.client.programs.memctl.text_table import count_text
from memoryd.client.transport.postgres import migrating
from memoryd.client.transport.postgres.migrating import PendingMemory

R = TypeVar("R")

_TRIES, _PAUSE_S = 60, 1.0  # while other connections hold a lock


def _declare(parser: ArgumentParser) -> None:
    declare_root(parser)
    parser.add_argument("--model", required=True, metavar="MODEL", help="a model that is installed here")


def _migrate(args: Namespace) -> None:
    name, model, server = args.name, args.model, find_server(args)
    models = run_models("list", "--json", *folder_options())
    installed = {row["name"]: row["dimensions"] for row in models if row["installed"]}
    if model not in installed:
        raise ModelUnavailable(f"{model} is not installed here: memctl model pull {model}")
    size = installed[model]
    run = partial(_retry_while_locked, name, server)
    state = run(partial(migrating.prepare, root=name, model=model, dimensions=size))
    filled = 0
    if state is not None:
        left, total = state
        made: list[tuple[str, str, int]] = []
        with ProgressBar(f"vectors of {model}") as bar:
            while True:
                bar.update(total - max(0, left - filled), total)
                without = run(partial(migrating.fill, root=name, model=model, made=made))
                made = _embed(model, without)
                filled += len(made)
                if not without and run(partial(migrating.switch, root=name, model=model, dimensions=size)):
                    break
    said = {"name": name, "model": model, "dimensions": size, "filled": filled}
    show(args, said, lambda: _text(name, model, filled, state is None))


def _text(name: str, model: str, filled: int, had: bool) -> str:
    if had:
        return f"{name} has the vectors of {model}."
    return (
        f"{name} has the vectors of {model} now; this run made {count_text(filled, 'vector')}. Daemons with another"
        f" model find what is there by words alone, until `memctl model pull {model}` and `memctl model use {model}`."
    )


def _retry_while_locked(name: str, server: str, work: Callable[[Any], R]) -> R:
    """Run `work` in one transaction; try again while other connections hold a lock."""
    for _ in range(_TRIES):
        try:
            return run_there(name, server, work)
        except TimedOut:
            time.sleep(_PAUSE_S)
    return run_there(name, server, work)


def _embed(model: str, memories: list[PendingMemory]) -> list[tuple[str, str, int]]:
    """Return the vector of each memory, as text, with its id and version."""
    texts = msgspec.json.encode([one.content for one in memories])
    vectors = run_models("embed", model, *folder_options(), given=texts) if memories else []
    shown = [msgspec.json.encode(vector).decode() for vector in vectors]
    return [(vector, one.id, one.version) for vector, one in zip(shown, memories, strict=True)]


COMMANDS = {
    "shared migrate": Command(
        _declare,
        _migrate,
        "  memctl shared migrate acme --model bge-small-en-v1.5 \\\n      --server postgresql://owner@db.acme.dev/team",
    )
}

"""The daemon that is evaluated: in a temporary folder, with the default settings unless others are named.

Its jobs run only when they are asked to, so that no figure depends on when one happens to run. Where the data has
dates, its clock is set by the evaluation.
"""

import os
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

from memoryd.client.errors import TimedOut
from memoryd.client.programs.memctl.private_daemon import PrivateDaemon, run_private_daemon
from memoryd.client.programs.memctl.service import wait_until_ready
from memoryd.client.protocol import Memory, NewMemory, Turn
from memoryd.client.transport.paths import models_dir
from memoryd.client.transport.sync import Client
from memoryd.models.folder import installed, model_folder
from memoryd.models.tokens import Tokens

PAGE = 200  # memories of a list: sessions are long
POLL_S = 0.01
STANDSTILL_S = 120.0
VECTORS_S = 3600.0
DEFAULTS = "# the default settings, whatever the user has\n"


def add_many(client: Client, namespace: str, memories: Sequence[NewMemory], dedup: bool) -> list[str]:
    """Add memories at the client's namespace; return the ids of what they became."""
    del namespace
    return [result.id for result in client.add_many(memories, dedup=dedup)]


class EvaluatedDaemon(NamedTuple):
    """How to connect at a namespace, how to set the daemon's time, and how memories are added."""

    connect: Callable[[str], Client]
    set_time: Callable[[float], None] = lambda seconds: None
    add: Callable[[Client, str, Sequence[NewMemory], bool], list[str]] = add_many
    root: str = "bench-eval"  # the namespace around all that is stored

    def wait_until_ready(self) -> str:
        """Wait until all vectors are made; return the model's name."""
        with self.connect("") as client:
            return wait_until_ready(client, VECTORS_S).model.name


def declare_settings(parser: ArgumentParser) -> None:
    """Add the options that name the daemon's settings."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--model", metavar="NAME", help="the embedding model (the default model)")
    group.add_argument("--config", type=Path, metavar="FILE", help="a configuration file for the daemon")


def read_settings(args: Namespace) -> str:
    """Return the configuration that the options mean."""
    if args.model:
        return f'[model]\nname = "{args.model}"\n'
    return args.config.read_text("utf-8") if args.config else DEFAULTS


@cache
def find_counter(tokenizer: str) -> Callable[[str], int]:
    """Return what counts tokens as contexts do: the tokenizer of an installed model, else two bytes are one."""
    folder = models_dir()
    if tokenizer not in installed(folder):
        return lambda text: -(-len(text.encode("utf-8", "replace")) // 2)
    return Tokens(model_folder(tokenizer, folder) / "tokenizer.json", 0, special=False).count


@contextmanager
def run_daemon(
    settings: str = DEFAULTS, began_at: float | None = None, options: Sequence[str] = ()
) -> Iterator[tuple[EvaluatedDaemon, PrivateDaemon]]:
    """Run a daemon; with `began_at` (UTC seconds) its time begins there and continues as it is set."""
    with run_private_daemon(options, config=settings, clock=began_at) as daemon:
        place = EvaluatedDaemon(daemon.client)
        with daemon.client() as client:
            for job in client.jobs().jobs:
                client.pause_job(job.name)
        if began_at is not None:
            place = place._replace(set_time=lambda seconds: os.utime(daemon.clock, (seconds, seconds)))
        place.wait_until_ready()
        yield place, daemon


def list_present(client: Client) -> Iterator[Memory | Turn]:
    """Yield the memories of a client's namespace that a search may find, and the turns of L0."""
    offset = 0
    while page := client.list(limit=PAGE, offset=offset, sort="created", reach="exact").memories:
        yield from page
        offset += len(page)
    yield from client.turns(limit=1000, reach="exact")


def settle(client: Client, conversations: bool = True) -> None:
    """Wait until nothing waits for a judgement, and no conversation for its summary and its facts either."""
    least, give_up_at = None, time.monotonic() + STANDSTILL_S
    while left := _count_waiting(client, conversations):
        if least is None or left < least:
            least, give_up_at = left, time.monotonic() + STANDSTILL_S
        if time.monotonic() > give_up_at:
            raise TimedOut(f"{left} turns still wait in the extraction queue; none was for {STANDSTILL_S:g} s.")
        time.sleep(POLL_S)
    if conversations:
        wait_until_ready(client, VECTORS_S)


def _count_waiting(client: Client, conversations: bool) -> int:
    report = client.tiers(reach="exact")
    return sum(report.waiting.values()) + (sum(report.resting.values()) if conversations else 0)

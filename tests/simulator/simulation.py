"""The workload on an injected clock: plays its events, runs the jobs when they are due, checks as it goes."""

import random
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import invariants
import msgspec
from events import Event
from player import Player
from workload import DAYS, START, read_workload

from memoryd.client.protocol import Undo
from memoryd.daemon.config import Config
from memoryd.daemon.core.core import Core
from memoryd.models import Floors
from workbench import Clock, WordEmbedder, ask, disk_and_memory, wait_until

DAY_S = 86_400.0
# The jobs that move memories run each evening; by the table all would be due all the time.
SELDOM = dict.fromkeys(("caps", "embed", "maintain", "trim", "backup"), 7 * DAY_S)
JOBS: dict[str, object] = {"backups": 0, "every_s": SELDOM}
LIFETIMES = {"task_completion": 7, "session_summary": 3, "file_index": 30}


class Embedder(WordEmbedder):  # type: ignore[misc, valid-type]
    """Takes texts for related as early as real models do, so that nodes fill up and must be split."""

    floors = Floors(duplicate=0.92, relevant=0.3, related=0.3, join=0.5, merge=0.85)


class Plan(NamedTuple):
    """How the workload is played."""

    days: int = DAYS
    restarts: tuple[int, ...] = ()  # days after which the daemon is killed and started again
    undone_sweeps: float = 0.0  # share of the sweeps that are undone and done again
    reach_every: int = 30  # days between two looks at whether memories are found by their own text
    settings: Mapping[str, dict[str, object]] = MappingProxyType({})


class Problem(AssertionError):
    """Something that must hold does not."""


class Simulation:
    """One run on a folder. `core` and `player` are there to be looked at afterwards, until `close`."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.plan, self._folder = plan, folder
        self._random = random.Random(1)
        self._lives = 0
        self.clock = Clock()
        self.clock.now = START
        self.player = Player(self.clock)
        self.core = self._started()
        self.sweeps_undone = 0

    def run(self) -> "Simulation":
        """Play all days."""
        events = read_workload()
        at = 0
        for day in range(self.plan.days):
            end = START + (day + 1) * DAY_S
            upto = next((n for n in range(at, len(events)) if events[n].at >= end), len(events))
            self._day(day, events[at:upto])
            at = upto
        return self

    def _day(self, day: int, events: Iterable[Event]) -> None:
        for event in events:
            self.player.play(event)
            self.check(f"day {day}, {event}", invariants.always(self.core))
        self.clock.now = START + (day + 1) * DAY_S - 1800.0
        if self._random.random() < self.plan.undone_sweeps:
            self._undo_a_sweep(day)
        self.player.run()
        self.check(f"the jobs of day {day}", invariants.always(self.core) + invariants.after_maintenance(self.core))
        self.check(f"the books of day {day}", self.player.books.problems(self.core))
        if day % self.plan.reach_every == self.plan.reach_every - 1:
            self.check(f"searches on day {day}", invariants.unreachable(self.core, 7))
        if day in self.plan.restarts:
            self._restart()

    def finish(self) -> None:
        """Check what is looked at once, at the end."""
        self.check(
            "searches at the end", invariants.unreachable(self.core) + invariants.shown_though_expired(self.core)
        )
        self.check("the file", invariants.sound(self.core))
        stored, held = disk_and_memory(self.core)
        assert stored == held

    def _undo_a_sweep(self, day: int) -> None:
        """Sweep, take it back, do it again: each state must be exactly what it was."""
        before = invariants.rows_of(self.core)
        operation = self.player.run("sweep")[0].operation
        if operation is None:
            return
        after = invariants.rows_of(self.core)
        mine = self._undo(operation)
        self.check(f"a sweep undone on day {day}", invariants.always(self.core))
        if invariants.rows_of(self.core) != before:
            raise Problem(f"day {day}: undoing the sweep did not restore the former state")
        self._undo(mine)
        if invariants.rows_of(self.core) != after:
            raise Problem(f"day {day}: doing the sweep again did not give the same state")
        self.sweeps_undone += 1

    def _undo(self, operation: str) -> str:
        undone = ask(self.core, Undo(operation=operation))
        self.player.settle()
        return undone.operation

    def check(self, where: str, problems: list[str]) -> None:
        """Raise `Problem` if there are any, or if the player met one."""
        problems = self.player.failures + problems
        if problems:
            raise Problem(f"{where}: {'; '.join(problems[:5])} ({len(problems)} in all)")

    # The core --------------------------------------------------------------------------------------------------------

    def _started(self) -> Core:
        config = msgspec.convert({"jobs": JOBS, "lifetime": {"days": LIFETIMES}, **self.plan.settings}, Config)
        folder = self._folder / f"life{self._lives}"
        core = Core(folder, config, self._folder, lambda name, where: Embedder(), clock=self.clock)
        core.start()
        wait_until(lambda: core.embedding.active is not None)
        self.player.begin(core)
        return core

    def _restart(self) -> None:
        """Go on with a copy of the files as they are: what a kill or a power cut leaves behind."""
        former = self._folder / f"life{self._lives}"
        self._lives += 1
        shutil.copytree(former, self._folder / f"life{self._lives}", ignore=shutil.ignore_patterns("*-shm"))
        self.close()
        self.core = self._started()

    def close(self) -> None:
        """End the core."""
        with suppress(AttributeError):
            self.player.runner.close()
        self.core.close()

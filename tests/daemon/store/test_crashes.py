"""The power goes at any write, cut or sync of a database: what was acknowledged is there, nothing is there by half.

At each of these places the disk is copied as a loss of power may leave it, and read as the next start does. What such a
copy holds has to be what the last acknowledged operation left, or the one under way.
"""

import random
import shutil
from pathlib import Path

import pytest
from disk import Disk, _Change, unreliable
from life import ACTIONS, Life
from past import read_file

from memoryd.daemon.store.store import FILE_NAME, Store
from workbench import Clock, CountingEmbedder, running


class Crashes:
    """Cuts the power at every `every`-th place, `times` times each, and looks at what is left."""

    def __init__(self, disk: Disk, life: Life, place: Path, every: int, times: int) -> None:
        self._disk, self._life, self._place = disk, life, place
        self._every, self._times = every, times
        self._dice = random.Random(every)
        self.met, self.crashes, self.losses, self.wrong = 0, 0, 0, list[str]()

    def meet(self, kind: str, name: str, change: _Change) -> None:
        """Cut the power before something is done."""
        self.met += 1
        if self.met % self._every:
            return
        for _ in range(self._times):
            self._place.mkdir()
            self.losses += self._disk.cut_power(self._place, self._dice, (name, change))
            try:
                self._look(kind)
            finally:
                shutil.rmtree(self._place)

    def _look(self, kind: str) -> None:
        self.crashes += 1
        state = read_file(self._place)
        if not self._life.is_possible(state):
            self.wrong.append(f"{kind} {self.met}: {len(state)} of {len(self._life.state)}")
        if self.crashes % 50 == 0:
            store = Store(self._place)
            try:
                self.wrong += store.find_problems()
            finally:
                store.close()


def crash(folder: Path, seed: int, steps: int, every: int, times: int) -> Crashes:
    """Live and crash all the while; return what was seen."""
    dice, clock = random.Random(seed), Clock()
    with unreliable(folder / "data") as disk, running(folder, CountingEmbedder(), clock=clock) as core:
        life = Life(core, clock)
        crashes = Crashes(disk, life, folder / "image", every, times)
        disk.meet = crashes.meet
        try:
            for _ in range(steps):
                life.do(dice.choice([*ACTIONS, "add"]), dice.getrandbits(32))
        finally:
            disk.meet = lambda kind, name, change: None
            life.close()
        life.check()
    return crashes


def test_a_loss_of_power_at_any_write_loses_nothing_that_was_acknowledged(folder: Path) -> None:
    seen = crash(folder, seed=1, steps=40, every=23, times=2)
    assert seen.wrong == []
    assert seen.crashes > 20
    assert seen.losses > 5
    assert (folder / "data" / FILE_NAME).exists()


@pytest.mark.stress
@pytest.mark.timeout(1800)
def test_thousands_of_losses_of_power_lose_nothing(folder: Path) -> None:
    total = losses = 0
    for seed in range(12):
        (folder / str(seed)).mkdir()
        seen = crash(folder / str(seed), seed, steps=60, every=4, times=2)
        assert seen.wrong == []
        total, losses = total + seen.crashes, losses + seen.losses
        shutil.rmtree(folder / str(seed))
    print(f"{total} losses of power, {losses} of them lost, tore or reordered writes")
    assert total > 10_000

"""A disk that fails below SQLite: each reply is true, what was acknowledged stays, and nothing is there by half."""

import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import apsw
import pytest
from disk import Disk, ShortWrite, _Change, build_error, unreliable
from life import ACTIONS, JobFailed, Life
from past import read_state

from memoryd.client.errors import MemorydError, StorageFailed
from memoryd.client.protocol import Verify
from memoryd.daemon.core.core import Core
from workbench import Clock, CountingEmbedder, add, ask, found, running

FAULTS = {
    "write": lambda: build_error(apsw.SQLITE_IOERR_WRITE),
    "short write": lambda: build_error(apsw.SQLITE_IOERR_WRITE, ShortWrite),
    "full": lambda: build_error(apsw.SQLITE_FULL, apsw.FullError),
    "sync": lambda: build_error(apsw.SQLITE_IOERR_FSYNC),
}


class Faults:
    """Fails at one place from the next few on, once or until it is repaired."""

    def __init__(self, disk: Disk) -> None:
        self.hit = Counter[str]()
        self._wanted, self._after, self._lasts = "", 0, False
        disk.meet = self._meet

    def plan(self, wanted: str, after: int, lasts: bool) -> None:
        """Fail at the place after so many; with an empty `wanted` not at all."""
        self._wanted, self._after, self._lasts = wanted, after, lasts

    def _meet(self, kind: str, name: str, change: _Change) -> None:
        if not self._wanted or (kind == "sync") != (self._wanted == "sync"):
            return
        self._after -= 1
        if self._after >= 0:
            return
        wanted = self._wanted
        self.hit[wanted] += 1
        if not self._lasts:
            self._wanted = ""
        raise FAULTS[wanted]()


def fail(folder: Path, seed: int, steps: int) -> Counter[str]:
    """Live on a disk that fails at every other operation; return how often it failed, by kind, and what was said."""
    dice, clock = random.Random(seed), Clock()
    with unreliable(folder / "data") as disk, running(folder, CountingEmbedder(), clock=clock) as core:
        life, faults = Life(core, clock), Faults(disk)
        try:
            for number in range(steps):
                if number % 2:
                    faults.plan(dice.choice(list(FAULTS)), dice.randrange(6), dice.random() < 0.3)
                _step(life, faults, dice)
                faults.plan("", 0, False)
                life.check()
            assert _problems(core) == []
        finally:
            faults.plan("", 0, False)
            life.close()
    with running(folder, CountingEmbedder(), clock=clock) as core:
        with core.store.reading() as connection:
            assert read_state(connection) == life.state
        assert core.store.find_problems() == []
    return faults.hit


def _step(life: Life, faults: Faults, dice: random.Random) -> None:
    try:
        life.do(dice.choice([*ACTIONS, "add"]), dice.getrandbits(32))
    except (MemorydError, JobFailed) as error:
        said = str(error)
    else:
        return
    faults.plan("", 0, False)
    faults.hit["refused"] += 1
    # Jobs say what failed; their parts are operations of their own.
    is_done = "may or may not be stored" in said or re.search(r"The first (\d+) of \1 are erased", said)
    assert not life.settle() or is_done, said


@pytest.mark.slow
def test_replies_on_a_failing_disk_are_true(folder: Path) -> None:
    hit = fail(folder, seed=0, steps=60)
    assert hit.total() > 15


@pytest.mark.stress
@pytest.mark.timeout(1800)
def test_thousands_of_failures_lose_and_double_nothing(folder: Path) -> None:
    hit = Counter[str]()
    for seed in range(100):
        (folder / str(seed)).mkdir()
        hit += fail(folder / str(seed), seed, steps=150)
    print(dict(hit))
    assert hit.total() - hit["refused"] > 5_000


@pytest.mark.parametrize(("wanted", "said"), [("sync", "may or may not be stored"), ("write", "cannot be written")])
def test_a_disk_that_fails_is_answered_truly(folder: Path, wanted: str, said: str) -> None:
    with unreliable(folder / "data") as disk, running(folder, CountingEmbedder()) as core:
        add(core, "Herons fish at dawn")
        faults = Faults(disk)
        faults.plan(wanted, 0, True)
        for number in range(3):
            with pytest.raises(StorageFailed, match=said):
                add(core, f"Storks nest {number}")
        faults.plan("", 0, False)
        add(core, "Cranes dance at dusk")
        assert _problems(core) == []
    with running(folder, CountingEmbedder()) as core:
        assert found(core, "herons fish at dawn")[0] == "Herons fish at dawn"
        assert found(core, "cranes dance at dusk")[0] == "Cranes dance at dusk"
        assert _problems(core) == []


def _problems(core: Core) -> list[Any]:
    return ask(core, Verify(), report=lambda progress: None).problems

"""The power goes at any write of a migration: the next start of the same or a later memoryd migrates the rest."""

import random
import shutil
from pathlib import Path

import pytest
from disk import _Change, unreliable
from past import read_state
from test_migrations import RELEASES, SHARING, schema

from memoryd.daemon.store.schema import VERSION
from memoryd.daemon.store.store import FILE_NAME, Store


def migrate(release: Path, folder: Path, every: int) -> int:
    """Migrate a database and cut the power at every so many places; return how often."""
    data, place, dice = folder / "data", folder / "image", random.Random(every)
    data.mkdir()
    shutil.copy(release, data / FILE_NAME)
    images, met = 0, 0

    def meet(kind: str, name: str, change: _Change) -> None:
        nonlocal images, met
        met += 1
        if met % every == 0:
            place.mkdir(exist_ok=True)
            disk.cut_power(place, dice, (name, change))
            shutil.copytree(place, folder / f"image {images}")
            images += 1

    with unreliable(data) as disk:
        disk.meet = meet
        store = Store(data)
        store.close()
        disk.meet = lambda kind, name, change: None
    wanted = read(data)
    for number in range(images):
        assert read(folder / f"image {number}") == wanted, number
        shutil.rmtree(folder / f"image {number}")
    return images


def read(folder: Path) -> tuple[object, object]:
    """Start on a folder; return its schema and what it holds."""
    store = Store(folder)
    try:
        assert store.find_problems() == []
        with store.reading() as connection:
            state = read_state(connection)
    finally:
        store.close()
    found = schema(folder / FILE_NAME)
    assert found[-1] == ("version", str(VERSION), "")
    return found, state


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.stem)
def test_a_migration_that_loses_power_is_finished_by_the_next_start(folder: Path, release: Path) -> None:
    assert migrate(release, folder, every=20 if release != RELEASES[-1] else 1) > 0


@pytest.mark.stress
@pytest.mark.timeout(1200)
def test_a_migration_that_loses_power_at_any_write_is_finished_by_the_next_start(folder: Path) -> None:
    losses = 0
    for release in (SHARING, *RELEASES):
        (folder / release.stem).mkdir()
        losses += migrate(release, folder / release.stem, every=1)
        shutil.rmtree(folder / release.stem)
    print(f"{losses} losses of power")


def test_a_database_that_shared_memories_migrates_after_a_loss_of_power(folder: Path) -> None:
    assert migrate(SHARING, folder, every=40) > 0

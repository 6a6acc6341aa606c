"""The order of copies: by what they hold, whatever their names and files say of when they were made."""

import os
import shutil
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from memoryd.client.protocol import RunJob
from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs.runner import Runner
from memoryd.daemon.store import copies
from workbench import add


def names(folder: Path) -> list[str]:
    return [path.name for path in copies.list_copies(folder)]


def made(core: Core, folder: Path, at: float) -> str:
    """Make a copy that says it is of a time; return its name."""
    folder.mkdir(exist_ok=True)
    path = folder / copies.name_at(at)
    copies.copy(core.store, path, lambda: None)
    os.utime(path, (at, at))
    return path.name


def test_the_copy_with_the_latest_operation_is_the_newest(core: Core, folder: Path) -> None:
    add(core, "Herons fish at dawn")
    ahead = made(core, folder / "b", 1_900_000_000.0)  # the clock was ahead
    add(core, "Storks nest on roofs")
    behind = made(core, folder / "b", 0.0)  # it was behind
    add(core, "Cranes dance in spring")
    right = made(core, folder / "b", 1_800_000_000.0)
    assert names(folder / "b") == [ahead, behind, right]
    assert names(folder / "none") == []


@pytest.mark.parametrize("name", ["safe.part", "safe.sqlite", "safe"])
def test_a_copy_keeps_its_name_and_the_files_beside_it(core: Core, folder: Path, name: str) -> None:
    (folder / "b").mkdir()
    beside = folder / "b" / ("other.part" if name == "safe.part" else "safe.part")
    beside.write_text("of somebody else")
    made = copies.copy(core.store, folder / "b" / name, lambda: None)
    assert (folder / "b" / name).stat().st_size == made.size_bytes
    assert beside.read_text() == "of somebody else"
    assert len(list((folder / "b").iterdir())) == 2


def test_the_next_copy_removes_one_that_a_kill_left_unfinished_a_day_ago(core: Core, folder: Path) -> None:
    (folder / "b").mkdir()
    abandoned, recent, foreign = (folder / "b" / name for name in ("memoryd-1.part", "memoryd-2.part", "mine.part"))
    for path in (abandoned, recent, foreign):
        path.touch()
    begun_at = recent.stat().st_mtime
    os.utime(abandoned, (begun_at - 90_000,) * 2)
    os.utime(foreign, (begun_at - 90_000,) * 2)
    copies.copy(core.store, folder / "b" / "copy.sqlite", lambda: None)
    assert {path.name for path in (folder / "b").iterdir()} == {"copy.sqlite", recent.name, foreign.name}


def test_the_copies_are_printed_for_memctl(core: Core, folder: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    added = add(core, "Herons fish at dawn")
    backups = folder / copies.FOLDER
    name = made(core, backups, 100.0)
    (backups / copies.name_at(200.0, copies.KEPT)).touch()
    for former in (
        "before-reset-20260102T000000Z",
        "before-restore-20260101T000000Z",
        "before-restore-99999999T000000Z",
    ):
        (folder / former).mkdir()
        shutil.copy(backups / name, folder / former / "memoryd.sqlite")
    assert copies.main([str(folder)]) == 0
    empty, good, undated, older, newer = msgspec.json.decode(capfdbinary.readouterr().out)
    assert (good["name"], good["path"], good["operation"]) == (name, str(backups / name), added.operation)
    assert (good["made_at"], good["memories"], good["former"]) == (100.0, 1, False)
    assert good["size_bytes"] > 4096
    assert (empty["made_at"], empty["memories"], empty["operation"]) == (200.0, None, None)
    assert (older["name"], newer["name"]) == ("before-restore-20260101T000000Z", "before-reset-20260102T000000Z")
    assert (undated["made_at"], newer["memories"], newer["former"]) == (None, 1, True)


def test_what_is_copied_of_an_older_database_put_in_place_is_the_newest(core: Core, clock: Any) -> None:
    """Else the copies of what was given up would stay, and those of what is in use be deleted at once."""
    jobs, backups = Runner(core), core.folder / "backups"
    for at in (1.0, 2.0, 3.0):
        add(core, f"Crane number {at}", dedup=False)
        made(core, backups, at)

    def older(connection: apsw.Connection) -> None:
        connection.execute("UPDATE sqlite_sequence SET seq = 1 WHERE name = 'operations'")
        connection.execute("DELETE FROM operations")

    core.store.write(lambda transaction: older(transaction.connection)).result()
    for text in ("Owls hunt at night", "Swifts sleep in the air"):
        add(core, text)
        clock.advance(86_400)
        jobs.run(RunJob(name="backup"), lambda event: None).result(30)
        assert names(backups)[-1] == copies.name_at(clock.now)
        assert len(names(backups)) == 3
    jobs.close()

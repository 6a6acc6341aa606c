"""Putting another database in the place of the present one, at the daemon's start or while none runs.

The other one is made ready as `next/memoryd.sqlite` in the data directory, whole and on disk. The process that holds
the lock of the directory takes it up: the former files go to a folder of their own, named for why and when, and the new
one takes the name in one step. A crash at any point leaves either the former database in place, or `next` to be taken
up again. If the daemon has written to the present database long after that, `next` is given up: its maker was killed.
"""

import logging
import os
import shutil
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import apsw

from memoryd.daemon.store.copies import LOGS, fold_log
from memoryd.daemon.store.store import FILE_NAME
from memoryd.daemon.system.process import sync

NEXT = "next"
LIMIT_S = 600.0  # of writing on
_REASON = "reason"  # file in `next`: restore, recovery, reset
_DISCARD = "discard"  # file in `next`: the former database is not kept

log = logging.getLogger(__name__)


def mark_ready(folder: Path, reason: str, discard: bool) -> None:
    """Say that the database in `part_folder(folder)` is whole and to be taken up next."""
    place = part_folder(folder)
    (place / _REASON).write_text(reason)
    if discard:
        (place / _DISCARD).touch()
    for path in (*place.iterdir(), place):
        sync(path)
    cancel(folder)
    place.rename(folder / NEXT)
    sync(folder)


def part_folder(folder: Path) -> Path:
    """Return the folder in which the next database is made."""
    return folder / f"{NEXT}.part"


def begin(folder: Path) -> Path:
    """Return that folder, new and empty."""
    shutil.rmtree(part_folder(folder), ignore_errors=True)
    part_folder(folder).mkdir(mode=0o700, parents=True)
    return part_folder(folder)


def cancel(folder: Path) -> None:
    """Forget a database that was made ready and not taken up."""
    shutil.rmtree(folder / NEXT, ignore_errors=True)


def is_waiting(folder: Path) -> bool:
    """Return whether a database waits to be taken up."""
    return (folder / NEXT / FILE_NAME).is_file()


def take_up(folder: Path, now: float) -> Path | None:
    """Put the waiting database in place, if there is one; return where the former is kept. Needs the folder's lock."""
    if not is_waiting(folder):
        return None
    place, file = folder / NEXT, folder / FILE_NAME
    if _read_last_write(file) - place.stat().st_mtime > LIMIT_S:
        log.warning(
            "a database that was made ready in %s is given up: the present one was written to long after", place
        )
        cancel(folder)
        return None
    reason = (place / _REASON).read_text() if (place / _REASON).is_file() else "change"
    former = _folder_for(folder, reason, now)
    if file.exists():
        with suppress(apsw.Error):  # one too damaged for that keeps its log beside it
            fold_log(file)
        with suppress(FileExistsError):
            os.link(file, former / FILE_NAME)
    for suffix in LOGS:  # what belongs to the former database would be taken for the new one's
        with suppress(FileNotFoundError):
            (folder / f"{FILE_NAME}{suffix}").rename(former / f"{FILE_NAME}{suffix}")
    sync(former)
    discard = (place / _DISCARD).exists()
    (place / FILE_NAME).replace(file)
    sync(folder)
    shutil.rmtree(place, ignore_errors=True)
    if discard or not any(former.iterdir()):
        shutil.rmtree(former, ignore_errors=True)
        return None
    return former


def _read_last_write(file: Path) -> float:
    """Return when a database was written to last, in UTC seconds; 0 without one."""
    parts = (file, file.with_name(f"{FILE_NAME}-wal"))
    return max((part.stat().st_mtime for part in parts if part.exists()), default=0.0)


def _folder_for(folder: Path, reason: str, now: float) -> Path:
    stem = f"before-{reason}-{datetime.fromtimestamp(now, UTC):%Y%m%dT%H%M%SZ}"
    for number in range(1, 100):
        place = folder / (stem if number == 1 else f"{stem}-{number}")
        with suppress(FileExistsError):
            place.mkdir(mode=0o700)
            return place
    raise FileExistsError(f"{folder / stem} and 98 more exist.")

"""Replace the present database by another one, at the daemon's start or while no daemon runs.

The new database is complete and synced as `next/memoryd.sqlite` in the data directory. The process that holds the lock
of the directory puts it in place: it keeps the former files in a folder named for the reason and the time, and renames
the new file over the former one. A crash at any point leaves either the former database in place, or `next` to be put
in place later. If a daemon has written to the present database long after `next` was made, `next` is discarded: its
maker was killed.
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
LIMIT_S = 600.0  # `next` is discarded if a daemon has written for longer since
_REASON = "reason"  # file in `next`: restore, recovery, reset
_DISCARD = "discard"  # file in `next`: the former database is not kept

log = logging.getLogger(__name__)


def mark_ready(folder: Path, reason: str, discard: bool) -> None:
    """Mark the database in `part_folder(folder)` as complete and ready to be put in place."""
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
    """Create the empty folder for the next database, and return it."""
    shutil.rmtree(part_folder(folder), ignore_errors=True)
    part_folder(folder).mkdir(mode=0o700, parents=True)
    return part_folder(folder)


def cancel(folder: Path) -> None:
    """Delete a database that was not put in place yet."""
    shutil.rmtree(folder / NEXT, ignore_errors=True)


def take_up(folder: Path, now: float) -> Path | None:
    """Put the waiting database in place, if any; return where the former one is kept. The caller holds the lock."""
    place, file = folder / NEXT, folder / FILE_NAME
    if not (place / FILE_NAME).is_file():
        return None
    parts = (file, folder / f"{FILE_NAME}-wal")
    written_at = max((part.stat().st_mtime for part in parts if part.exists()), default=0.0)
    if written_at - place.stat().st_mtime > LIMIT_S:
        log.warning(
            "a database that was made ready in %s is given up: the present one was written to long after", place
        )
        cancel(folder)
        return None
    reason = (place / _REASON).read_text() if (place / _REASON).is_file() else "change"
    former = _folder_for(folder, reason, now)
    if file.exists():
        with suppress(apsw.Error):  # a database that is too damaged keeps its log as a file
            fold_log(file)
        with suppress(FileExistsError):
            os.link(file, former / FILE_NAME)
    for suffix in LOGS:  # SQLite would apply the former database's log to the new one
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


def _folder_for(folder: Path, reason: str, now: float) -> Path:
    stem = f"before-{reason}-{datetime.fromtimestamp(now, UTC):%Y%m%dT%H%M%SZ}"
    for number in range(1, 100):
        place = folder / (stem if number == 1 else f"{stem}-{number}")
        with suppress(FileExistsError):
            place.mkdir(mode=0o700)
            return place
    raise FileExistsError(f"{folder / stem} and 98 more exist.")

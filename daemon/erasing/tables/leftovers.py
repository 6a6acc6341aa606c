"""What copies of the database hold of erased texts.

Copies are in the folder of backups and in the folders of former databases (`before-*`). One whose rows hold what was
erased is named; when that is asked for, all are rewritten, as FTS5 keeps words of rows that are gone until it merges
its segments, and SQLite until it uses a free page again. It is erased from a file beside the copy, which gets its name
once it was checked. A copy with a log beside it (of a daemon that was killed, or a former database too damaged to fold
it in) is named as well: the log may hold anything. It is folded in first.
"""

import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

import apsw

from memoryd.client.errors import StorageFailed
from memoryd.daemon.conversations.tables import session_names
from memoryd.daemon.erasing.tables import erasing
from memoryd.daemon.erasing.tables.mentions import Beside
from memoryd.daemon.store import copies, upkeep
from memoryd.daemon.store.connection import open_writer
from memoryd.daemon.store.migrations import migrate
from memoryd.daemon.system.process import sync

_PART = 500  # memories that are erased from a copy by one statement


def list_copies(folder: Path) -> list[Path]:
    """Return the copies of the database, and former databases, that are in the data directory."""
    return copies.list_copies(folder / copies.FOLDER) + copies.list_former(folder)


def find_copies(folder: Path, ids: Iterable[str], beside: Beside) -> list[Path]:
    """Return those that hold any of what is erased; one that cannot be read, or has a log beside it, may."""
    id_set = set(ids)
    return [path for path in list_copies(folder) if _is_held(path, id_set, beside) is not False]


def _is_held(path: Path, ids: set[str], beside: Beside) -> bool | None:
    """Return whether a copy holds any of what is erased; None if it cannot be read, or not all of it."""
    if _has_log(path):
        return None
    query = (
        "SELECT id FROM memories UNION ALL SELECT key FROM turns"
        " UNION ALL SELECT memory FROM history WHERE before IS NOT NULL"
    )
    return upkeep.read_copy(
        path,
        lambda connection: any(str(id) in ids for (id,) in connection.execute(query)) or beside.is_in(connection),
    )


def list_sessions(folder: Path) -> list[str]:
    """Return the names of the sessions of which the copies that can be read have anything."""
    found = [upkeep.read_copy(path, session_names.list_sessions) or [] for path in list_copies(folder)]
    return sorted({name for names in found for name in names})


def rewrite(path: Path, ids: Sequence[str], beside: Beside, now: float) -> None:
    """Erase memories and what is beside them from a copy; raise `StorageFailed` if it cannot be rewritten."""
    part = path.with_suffix(".part")
    try:
        if _has_log(path):
            _fold_log(path, part)
        _copy(path, part)
        _erase_from(part, ids, beside, now)
        _replace(path, part)
    except (OSError, apsw.Error) as error:
        raise StorageFailed(f"The copy {path} cannot be rewritten: {error}.") from None
    finally:
        _remove(part)


def _has_log(path: Path) -> bool:
    """Return whether there is anything in the logs beside a file; `-shm` holds their locks, and no text."""
    return any(log.stat().st_size for log in _list_logs(path) if log.exists() and not log.name.endswith("-shm"))


def _list_logs(path: Path) -> list[Path]:
    return [path.with_name(f"{path.name}{suffix}") for suffix in copies.LOGS]


def _fold_log(path: Path, part: Path) -> None:
    """Fold the log of a copy into it; the file may be linked elsewhere, where the log is not that file's."""
    if path.stat().st_nlink > 1:
        _copy(path, part)
        _replace(path, part)
    copies.fold_log(path)
    for log in _list_logs(path):
        log.unlink(missing_ok=True)


def _copy(path: Path, part: Path) -> None:
    _remove(part)  # of a daemon that was killed: its log would be taken for this one's
    shutil.copyfile(path, part)
    part.chmod(0o600)


def _replace(path: Path, part: Path) -> None:
    """Put a file, once it is on disk, in the place of a copy, and give it the copy's time."""
    sync(part)
    facts = path.stat()
    os.utime(part, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    part.replace(path)
    sync(path.parent)


def _remove(part: Path) -> None:
    for file in (part, *_list_logs(part)):
        file.unlink(missing_ok=True)


def _erase_from(part: Path, ids: Sequence[str], beside: Beside, now: float) -> None:
    with closing(open_writer(part)) as connection:
        migrate(connection)
        with connection:
            meant = list(dict.fromkeys([*ids, *beside.find_ids(connection)]))
            every = [*meant, *erasing.find_derived(connection, meant)]
            for start in range(0, len(every), _PART):
                erasing.erase(connection, every[start : start + _PART], now)
            beside.erase(connection)
            beside.forget_around(connection)
        erasing.erase_from_file(connection)
        connection.pragma("journal_mode", "delete")
        if faults := copies.find_faults(connection):
            raise StorageFailed(f"The copy {part.stem} is damaged: {faults[0]}. It was left as it is.")

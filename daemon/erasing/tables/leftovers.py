"""Find and erase content in copies of the database: backups, and former databases (`before-*`).

An erase reports the copies that still hold erased rows; on request all copies are rewritten, since FTS5 keeps words of
deleted rows until it merges its segments, and SQLite until it reuses a page. Rows are erased from a new file, which
replaces the copy after a check. A copy with a write-ahead log (from a daemon that was killed, or a damaged former
database) is also reported, since the log may hold anything; rewriting folds the log in first.
"""

import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

import apsw

from memoryd.client.errors import StorageFailed
from memoryd.client.transport.batches import split_evenly
from memoryd.daemon.conversations.tables import session_names
from memoryd.daemon.erasing.tables import erasing
from memoryd.daemon.erasing.tables.mentions import OtherTraces
from memoryd.daemon.store import copies, upkeep
from memoryd.daemon.store.connection import open_writer
from memoryd.daemon.store.migrations import migrate
from memoryd.daemon.system.process import sync

_PART = 500  # memories per statement


def list_copies(folder: Path) -> list[Path]:
    """Return the copies of the database, and the former databases, in the data directory."""
    return copies.list_copies(folder / copies.FOLDER) + copies.list_former(folder)


def find_copies(folder: Path, ids: Iterable[str], traces: OtherTraces) -> list[Path]:
    """Return the copies that contain erased content, or may contain it because they are unreadable or have a log."""
    id_set = set(ids)
    return [path for path in list_copies(folder) if _contains_erased(path, id_set, traces) is not False]


def _contains_erased(path: Path, ids: set[str], traces: OtherTraces) -> bool | None:
    """Return whether a copy holds erased content; None if it cannot be read as a whole."""
    if _has_log(path):
        return None
    query = (
        "SELECT id FROM memories UNION ALL SELECT key FROM turns"
        " UNION ALL SELECT memory FROM history WHERE before IS NOT NULL UNION ALL SELECT memory FROM sent"
    )
    return upkeep.read_copy(
        path,
        lambda connection: any(str(id) in ids for (id,) in connection.execute(query)) or traces.is_in(connection),
    )


def list_sessions(folder: Path) -> list[str]:
    """Return the names of the sessions in all readable copies."""
    found = [upkeep.read_copy(path, session_names.list_sessions) or [] for path in list_copies(folder)]
    return sorted({name for names in found for name in names})


def rewrite(path: Path, ids: Sequence[str], traces: OtherTraces, now: float) -> None:
    """Erase memories and other traces from a copy; raise `StorageFailed` if it cannot be rewritten."""
    part = path.with_suffix(".part")
    try:
        if _has_log(path):
            _fold_log(path, part)
        _copy(path, part)
        _erase_from(part, ids, traces, now)
        _replace(path, part)
    except (OSError, apsw.Error) as error:
        raise StorageFailed(f"The copy {path} cannot be rewritten: {error}.") from None
    finally:
        _remove(part)


def _has_log(path: Path) -> bool:
    """Return whether a file has a log with content; `-shm` holds only locks."""
    return any(log.stat().st_size for log in _list_logs(path) if log.exists() and not log.name.endswith("-shm"))


def _list_logs(path: Path) -> list[Path]:
    return [path.with_name(f"{path.name}{suffix}") for suffix in copies.LOGS]


def _fold_log(path: Path, part: Path) -> None:
    """Fold the log of a copy into it, after detaching the copy from other hard links, which have no log."""
    if path.stat().st_nlink > 1:
        _copy(path, part)
        _replace(path, part)
    copies.fold_log(path)
    for log in _list_logs(path):
        log.unlink(missing_ok=True)


def _copy(path: Path, part: Path) -> None:
    _remove(part)  # left by a daemon that was killed; its log must not be used for the new file
    shutil.copyfile(path, part)
    part.chmod(0o600)


def _replace(path: Path, part: Path) -> None:
    """Sync a file, give it the copy's time, and replace the copy by it."""
    sync(part)
    facts = path.stat()
    os.utime(part, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    part.replace(path)
    sync(path.parent)


def _remove(part: Path) -> None:
    for file in (part, *_list_logs(part)):
        file.unlink(missing_ok=True)


def _erase_from(part: Path, ids: Sequence[str], traces: OtherTraces, now: float) -> None:
    with closing(open_writer(part)) as connection:
        migrate(connection)
        with connection:
            meant = list(dict.fromkeys([*ids, *traces.find_ids(connection)]))
            every = [*meant, *erasing.find_derived(connection, meant)]
            for batch in split_evenly(every, _PART):
                erasing.erase(connection, batch, now)
            traces.erase(connection)
            traces.clear_neighbour_texts(connection)
        erasing.erase_from_file(connection)
        connection.pragma("journal_mode", "delete")
        if faults := copies.find_faults(connection):
            raise StorageFailed(f"The copy {part.stem} is damaged: {faults[0]}. It was left unchanged.")

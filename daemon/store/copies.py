"""Copies of the database: make them while it is in use, check them, and list them in the order of their content.

A copy is one file without a log, made in one snapshot, so it has every write acknowledged before, and no partial one.
Copies are ordered by the number of their latest operation, since dates come from a clock that may have been wrong.

Copies named `memoryd-…` are made and rotated by the job `backup`; copies named `kept-…` were made by hand and are kept.

`python -m memoryd.daemon.store.copies DIR` prints the copies and the former databases of a data directory as one JSON
document: the copies first, the oldest of each first.
"""

import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import msgspec

from memoryd.client.errors import StorageFailed
from memoryd.daemon.store import known_projects
from memoryd.daemon.store.connection import CHECKING_CACHE, open_reader
from memoryd.daemon.store.store import Store
from memoryd.daemon.store.tiers import DOCUMENTS
from memoryd.daemon.store.upkeep import marks, marks_of, read_copy
from memoryd.daemon.store.writer import Transaction
from memoryd.daemon.system.process import sync

FOLDER = "backups"
BY_JOB, KEPT = "memoryd-", "kept-"  # prefixes of names
_UNFINISHED = "memoryd-", ".part"  # prefix and suffix of the name while a copy is written
_PAGES = 256
_LOOK_S = 0.02
_DATE = "%Y%m%dT%H%M%SZ"  # in the names of copies, and of the folders of former databases
_ABANDONED_S = 86400.0  # an unfinished file of this age is removed by the next copy
_ROOM = 1.2  # free space needed for a copy, as a multiple of the database's size
_PROGRESS_STEPS = 50_000  # of SQLite's virtual machine between two checks whether to give up
LOGS = ("-wal", "-shm", "-journal")  # suffixes of files that SQLite leaves for a database that was not closed
_PARTS = "SELECT count(*) FROM memories WHERE tier = ?"
_COUNTERS = ("operations", "turns", "skipped")  # AUTOINCREMENT counters; the first that differs decides the order


class CopyContent(NamedTuple):
    """The content of a copy."""

    memories: int
    turns: int
    parts: int  # of files
    operation: str | None  # the latest
    size_bytes: int


def name_at(now: float, beginning: str = BY_JOB) -> str:
    """Return the name of a copy made at a time."""
    return f"{beginning}{datetime.fromtimestamp(now, UTC):{_DATE}}.sqlite"


def free_name(folder: Path, now: float) -> str:
    """Return a free name for a copy made at a time; if that is taken, since the clock was set back, a later one."""
    while (folder / name_at(now)).exists():
        now += 1.0
    return name_at(now)


def list_copies(folder: Path) -> list[Path]:
    """Return the copies in a folder by the age of their content, oldest first; unreadable ones come first."""
    if not os.path.isdir(folder):
        return []
    found = [path for beginning in (BY_JOB, KEPT) for path in folder.glob(f"{beginning}*T*Z.sqlite")]
    return sorted(found, key=lambda path: (_read_counts(marks_of(path)), _order_of(path)))


def list_former(folder: Path) -> list[Path]:
    """Return the former databases in a data directory."""
    return sorted(folder.glob("before-*/*.sqlite"))


def _read_counts(pairs: Sequence[tuple[str, int]]) -> tuple[int, ...]:
    numbers = dict(pairs)
    return tuple(numbers.get(name, 0) for name in _COUNTERS)


def _order_of(path: Path) -> tuple[int, str]:
    """Return the sort key of copies with the same content."""
    try:
        return path.stat().st_mtime_ns, path.name
    except OSError:  # deleted meanwhile
        return 0, path.name


def go_past(store: Store, folder: Path) -> None:
    """Ensure that the next copy is the newest in a folder, even after a restore or with a new database.

    The counter of operations continues after that of the newest copy, leaving a gap.
    """
    newest = max((_read_counts(marks_of(path)) for path in list_copies(folder)), default=())
    if not newest:
        return

    def write(transaction: Transaction) -> None:
        connection = transaction.connection
        if _read_counts(marks(connection)) < newest:
            connection.execute("DELETE FROM sqlite_sequence WHERE name = 'operations'")
            connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('operations', ?)", (newest[0] + 1,))

    store.write(write, over_limit=True).result()


def check_not_emptied(file: Path) -> None:
    """Raise `StorageFailed` for a database of 0 bytes that has copies, since it must have had content."""
    if file.is_file() and not file.stat().st_size and list_copies(file.parent / FOLDER):
        raise StorageFailed(
            f"The database {file} has 0 bytes, and there are copies: `memctl restore latest` takes the latest one. "
            "To start with an empty database, delete the file."
        )


def check_room(store: Store, folder: Path) -> None:
    """Raise `StorageFailed` if there is no room for a copy in a folder."""
    space, size = os.statvfs(folder), store.size_bytes()
    if space.f_bavail * space.f_frsize < _ROOM * size:
        raise StorageFailed(f"There is no room for a copy of the database ({size / 1e6:.0f} MB) in {folder}.")


def copy(store: Store, target: Path, check: Callable[[], None]) -> CopyContent:
    """Write a checked copy to `target` with mode 0600; `check` may raise to cancel."""
    for _ in hold(store):
        check()
    try:
        return copy_held(store, target, check)
    finally:
        store.copying.release()


def hold(store: Store) -> Iterator[None]:
    """Acquire `copying`, waiting for a running copy or erasure; the caller releases it.

    Yields while waiting, so that a call gives up its thread, which the running copy may need.
    """
    while not store.copying.acquire(timeout=_LOOK_S):
        yield


def copy_held(
    store: Store, target: Path, check: Callable[[], None], report: Callable[[int, int], None] = lambda done, total: None
) -> CopyContent:
    """Write a copy after `hold`; `report` is called with the numbers of pages done and in total."""
    known_projects.note(store)
    part = _make_part(target)
    _remove_abandoned(part)
    try:
        return _write(store, part, target, check, report)
    except (OSError, apsw.Error) as error:
        raise StorageFailed(f"The copy {target} cannot be written: {error}.") from None
    finally:
        part.unlink(missing_ok=True)


def _write(
    store: Store, part: Path, target: Path, check: Callable[[], None], report: Callable[[int, int], None]
) -> CopyContent:
    """Write a copy to the file `part`, check it, and rename it to `target`."""
    with closing(open_reader(store.path)) as source, closing(open_plain(part)) as copied:
        source.execute("BEGIN")  # one snapshot, so that writes do not restart the backup
        expected = _read_content(source)
        with copied.backup("main", source, "main") as backup:
            while not backup.done:
                check()
                backup.step(_PAGES)
                report(backup.page_count - backup.remaining, backup.page_count)
                time.sleep(0)
        copied.pragma("journal_mode", "delete")
        faults = find_faults(copied, check)
        if not faults and _read_content(copied) != expected:
            faults = ["its content differs from the database"]
        if faults:
            raise StorageFailed(
                f"The copy {target} was not kept, as it is damaged: {faults[0]}. Look at the database: memctl verify"
            )
    sync(part)
    part.rename(target)
    sync(target.parent)
    return CopyContent(*expected, target.stat().st_size)


def _make_part(target: Path) -> Path:
    """Create a private temporary file in the folder of `target`; it is left there only if the process is killed."""
    try:
        file, name = tempfile.mkstemp(suffix=_UNFINISHED[1], prefix=_UNFINISHED[0], dir=target.parent)
    except OSError as error:
        raise StorageFailed(f"The copy {target} cannot be written: {error}.") from None
    os.close(file)
    return Path(name)


def _remove_abandoned(part: Path) -> None:
    """Delete unfinished copies in the folder of `part` that are a day older than it."""
    begun_at = part.stat().st_mtime
    for path in part.parent.glob("*".join(_UNFINISHED)):
        with suppress(FileNotFoundError):
            if begun_at - path.stat().st_mtime > _ABANDONED_S:
                path.unlink()


def open_plain(path: Path, flags: int = apsw.SQLITE_OPEN_READWRITE) -> apsw.Connection:
    """Open a database file that is not the daemon's own."""
    connection = apsw.Connection(str(path), flags=flags)
    connection.set_busy_timeout(10_000)
    return connection


def fold_log(path: Path) -> None:
    """Fold the log left by a killed daemon into its file; raise an error of apsw if that fails."""
    with closing(open_plain(path)) as connection:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # rolls back uncommitted writes
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


def read_counts(connection: apsw.Connection) -> tuple[int, int, int]:
    """Return the numbers of memories, of turns in L0, and of chunks of files."""
    parts: Any = connection.execute(_PARTS, (DOCUMENTS,)).get
    counts: Any = connection.execute("SELECT (SELECT count(*) FROM memories), (SELECT count(*) FROM turns)").get
    return int(counts[0]) - int(parts), int(counts[1]), int(parts)


def _read_content(connection: apsw.Connection) -> tuple[int, int, int, str | None]:
    """Return the numbers of memories, turns and chunks of files, and the latest operation."""
    return *read_counts(connection), _read_latest(connection)


def _read_latest(connection: apsw.Connection) -> str | None:
    id = connection.execute("SELECT id FROM operations ORDER BY number DESC LIMIT 1").get
    return id if isinstance(id, str) else None


def find_faults(connection: apsw.Connection, check: Callable[[], None] = lambda: None) -> list[str]:
    """Return the results of SQLite's integrity check; `check` may raise to cancel."""

    def keep_going() -> bool:
        check()
        return False

    connection.pragma("cache_size", CHECKING_CACHE)
    connection.set_progress_handler(keep_going, _PROGRESS_STEPS)
    try:
        lines = [" ".join(str(line).split()) for (line,) in connection.execute("PRAGMA integrity_check(10)")]
    except (apsw.CorruptError, apsw.NotADBError) as error:
        lines = [str(error)]
    finally:
        connection.set_progress_handler(None)
    return [] if lines == ["ok"] else lines


class ListedCopy(msgspec.Struct):
    """A copy or a former database; `made_at` is the date in its name, null if unknown like other unreadable fields."""

    name: str
    path: str
    size_bytes: int
    former: bool
    made_at: float | None = None
    memories: int | None = None
    operation: str | None = None


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the copies and the former databases of a data directory; return the exit code."""
    folder = Path(*(sys.argv[1:] if arguments is None else arguments)).absolute()
    copies = [_describe(path, path.name, False) for path in list_copies(folder / FOLDER)]
    former = [_describe(path, path.parent.name, True) for path in list_former(folder)]
    former.sort(key=lambda one: one.made_at or 0.0)
    sys.stdout.buffer.write(msgspec.json.encode(copies + former) + b"\n")
    return 0


def _describe(path: Path, name: str, former: bool) -> ListedCopy:
    memories, _, _, operation = read_copy(path, _read_content) or (None, 0, 0, None)
    return ListedCopy(name, str(path), path.stat().st_size, former, _read_date(name), memories, operation)


def _read_date(name: str) -> float | None:
    if date := re.search(r"\d{8}T\d{6}Z", name):
        with suppress(ValueError):  # a name that memoryd did not give
            return datetime.strptime(date[0], _DATE).replace(tzinfo=UTC).timestamp()
    return None


if __name__ == "__main__":
    sys.exit(main())

"""Copies of the database: taken while it is written to, checked before they get their name, ordered by what they hold.

A copy is one file without a log. It is made in one snapshot, so it holds every write that was acknowledged before it
began, and no half of any. The numbers of their latest operations say which of two copies is newer: the dates in their
names and of their files come from a clock that may have been wrong.

The name says who made a copy: the job `backup` makes `memoryd-…` and deletes the oldest of these; `kept-…` was asked
for, and stays until somebody deletes it.

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
BY_JOB, KEPT = "memoryd-", "kept-"  # how the names of copies begin
_UNFINISHED = "memoryd-", ".part"  # how the name of a copy begins and ends while it is written
_PAGES = 256
_LOOK_S = 0.02
_DATE = "%Y%m%dT%H%M%SZ"  # in the names of copies, and of the folders of former databases
_ABANDONED_S = 86400.0  # age of a file that a kill left unfinished, when the next copy removes it
_ROOM = 1.2  # times the size of the database that must be free for a copy
_PROGRESS_STEPS = 50_000  # of SQLite's virtual machine between two looks at whether to give up
LOGS = ("-wal", "-shm", "-journal")  # what SQLite keeps beside a database that was not closed
_PARTS = "SELECT count(*) FROM memories WHERE tier = ?"
_COUNTERS = ("operations", "turns", "skipped")  # each grows with every row; the first that differs decides


class CopyContent(NamedTuple):
    """What a copy holds."""

    memories: int
    turns: int
    parts: int  # of files
    operation: str | None  # the latest
    size_bytes: int


def name_at(now: float, beginning: str = BY_JOB) -> str:
    """Return the name of a copy made at a time."""
    return f"{beginning}{datetime.fromtimestamp(now, UTC):{_DATE}}.sqlite"


def free_name(folder: Path, now: float) -> str:
    """Return a free name for a copy made at a time: of soon after if that is taken, since clocks are set back."""
    while (folder / name_at(now)).exists():
        now += 1.0
    return name_at(now)


def list_copies(folder: Path) -> list[Path]:
    """Return the copies in a folder, the one with the oldest content first; one that cannot be read is the oldest."""
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
    """Return what orders copies of the same content."""
    try:
        return path.stat().st_mtime_ns, path.name
    except OSError:  # deleted meanwhile
        return 0, path.name


def go_past(store: Store, folder: Path) -> None:
    """Make the next copy of the database the newest in a folder, also after a restore, or where the database is new.

    For that its operations are counted on from those of the newest copy: numbers in between are left out.
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
    """Raise `StorageFailed` for a database of 0 bytes that has copies: it was not always empty."""
    if file.is_file() and not file.stat().st_size and list_copies(file.parent / FOLDER):
        raise StorageFailed(
            f"The database {file} has 0 bytes, and there are copies: `memctl restore latest` takes the latest one. "
            "To begin anew delete the file."
        )


def check_room(store: Store, folder: Path) -> None:
    """Raise `StorageFailed` when there is no room for a copy in a folder."""
    space, size = os.statvfs(folder), store.size_bytes()
    if space.f_bavail * space.f_frsize < _ROOM * size:
        raise StorageFailed(f"There is no room for a copy of the database ({size / 1e6:.0f} MB) in {folder}.")


def copy(store: Store, target: Path, check: Callable[[], None]) -> CopyContent:
    """Write a checked copy to `target`, mode 0600; `check` may raise to give up."""
    for _ in hold(store):
        check()
    try:
        return copy_held(store, target, check)
    finally:
        store.copying.release()


def hold(store: Store) -> Iterator[None]:
    """Wait, a moment at a time, for a copy or an erase under way; none begins until `copying` is released.

    A call on a lane yields its thread meanwhile: the copy that it waits for may need it.
    """
    while not store.copying.acquire(timeout=_LOOK_S):
        yield


def copy_held(
    store: Store, target: Path, check: Callable[[], None], tell: Callable[[int, int], None] = lambda done, total: None
) -> CopyContent:
    """Write a copy as `copy` does, after `hold`; `tell` hears of pages done."""
    known_projects.note(store)
    part = _make_part(target)
    _remove_abandoned(part)
    try:
        return _write(store, part, target, check, tell)
    except (OSError, apsw.Error) as error:
        raise StorageFailed(f"The copy {target} cannot be written: {error}.") from None
    finally:
        part.unlink(missing_ok=True)


def _write(
    store: Store, part: Path, target: Path, check: Callable[[], None], tell: Callable[[int, int], None]
) -> CopyContent:
    """Write a checked copy to the file `part` and give it its name."""
    with closing(open_reader(store.path)) as source, closing(open_plain(part)) as copied:
        source.execute("BEGIN")  # one snapshot: the copy never starts again
        expected = _read_content(source)
        with copied.backup("main", source, "main") as backup:
            while not backup.done:
                check()
                backup.step(_PAGES)
                tell(backup.page_count - backup.remaining, backup.page_count)
                time.sleep(0)
        copied.pragma("journal_mode", "delete")
        faults = find_faults(copied, check)
        if not faults and _read_content(copied) != expected:
            faults = ["it does not hold what the database holds"]
        if faults:
            raise StorageFailed(
                f"The copy {target} was not kept, as it is damaged: {faults[0]}. Look at the database: memctl verify"
            )
    sync(part)
    part.rename(target)
    sync(target.parent)
    return CopyContent(*expected, target.stat().st_size)


def _make_part(target: Path) -> Path:
    """Make a private file beside `target`, of a name that no other file has; only a kill leaves it there."""
    try:
        file, name = tempfile.mkstemp(suffix=_UNFINISHED[1], prefix=_UNFINISHED[0], dir=target.parent)
    except OSError as error:
        raise StorageFailed(f"The copy {target} cannot be written: {error}.") from None
    os.close(file)
    return Path(name)


def _remove_abandoned(part: Path) -> None:
    """Delete unfinished copies beside `part` that are a day older than it."""
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
    """Fold the log of a daemon that was killed into its file; raise an error of apsw if that fails."""
    with closing(open_plain(path)) as connection:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # what was not committed is rolled back
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


def read_counts(connection: apsw.Connection) -> tuple[int, int, int]:
    """Return how many memories there are, how many turns in L0, and how many parts of files."""
    parts: Any = connection.execute(_PARTS, (DOCUMENTS,)).get
    counts: Any = connection.execute("SELECT (SELECT count(*) FROM memories), (SELECT count(*) FROM turns)").get
    return int(counts[0]) - int(parts), int(counts[1]), int(parts)


def _read_content(connection: apsw.Connection) -> tuple[int, int, int, str | None]:
    """Return how many memories, turns and parts of files there are, and the latest operation."""
    return *read_counts(connection), _read_latest(connection)


def _read_latest(connection: apsw.Connection) -> str | None:
    id = connection.execute("SELECT id FROM operations ORDER BY number DESC LIMIT 1").get
    return id if isinstance(id, str) else None


def find_faults(connection: apsw.Connection, check: Callable[[], None] = lambda: None) -> list[str]:
    """Return what SQLite finds wrong with a file; `check` may raise to give up."""

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
    """A copy or a former database; `made_at` is the date in its name, what could not be read of it is null."""

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
        with suppress(ValueError):  # somebody else gave it that name
            return datetime.strptime(date[0], _DATE).replace(tzinfo=UTC).timestamp()
    return None


if __name__ == "__main__":
    sys.exit(main())

"""Writing a database again into pages of another size, before it is opened: what an upgrade of an old file needs once.

The new file is written beside the former one, table by table in the order of their keys, a batch in a transaction: one
that is killed continues at the next start where it was. It gets the name of the former file once SQLite finds nothing
wrong with it and each of its rows equals that of the former. Until then the former file is not touched, but for its
log, which is folded into it. Room for both files is needed; where there is not, the database keeps its pages.
"""

import logging
import math
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from memoryd.client.errors import StorageFailed
from memoryd.daemon.store.connection import PAGE_BYTES
from memoryd.daemon.system import notify
from memoryd.daemon.system.process import sync

LAST_SMALL = 4  # the last schema whose new databases had pages of 4,096 bytes
_FOLDER = "upgrade.part"
_SOURCE = "source"  # file in it: which state of the former file it is written from
_BATCH = 500  # rows of a transaction
_ROOM = 1.1  # times the size of the file that must be free
_STEPS = 1_000_000  # of SQLite's machine between two signs of life
_TELL_S = 5.0
_CACHE_KIB = 65_536  # unique indexes are filled in no order
_IS_DONE = "SELECT 1 FROM main.upgrade_done WHERE step = ?"
_DONE = "INSERT INTO main.upgrade_done VALUES (?)"
_SIZES = (4096, 8192, 16384)
_HEAD_BYTES = 50  # of a row with a vector, beside that

Tell = Callable[[str], None]

log = logging.getLogger(__name__)


class _Table(NamedTuple):
    """A table with rows of its own, its columns, and the one that holds the row number; empty: none does."""

    name: str
    columns: tuple[str, ...]
    number: str


def renew(path: Path, tell: Tell | None = None) -> bool:
    """Write an old database again into pages that its vectors fill; return whether that was done.

    `tell` gets a sentence on each batch, and an empty one while SQLite is at work. Raise nothing for a damaged or
    foreign file.
    """
    part = path.parent / _FOLDER
    try:
        wanted = _choose_size(path)
        if wanted and _has_room(path, part):
            _fold_log(path)
            _write(path, part, wanted, tell or _Report().say)
            return True
    except (apsw.NotADBError, apsw.CorruptError):
        pass  # whoever opens it reports that
    except (apsw.Error, OSError, StorageFailed) as error:
        log.warning("the database keeps its pages, it could not be written again: %s", error)
    shutil.rmtree(part, ignore_errors=True)
    return False


def best_size(dimensions: int) -> int:
    """Return the smallest pages in which vectors take at most a tenth more than in the best ones."""
    costs = {size: _row_cost(4 * dimensions + _HEAD_BYTES, size) for size in _SIZES}
    return next(size for size in _SIZES if costs[size] <= 1.1 * min(costs.values()))


def _row_cost(row: int, size: int) -> float:
    """Return the bytes that a row takes in pages of a size; about an eighth of a larger one is in the tree."""
    return size / (size // row) if row < size else size / 8 + size * math.ceil((row - size / 8) / size)


def _choose_size(path: Path) -> int:
    """Return the size of pages that a file of an old schema is to get, 0 when it keeps its own."""
    if not path.is_file() or not path.stat().st_size:
        return 0
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
        version, present = connection.pragma("user_version"), connection.pragma("page_size")
        if not isinstance(version, int) or not 1 <= version <= LAST_SMALL:
            return 0
        used = "SELECT m.dimensions FROM models m JOIN settings s ON s.name = 'model' AND s.value = m.name"
        dimensions = connection.execute(used).get
        wanted = best_size(dimensions) if isinstance(dimensions, int) else PAGE_BYTES
        return 0 if wanted == present else wanted


def _has_room(path: Path, part: Path) -> bool:
    space, done = os.statvfs(path.parent), part / path.name
    needed = _ROOM * path.stat().st_size - (done.stat().st_size if done.exists() else 0)
    if space.f_bavail * space.f_frsize >= needed:
        return True
    log.warning("the database keeps its pages: there is no room to write it again (%.0f MB)", needed / 1e6)
    return False


def _fold_log(path: Path) -> None:
    """Fold the log of a daemon that was killed into its file, so that the file alone is the database."""
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    if path.with_name(path.name + "-wal").exists():
        raise StorageFailed("its log cannot be folded in; another process has it open")


def _write(path: Path, part: Path, size: int, tell: Tell) -> None:
    target = _begin(path, part)
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI
    with closing(apsw.Connection(str(target), flags=flags)) as connection:
        connection.pragma("page_size", size)
        connection.pragma("journal_mode", "wal")
        connection.pragma("synchronous", "normal")
        connection.pragma("cache_size", -_CACHE_KIB)
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        connection.set_progress_handler(partial(_continue, tell), _STEPS)
        connection.execute("ATTACH ? AS former", (path.absolute().as_uri() + "?immutable=1",))
        _copy(connection, tell)
        _check(connection, tell)
        version = connection.execute("PRAGMA former.user_version").get
        connection.execute("DETACH former")
        connection.pragma("user_version", version)
        connection.pragma("journal_mode", "delete")
    sync(target)
    target.replace(path)  # the new file gets the name of the former
    sync(path.parent)
    shutil.rmtree(part, ignore_errors=True)


def _continue(tell: Tell) -> bool:
    """Report while SQLite is at work; False lets it continue."""
    tell("")
    return False


def _begin(path: Path, part: Path) -> Path:
    """Return the file to write, as far as it is written already if the former file is what it was then."""
    found = path.stat()
    state = f"{found.st_ino} {found.st_size} {found.st_mtime_ns}"
    noted = part / _SOURCE
    if not noted.is_file() or noted.read_text() != state:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(mode=0o700)
        os.close(os.open(part / path.name, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        noted.write_text(state)
    return part / path.name


# The rows ------------------------------------------------------------------------------------------------------------


def _copy(connection: apsw.Connection, tell: Tell) -> None:
    """Write what is not written yet: tables, their rows, then the indexes and triggers."""
    if connection.execute("SELECT count(*) FROM main.sqlite_schema").get == 0:
        with connection:
            _make_tables(connection)
    connection.execute("CREATE TABLE IF NOT EXISTS main.upgrade_done (step TEXT PRIMARY KEY) WITHOUT ROWID")
    for table in _list_tables(connection):
        for done in _copy_rows(connection, table):
            tell(f"{table.name}: {done} rows")
    rest = (
        "SELECT sql, name FROM former.sqlite_schema f WHERE sql IS NOT NULL AND type <> 'table'"
        " AND NOT EXISTS (SELECT 1 FROM main.sqlite_schema m WHERE m.name = f.name) ORDER BY type, rowid"
    )
    for sql, name in connection.execute(rest).fetchall():
        connection.execute(str(sql))
        tell(f"{name}")


def _make_tables(connection: apsw.Connection) -> None:
    made = (
        "SELECT sql FROM former.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        " AND name NOT IN (SELECT name FROM pragma_table_list WHERE schema = 'former' AND type = 'shadow')"
        " ORDER BY rowid"
    )
    for (sql,) in connection.execute(made).fetchall():
        connection.execute(str(sql))
    for table in _list_tables(connection):  # full text begins with rows of its own
        connection.execute(f"DELETE FROM main.{table.name}")


def _list_tables(connection: apsw.Connection) -> list[_Table]:
    """Return the tables that have rows of their own in the former file, those of full text included."""
    found: Any = connection.execute(
        "SELECT name, wr FROM pragma_table_list WHERE schema = 'former' AND type IN ('table', 'shadow')"
        " AND name NOT IN ('sqlite_schema', 'sqlite_temp_schema') ORDER BY name LIKE 'sqlite%', name"
    ).fetchall()
    listed = "SELECT '\"' || name || '\"', iif(pk, type, '') FROM pragma_table_info(?, 'former') ORDER BY cid"
    tables = []
    for name, without_rowid in found:
        columns: Any = connection.execute(listed, (name,)).fetchall()
        keys = [(column, type) for column, type in columns if type]
        number = keys[0][0] if len(keys) == 1 and keys[0][1] == "INTEGER" and not without_rowid else ""
        tables.append(_Table(name, tuple(column for column, _ in columns), number))
    return tables


def _copy_rows(connection: apsw.Connection, table: _Table) -> Iterator[int]:
    """Copy the rows of a table that are not there yet; yield after each transaction up to which row number."""
    columns = ", ".join(table.columns)
    insert = f"INSERT INTO main.{table.name} ({columns}) SELECT {columns} FROM former.{table.name}"
    if not table.number:  # of small rows: in one transaction
        if connection.execute(_IS_DONE, (table.name,)).get is None:
            with connection:
                connection.execute(f"DELETE FROM main.{table.name}")
                connection.execute(insert)
                if table.name != "sqlite_sequence":  # it changes with the others, so it is copied whenever they are
                    connection.execute(_DONE, (table.name,))
        yield 0
        return
    last = f"SELECT coalesce(max({table.number}), -9223372036854775808) FROM main.{table.name}"
    insert += f" WHERE {table.number} > ({last}) ORDER BY {table.number} LIMIT {_BATCH}"
    changed = _BATCH
    while changed == _BATCH:
        with connection:
            connection.execute(insert)
            changed = connection.changes()
        yield max(0, connection.execute(last).get)


# The check -----------------------------------------------------------------------------------------------------------


def _check(connection: apsw.Connection, tell: Tell) -> None:
    """Compare the two files; raise `StorageFailed` where they differ."""
    for table in _list_tables(connection):
        compared = f"{table.name}: compared"
        tell(compared)
        if connection.execute(_IS_DONE, (compared,)).get is None:
            if _is_different(connection, table):
                raise StorageFailed(f"the rows of {table.name} are not those of the former file")
            connection.execute(_DONE, (compared,))
    objects = "SELECT type, name, sql FROM {}.sqlite_schema WHERE name <> 'upgrade_done'"
    if connection.execute(f"{objects.format('former')} EXCEPT {objects.format('main')}").fetchall():
        raise StorageFailed("its schema is not that of the former file")
    connection.execute("DROP TABLE IF EXISTS main.upgrade_done")
    lines = [str(line) for (line,) in connection.execute("PRAGMA main.integrity_check(10)")]
    if lines != ["ok"]:
        raise StorageFailed(f"the new file is damaged: {lines[0]}")


def _is_different(connection: apsw.Connection, table: _Table) -> bool:
    count = f"SELECT (SELECT count(*) FROM main.{table.name}) <> (SELECT count(*) FROM former.{table.name})"
    if connection.execute(count).get:
        return True
    if not table.number:
        both = (f"SELECT {', '.join(table.columns)} FROM {schema}.{table.name}" for schema in ("former", "main"))
        return connection.execute(" EXCEPT ".join(both)).fetchone() is not None
    former, written = (", ".join(f"{alias}.{column}" for column in table.columns) for alias in ("f", "w"))
    different = (
        f"SELECT 1 FROM former.{table.name} f LEFT JOIN main.{table.name} w ON w.{table.number} = f.{table.number}"
        f" WHERE ({former}) IS NOT ({written}) LIMIT 1"
    )
    return connection.execute(different).get is not None


class _Report:
    """Says in the log, and to systemd, how far it got."""

    def __init__(self) -> None:
        self._next, self._done = 0.0, "begun"

    def say(self, done: str) -> None:
        """Report once in a while; systemd waits for the start as long as it hears of it."""
        self._done = done or self._done
        if (now := time.monotonic()) >= self._next:
            self._next = now + _TELL_S
            log.info("writing the database into larger pages: %s", self._done)
            notify.notify_systemd(
                f"EXTEND_TIMEOUT_USEC=60000000\nSTATUS=writing the database into larger pages: {self._done}"
            )

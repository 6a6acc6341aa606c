"""Rebuild, merge and check FTS5's index of words."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw

from memoryd.daemon.store.connection import open_reader

_USERMERGE = 4  # FTS5's default: `merge` starts when a level has this many segments
_TABLES = tuple(f"memories_fts_{part}" for part in ("data", "idx", "docsize", "config"))  # of FTS5's index


class stopping_at:
    """Interrupt statements of a connection once the monotonic clock passes a deadline."""

    def __init__(self, connection: apsw.Connection, deadline: float | None) -> None:
        self._connection, self._deadline = connection, deadline

    def __enter__(self) -> None:
        if (deadline := self._deadline) is not None:
            self._connection.set_progress_handler(lambda: time.monotonic() > deadline, 5000)

    def __exit__(self, *_: object) -> None:
        if self._deadline is not None:
            self._connection.set_progress_handler(None)


def rebuild(connection: apsw.Connection) -> None:
    """Rebuild the index from the rows."""
    connection.execute("INSERT INTO memories_fts (memories_fts) VALUES ('rebuild')")


def merge_all(connection: apsw.Connection, pages: int, is_first: bool) -> bool:
    """Continue to merge the index into one segment without words of deleted rows; return whether more is to be done.

    FTS5 records the words of a deleted row in a new segment, and drops both only when it writes the last level of its
    index. If empty levels follow, it writes them out again; in that case the index is rebuilt from the rows.
    """
    command = "INSERT INTO memories_fts (memories_fts, rank) VALUES (?, ?)"
    connection.execute(command, ("usermerge", 2))  # else it would wait for more segments if others wrote some meanwhile
    connection.execute(command, ("merge", -pages if is_first else pages))
    connection.execute(command, ("usermerge", _USERMERGE))
    levels = _read_levels(connection)
    if any(merging for merging, _ in levels):
        return True
    if any(segments for _, segments in levels) and levels[-1][1] != 1:
        rebuild(connection)
    return False


def count_mergeable(connection: apsw.Connection) -> int:
    """Return how many segments `merge` would merge; each word is looked up in each segment."""
    return sum(segments for merging, segments in _read_levels(connection) if merging or segments >= _USERMERGE)


def _read_levels(connection: apsw.Connection) -> list[tuple[int, int]]:
    """Return for each level of the index how many segments are being merged, and how many it has.

    The format is that of `fts5StructureDecode` in SQLite's fts5_index.c.
    """
    block: Any = connection.execute("SELECT block FROM memories_fts_data WHERE id = 10").get
    numbers = _read_numbers(block[4:])  # after the number of the configuration
    level_count, _, _ = next(numbers), next(numbers), next(numbers)
    levels = []
    for _ in range(level_count):
        merging, segments = next(numbers), next(numbers)
        for _ in range(segments * 3):  # number, first and last page of each
            next(numbers)
        levels.append((merging, segments))
    return levels


def _read_numbers(data: bytes) -> Iterator[int]:
    """Yield numbers of SQLite's variable length that are less than 2^56."""
    number = 0
    for byte in data:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            yield number
            number = 0


def find_problems(path: Path) -> list[str]:
    """Return the problems that FTS5's own check against the rows finds in a database.

    SQLite treats that check as a write, which would block all others. So it is run on a copy of the index in temporary
    tables, made in the same snapshot as the rows.
    """
    with closing(open_reader(path)) as connection:
        try:
            connection.pragma("query_only", False)
            connection.pragma("temp_store", "file")
            connection.execute("BEGIN")
            sql: Any = connection.execute("SELECT sql FROM main.sqlite_schema WHERE name = 'memories_fts'").get
            connection.execute("CREATE TEMP VIEW memories AS SELECT * FROM main.memories")
            connection.execute(sql.replace("memories_fts", "temp.memories_fts", 1))
            for table in _TABLES:
                connection.execute(f"DELETE FROM temp.{table}; INSERT INTO temp.{table} SELECT * FROM main.{table}")
            connection.execute("INSERT INTO temp.memories_fts (memories_fts, rank) VALUES ('integrity-check', 1)")
        except apsw.Error as error:
            return [f"full text: {error}"]
    return []

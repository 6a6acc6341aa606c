"""The limit of the database's size, and what is said where nothing more fits.

At the limit itself calls that grow the database are refused before they run, turns a little earlier. SQLite's own
limit is above it: upkeep and background work need room, and what removes has none, since it writes history before it
frees anything.
"""

from datetime import UTC, datetime
from typing import Any

import apsw

from memoryd.client.errors import StorageFull

TURNS_SHARE = 0.95  # of the limit from which turns are refused, so that what is added on purpose still has room
PLENTY_SHARE = 0.5  # of the limit below which nobody asks what is still to be made of turns
COMING_BYTES = 4096  # of a turn that was taken in: its vectors, its history, its place in full text
LOW = 0.5  # importance below which turns are proposed for removal
_PROPOSED = 0.25  # of these turns, the oldest
_SPARE_BYTES = 16 * 1024 * 1024  # beyond a small limit
_MOST_PAGES = 4_294_967_294  # that SQLite can count


def max_pages(limit_bytes: int, page_bytes: int) -> int:
    """Return the pages that a file of a limited size may have at the very most, 0 for any number."""
    return max((limit_bytes + max(limit_bytes // 10, _SPARE_BYTES)) // page_bytes, 1) if limit_bytes else 0


def let_grow(connection: apsw.Connection, pages: int) -> None:
    """Let the file grow to no more than so many pages, 0: as far as the disk has room. What it has already it keeps."""
    connection.pragma("max_page_count", pages or _MOST_PAGES)


def limit_error(limit_bytes: int, used_bytes: int, advice: str = "") -> StorageFull:
    """Return the error for what would grow a database at its limit; `advice` is what `suggest_removal` says."""
    return StorageFull(
        f"The database has reached its limit of {limit_bytes / 1e6:.0f} MB and takes in nothing more."
        f" Raise `max_size_mb` in [storage], or delete memories and shorten `history_days` in [jobs]{advice}.",
        {"limit_bytes": limit_bytes, "used_bytes": used_bytes},
    )


def turns_error(limit_bytes: int, used_bytes: int, advice: str) -> StorageFull:
    """Return the error for turns where only what is added on purpose has room."""
    return StorageFull(
        f"The database has nearly reached its limit of {limit_bytes / 1e6:.0f} MB and takes in no more turns; `add`"
        f" still works. Raise `max_size_mb` in [storage]{advice}.",
        {"limit_bytes": limit_bytes, "used_bytes": used_bytes},
    )


def suggest_removal(connection: apsw.Connection) -> str:
    """Return the command that removes the oldest turns of low importance, empty where there are none.

    It reads all memories, so it is not for each call that is refused.
    """
    low = f"FROM memories WHERE turns > 0 AND NOT pinned AND importance < {LOW}"
    number: Any = connection.execute(f"SELECT count(*) {low}").get
    sql = f"SELECT created_at {low} ORDER BY created_at LIMIT 1 OFFSET ?"
    at: Any = connection.execute(sql, (int(number * _PROPOSED),)).get
    if at is None:
        return ""
    day = datetime.fromtimestamp(at + 86400, UTC).date().isoformat()
    command = f"memctl erase --type turn --where 'memory.importance<{LOW}' --before {day}"
    return f", or remove the oldest of low importance: {command}"

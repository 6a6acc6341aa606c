"""Whether SQLite could read all of the write-ahead log of a daemon that was killed.

It reads the log up to the first frame with a wrong checksum, and drops the rest without a word, as it does with a log
that is gone. But its index of the log (`-shm`), which survives a kill, says how many frames were committed. SQLite
makes it anew when a database is opened, so it is read before that. After a loss of power it may say less, never more.
"""

import struct
from pathlib import Path
from typing import Any

import apsw

from memoryd.client.times import iso

_HEADER_BYTES = 48  # of the index, which has it twice: `WalIndexHdr` in SQLite's wal.c
_IS_MADE, _FRAMES_AT, _SALT, _FOLDED_AT = 12, 16, slice(32, 40), 96
_LOG_SALT = slice(16, 24)
LAST_CHANGE = "SELECT max(at) FROM (SELECT at FROM operations UNION ALL SELECT created_at FROM turns)"


def count_committed(database: Path) -> int:
    """Return how many frames the log must have that are not in the database yet; 0 where nothing is known of that.

    No connection of this process may have the database open: closing the file releases the locks on it (POSIX).
    """
    index, log = _read_beginning(database, "-shm"), _read_beginning(database, "-wal")
    first, second = index[:_HEADER_BYTES], index[_HEADER_BYTES : 2 * _HEADER_BYTES]
    if len(index) <= _FOLDED_AT or first != second or not first[_IS_MADE]:
        return 0  # there is none, or it was being written
    if log and log[_LOG_SALT] != first[_SALT]:
        return 0  # the log was begun anew since, or its own header is damaged
    frames, folded = _read_number(index, _FRAMES_AT), _read_number(index, _FOLDED_AT)
    return frames if folded < frames else 0


def count_read(connection: apsw.Connection) -> int:
    """Return how many frames SQLite found in the log."""
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # opens the log
    checkpoint: Any = connection.execute("PRAGMA wal_checkpoint(NOOP)").fetchone()
    return int(checkpoint[1])


def describe_loss(connection: apsw.Connection) -> str:
    """Return what is lost as a sentence."""
    last: Any = connection.execute(LAST_CHANGE).get
    after = f"what was stored after {iso(last)}" if last else "what was stored last"
    return f"the write-ahead log was damaged or deleted while no daemon ran: {after} is lost"


def _read_beginning(database: Path, suffix: str) -> bytes:
    try:
        with database.with_name(f"{database.name}{suffix}").open("rb") as file:
            return file.read(_FOLDED_AT + 4)
    except OSError:
        return b""


def _read_number(index: bytes, at: int) -> int:
    return int(struct.unpack_from("=I", index, at)[0])

"""The codes of the vector index, on disk while no daemon runs, so that a start need not compute them again.

A daemon writes them after it has closed its database. The next daemon reads and deletes the file before it opens the
database, so no outdated file can remain. The file is not used if it was written for another database file (by size,
modification time, inode and schema) or if there is a write-ahead log.
"""

import logging
import os
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from zipfile import BadZipFile

import msgspec
import numpy as np
from numpy.typing import NDArray

from memoryd.daemon.store.schema import VERSION

_NAME = "memoryd.codes"
_FORMAT = 1
UNREADABLE = (OSError, ValueError, KeyError, EOFError, BadZipFile)

log = logging.getLogger(__name__)


class CodesHeader(msgspec.Struct):
    """The database and the model to which the codes belong."""

    database: list[int]
    fingerprint: str  # of the model
    model: int  # its number
    pending: list[int]  # rows without a vector
    format: int = _FORMAT
    schema: int = VERSION


class LoadedCodes(NamedTuple):
    """Codes that were read from the file."""

    header: CodesHeader
    arrays: Any  # by name; each is read on demand
    file: BinaryIO


def read_identity(path: Path) -> list[int]:
    """Return values of a closed database file of which one changes whenever the file is changed."""
    facts = path.stat()
    return [facts.st_size, facts.st_mtime_ns, facts.st_ino]


def write(path: Path, header: CodesHeader, arrays: dict[str, NDArray[Any]]) -> None:
    """Write the codes for a closed database; raise OSError."""
    part = path.with_name(f"{_NAME}.part")
    try:
        with open(os.open(part, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600), "wb") as file:
            np.savez(file, header=np.frombuffer(msgspec.json.encode(header), np.uint8), **arrays)  # type: ignore[arg-type]
        part.rename(path.with_name(_NAME))
    finally:
        part.unlink(missing_ok=True)


def take(path: Path) -> LoadedCodes | None:
    """Return the codes if they belong to this database, which must not be open yet, and delete their file."""
    place = path.with_name(_NAME)
    with suppress(OSError):
        path.with_name(f"{_NAME}.part").unlink(missing_ok=True)
        if place.exists():
            try:
                return _read(path, place)
            except UNREADABLE as error:
                log.warning("the codes of the former daemon cannot be used: %s", error)
            finally:
                place.unlink()
    return None


def _read(path: Path, place: Path) -> LoadedCodes | None:
    with ExitStack() as unused:
        file = unused.enter_context(place.open("rb"))  # remains readable after the file is deleted
        arrays: Any = np.load(file, allow_pickle=False)
        header = msgspec.json.decode(arrays["header"].tobytes(), type=CodesHeader)
        own = CodesHeader(read_identity(path), header.fingerprint, header.model, header.pending)
        if header == own and not path.with_name(f"{path.name}-wal").exists():
            unused.pop_all()
            return LoadedCodes(header, arrays, file)
    return None

"""The codes of the vector index on disk while no daemon runs, so that a start need not make them again.

A daemon writes them when it has closed its database. The next one reads and deletes the file before it opens the
database, so whatever happens later leaves no file that is out of date. A file is not used when it was written for
another database file (size, time of change, inode, schema), or when there is a write-ahead log.
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
    """Which database the codes belong to."""

    database: list[int]
    fingerprint: str  # of the model
    model: int  # its number
    pending: list[int]  # rows without a vector
    format: int = _FORMAT
    schema: int = VERSION


class LoadedCodes(NamedTuple):
    """Codes that were taken up."""

    header: CodesHeader
    arrays: Any  # by name, each read when it is asked for
    file: BinaryIO


def read_identity(path: Path) -> list[int]:
    """Return what changes whenever a closed database does."""
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
    """Return the codes of a database that is not open yet, if they are its own, and delete their file."""
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
        file = unused.enter_context(place.open("rb"))  # can be read although its name is deleted
        arrays: Any = np.load(file, allow_pickle=False)
        header = msgspec.json.decode(arrays["header"].tobytes(), type=CodesHeader)
        own = CodesHeader(read_identity(path), header.fingerprint, header.model, header.pending)
        if header == own and not path.with_name(f"{path.name}-wal").exists():
            unused.pop_all()
            return LoadedCodes(header, arrays, file)
    return None

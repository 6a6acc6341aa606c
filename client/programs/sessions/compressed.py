"""Read files that a host has compressed with Zstandard, using the module of Python 3.14 or its backport."""

import io
from contextlib import suppress
from importlib import import_module
from typing import Any, BinaryIO, cast

from memoryd.client.errors import Invalid
from memoryd.client.extras import advise


def unpack(file: BinaryIO) -> BinaryIO:
    """Return the uncompressed content as a file, which ends early if the compressed one is damaged or cut."""
    return cast("BinaryIO", io.BufferedReader(_Unpacked(find_zstd().ZstdFile(file), file)))


def find_zstd() -> Any:
    """Return the Zstandard module; raise `Invalid` if there is none."""
    for name in ("compression.zstd", "backports.zstd"):
        with suppress(ImportError):
            return import_module(name)
    raise Invalid(f"compressed sessions are read by a package that is not here; {advise('daemon')}")


class _Unpacked(io.RawIOBase):
    def __init__(self, packed: Any, file: BinaryIO) -> None:
        self._packed, self._file = packed, file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._packed.read1(len(buffer))
        except (EOFError, find_zstd().ZstdError):
            return 0
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._packed.close()
        self._file.close()
        super().close()

"""Files of other programs, changed with care: symlinks followed, mode kept, replaced in one step, copied before.

The copy (`FILE.memoryd.bak`) is the file as it was without our entries, so that they can be taken out without a trace.
"""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from memoryd.client.errors import Conflict, Invalid

_COPY = ".memoryd.bak"
PRIVATE, SHARED = 0o600, 0o644


def read(path: Path) -> bytes | None:
    """Return what is in a file, None where there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Invalid(f"{path} cannot be read: {error.strerror}.") from None


def copy_of(path: Path) -> Path:
    """Return where the copy of a file is: beside the file that is meant, not beside a link to it."""
    real = path.resolve()
    return real.with_name(real.name + _COPY)


def replace(path: Path, former: bytes | None, data: bytes, mode: int = PRIVATE) -> None:
    """Put `data` in place of `former` in one step; a file that was not there gets `mode`.

    Raise `Conflict` when the file is no longer what it was.
    """
    real = path.resolve()
    real.parent.mkdir(mode=0o700 if mode == PRIVATE else 0o755, parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        mode = real.stat().st_mode & 0o7777
    made, name = tempfile.mkstemp(prefix=f".{real.name}.", dir=real.parent)
    try:
        with os.fdopen(made, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(made, mode)
            os.fsync(made)
        if read(real) != former:
            raise Conflict(f"{path} was changed by another program just now; do it again.")
        os.replace(name, real)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name)
        raise


def keep_copy(path: Path, data: bytes | None) -> None:
    """Keep `data` as the copy of a file; None takes the copy away."""
    copy = copy_of(path)
    if data is None:
        copy.unlink(missing_ok=True)
        return
    mode = path.stat().st_mode & 0o7777 if path.exists() else PRIVATE
    replace(copy, read(copy), data, mode)
    os.chmod(copy, mode)


def remove(path: Path) -> None:
    """Delete a file; a link to it stays."""
    path.resolve().unlink(missing_ok=True)

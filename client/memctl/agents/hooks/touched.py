"""Which files the tools of a session wrote since its last answer: one file of paths per session, beside the spool.

Each event of a tool is a process of its own, so what they name has to be on disk until the answer takes it. It is not
synced: after a crash an answer names fewer files, no more is lost.
"""

import os
import time
from collections.abc import Iterable
from contextlib import suppress

from memoryd.client.transport import paths, trust

MOST_FILES, MOST_BYTES = 100, 12_000  # of one answer
_FORGOTTEN_AFTER_S = 7 * 86_400.0
_NAME_CHARS = 200


def note(session: str, files: Iterable[str]) -> None:
    """Note files that a tool of a session wrote; raise `Untrusted` where the folder belongs to another user."""
    named = [path for path in files if _is_path(path)]
    if not session or not named:
        return
    folder = paths.data_folder()
    os.makedirs(folder, mode=0o700, exist_ok=True)
    trust.check_data_folder(folder)
    os.makedirs(_folder(), mode=0o700, exist_ok=True)
    number = os.open(_path(session), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    try:
        os.write(number, "".join(f"{path}\n" for path in named).encode(errors="surrogateescape"))
    finally:
        os.close(number)


def take(session: str) -> list[str]:
    """Return the files that a session wrote since the last time, each once, and forget them."""
    where = _path(session)
    taken = f"{where}.{os.getpid()}"
    try:
        os.rename(where, taken)
        with open(taken, "rb") as file:
            lines = file.read().decode(errors="replace").splitlines()
        os.unlink(taken)
    except OSError:  # there are none
        return []
    found: list[str] = []
    size = 0
    for path in dict.fromkeys(lines):
        size += len(path.encode())
        if len(found) < MOST_FILES and size <= MOST_BYTES and _is_path(path):
            found.append(path)
    return found


def forget_old() -> None:
    """Delete what sessions left that ended without an answer."""
    with suppress(OSError):
        for entry in os.scandir(_folder()):
            if time.time() - entry.stat(follow_symlinks=False).st_mtime > _FORGOTTEN_AFTER_S:
                os.unlink(entry.path)


def _is_path(path: str) -> bool:
    return path.isprintable() and bool(path.strip())


def _folder() -> str:
    return os.path.join(paths.data_folder(), "hooks.files")


def _path(session: str) -> str:
    """Return the file of a session. Its name is no hash: importing one costs three milliseconds."""
    return os.path.join(_folder(), session.encode(errors="replace").hex()[:_NAME_CHARS])

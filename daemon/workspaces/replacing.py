"""Replace a file atomically, so that readers find the old or the new content, even after a crash.

The new content is written to a hidden file in the same folder and synced; then the old file is compared with what was
read, and the new one is renamed over it. If another program has saved meanwhile, the change is applied again to its
version. If the file was changed just before, the rename is delayed, since that program may not have finished. A save
between the comparison and the rename, a fraction of a millisecond, is lost, and so is what a program writes later to
its open descriptor of the old file.

Symbolic links to folders are not followed. Writers in all processes that use this module exclude each other with flock
on the folder.
"""

import errno
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from memoryd.client.errors import Busy, Forbidden, Invalid, NotFound, StorageFailed
from memoryd.client.transport.lock import take

MAX_BYTES = 16 * 1024 * 1024
_ATTEMPTS = 20
_LOCK_LIMIT_S = 10.0
_SETTLED_S = 0.02  # after a change; writing a file takes much less
_EMPTIED_S = 1.0  # after a file was truncated: a program that saves in place starts with that, and may then stall
_STALE_S = 86400.0  # a draft left by a crash is deleted after a day
_PREFIX = ".memoryd-"  # of drafts; hidden, so that scans ignore them
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

Rewrite = Callable[[bytes | None], bytes]  # None: there is no such file


class _ReadFile(NamedTuple):
    """A file that was read."""

    data: bytes
    state: os.stat_result


def change_file(root: Path, relative: str, change: Rewrite, *, create: bool = False) -> bytes:
    """Replace the content of a file below `root` by the result of `change`, and return it; `create` allows a new file.

    `change` may be called more than once; its exceptions propagate. On any error the file is unchanged and no draft is
    left behind.
    """
    with _folder(root, relative, create) as (folder, name, shown), _lock(folder, shown):
        _sweep(folder)
        old = _read(folder, name, shown)
        for _ in range(_ATTEMPTS):
            if old is None and not create:
                raise NotFound(f"{shown} does not exist (any more).", {"path": shown})
            new = change(old.data if old else None)
            if old is not None and new == old.data:
                return new
            draft = _write_draft(folder, new, old.state if old else None)
            try:
                _let_settle(old)
                now = _read(folder, name, shown)
                if (now.data if now else None) == (old.data if old else None):
                    os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
                    os.fsync(folder)
                    return new
            finally:
                _drop(folder, draft)
            old = now
    raise Busy(f"{shown} is being written by another program all the time.", {"retry_after_ms": 1000})


def remove_file(root: Path, relative: str, check: Rewrite) -> None:
    """Delete a file below `root` unless `check`, which is given its content, raises."""
    with _folder(root, relative) as (folder, name, shown), _lock(folder, shown):
        old = _read(folder, name, shown)
        check(old.data if old else None)
        _drop(folder, name)
        os.fsync(folder)


def read_file(root: Path, relative: str) -> bytes:
    """Return the content of a file below `root`; raise an error of memoryd if it cannot be read."""
    with _folder(root, relative) as (folder, name, shown):
        found = _read(folder, name, shown)
    if found is None:
        raise NotFound(f"{shown} does not exist (any more).", {"path": shown})
    return found.data


def _let_settle(old: _ReadFile | None) -> None:
    """If a file was changed just before it was read, wait until some time has passed since."""
    if old is None:
        return
    needed_s = _SETTLED_S if old.data else _EMPTIED_S
    age_s = time.time() - old.state.st_mtime
    if 0 <= age_s < needed_s:
        time.sleep(needed_s - age_s)


@contextmanager
def _folder(root: Path, relative: str, create: bool = False) -> Iterator[tuple[int, str, str]]:
    """Open the folder of a file, from the root down; with `create` make missing folders.

    Yield its descriptor, the file's name in it, and the path for messages. Errors of the system are translated.
    """
    *folders, file = relative.split("/")
    shown = f"{root}/{relative}"
    try:
        current = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for name in folders:
                if create:
                    with suppress(FileExistsError):
                        os.mkdir(name, dir_fd=current)
                        os.fsync(current)
                below = os.open(name, _FOLDER, dir_fd=current)
                os.close(current)
                current = below
            yield current, file, shown
        finally:
            os.close(current)
    except OSError as error:
        raise _translate(shown, error) from None


@contextmanager
def _lock(folder: int, shown: str) -> Iterator[None]:
    """Hold the lock of a folder, if the file system supports locks."""
    try:
        take(folder, _LOCK_LIMIT_S)
    except BlockingIOError:
        raise Busy(f"{shown} is being written by another memoryd.", {"retry_after_ms": 1000}) from None
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
            raise
    yield  # closing the folder releases the lock


def _read(folder: int, name: str, shown: str) -> _ReadFile | None:
    try:
        descriptor = os.open(name, _READ, dir_fd=folder)
    except FileNotFoundError:
        return None
    try:
        state = os.fstat(descriptor)
        if stat.S_ISDIR(state.st_mode):
            raise Invalid(f"{shown} is a folder.")
        if not stat.S_ISREG(state.st_mode):
            raise Invalid(f"{shown} is not a regular file.")
        if state.st_size > MAX_BYTES:
            raise Invalid(f"{shown} has {state.st_size} bytes; files of more than {MAX_BYTES} are left alone.")
        return _ReadFile(_read_bytes(descriptor), state)
    finally:
        os.close(descriptor)


def _read_bytes(descriptor: int) -> bytes:
    os.lseek(descriptor, 0, os.SEEK_SET)
    parts = []
    while part := os.read(descriptor, 1 << 20):
        parts.append(part)
    return b"".join(parts)


def _write_draft(folder: int, data: bytes, like: os.stat_result | None) -> str:
    """Write and sync a hidden file with the mode and owner of another one, and return its name."""
    name = f"{_PREFIX}{secrets.token_hex(8)}.tmp"
    descriptor = os.open(name, _WRITE, 0o666 if like is None else 0o600, dir_fd=folder)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        if like is not None:
            made = os.fstat(descriptor)
            if (made.st_uid, made.st_gid) != (like.st_uid, like.st_gid):
                os.fchown(descriptor, like.st_uid, like.st_gid)
            os.fchmod(descriptor, stat.S_IMODE(like.st_mode))
        os.fsync(descriptor)
    except BaseException:
        _drop(folder, name)
        raise
    finally:
        os.close(descriptor)
    return name


def _drop(folder: int, name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def _sweep(folder: int) -> None:
    """Delete old drafts left by crashes. The lock is held, so none is in use."""
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if entry.name.startswith(_PREFIX) and entry.name.endswith(".tmp")]
    for name in names:
        with suppress(OSError):
            if os.stat(name, dir_fd=folder, follow_symlinks=False).st_ctime < time.time() - _STALE_S:
                os.unlink(name, dir_fd=folder)


def _translate(shown: str, error: OSError) -> Exception:
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return Invalid(
            f"{shown} is behind a symbolic link, or what should be a folder is none; links are not followed."
        )
    if error.errno == errno.ENAMETOOLONG:
        return Invalid(f"The name of {shown:.200} is too long.")
    if error.errno == errno.ENOENT:
        return NotFound(f"The folder of {shown} does not exist.", {"path": shown})
    if error.errno in (errno.EACCES, errno.EPERM):
        return Forbidden(f"{shown} cannot be written: {os.strerror(error.errno)}.", {"path": shown})
    return StorageFailed(f"{shown} cannot be written: {error.strerror or error}. It is as it was.", {"path": shown})

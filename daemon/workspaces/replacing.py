"""Writing a file as a whole, so that it is the old or the new one at any moment and nobody else's save is lost.

The new content is written into a hidden file beside the old one, synced, and exchanged with it in one step
(renameat2 RENAMEEXCHANGE). What comes out of the exchange is looked at before it is deleted: if somebody saved after
it was read, the change is made again on what was saved. A lease (fcntl F_SETLEASE) says whether a program still has
the old file open for writing; it is waited for. A moment passes before that, for a program that had found the old file
and not yet opened it. What is left is one that is inside open() for longer than that (50 ms), and file systems without
leases or exchange (network, FAT), where a save within about a millisecond of ours may be lost.

Folders are walked without following symbolic links. Those who write through here wait for each other (flock on the
folder), whichever process they are in.
"""

import ctypes
import errno
import fcntl
import os
import secrets
import signal
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from memoryd.client import linux
from memoryd.client.errors import Busy, Conflict, Forbidden, Invalid, NotFound, StorageFailed
from memoryd.client.transport.lock import take

MAX_BYTES = 16 * 1024 * 1024
_ATTEMPTS = 20
_LOCK_LIMIT_S = 10.0
_GRACE_S = 0.05  # for a program to open what it found, from the look into the folder to the open file
_STALE_S = 86400.0  # a draft that a crash left is deleted after a day
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
EXCHANGE, NO_REPLACE = 2, 1
PREFIX = ".memoryd-"  # of drafts; hidden, so no scan takes them for notes
WRITER_LIMIT_S = 3.0  # until a program that has a file open for writing is given up on
STEP_S = 0.005
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SET_SIGNAL = 10  # F_SETSIG: which signal says that somebody waits for a lease; the usual one would end the process


Rewrite = Callable[[bytes | None], bytes]  # None: there is no such file


class _Taken(Exception):
    """The file came or went, or was saved by somebody else, since it was read."""


class _ReadFile(NamedTuple):
    """A file that was read."""

    data: bytes
    state: os.stat_result


def change_file(root: Path, relative: str, change: Rewrite, *, create: bool = False) -> bytes:
    """Replace a file below `root` by what `change` makes of it, and return that; with `create` it may be a new file.

    `change` may be called more than once, and what it raises ends it. Raise a sentence for whatever is in the way; the
    file is whole then, and nothing else is left behind.
    """
    with _folder(root, relative, create) as (folder, name, shown), _lock(folder, shown):
        return _Replacing(folder, name, shown, change, create).run()


def remove_file(root: Path, relative: str, check: Rewrite) -> None:
    """Delete a file below `root` if `check`, which is given what is in it, raises nothing; nobody's save is lost."""
    with _folder(root, relative) as (folder, name, shown), _lock(folder, shown):
        _Replacing(folder, name, shown, check, create=False).remove()


def read_file(root: Path, relative: str) -> bytes:
    """Return the bytes of a file below `root`; raise a sentence for whatever is in the way."""
    with _folder(root, relative) as (folder, name, shown):
        found = _read(folder, name, shown)
    if found is None:
        raise NotFound(f"{shown} does not exist (any more).", {"path": shown})
    return found.data


class _Replacing:
    """One change of one file, in an open and locked folder."""

    def __init__(self, folder: int, name: str, shown: str, change: Rewrite, create: bool) -> None:
        self.folder, self.name, self.shown, self.change, self.create = folder, name, shown, change, create

    def run(self) -> bytes:
        """Try until nobody else saved meanwhile."""
        _sweep(self.folder)
        for _ in range(_ATTEMPTS):
            old = _read(self.folder, self.name, self.shown)
            if old is None and not self.create:
                raise NotFound(f"{self.shown} does not exist (any more).", {"path": self.shown})
            new = self.change(old.data if old else None)
            if old is not None and new == old.data:
                return new
            try:
                written = self._create(new) if old is None else self._exchange(old, new)
            except _Taken:
                continue
            os.fsync(self.folder)
            return written
        raise self._busy_error()

    def remove(self) -> None:
        """Take the file out, and put it back if it is not the one that was checked or somebody is writing it."""
        old = _read(self.folder, self.name, self.shown)
        self.change(old.data if old else None)
        if old is None:
            return
        aside = f"{PREFIX}{secrets.token_hex(8)}.tmp"
        rename(self.folder, self.name, aside, NO_REPLACE)
        out, is_final = self._read_out(aside)
        if is_final and out.data == old.data:
            _drop(self.folder, aside)
            os.fsync(self.folder)
            return
        rename(self.folder, aside, self.name, NO_REPLACE)
        raise self._busy_error()

    def _busy_error(self) -> Busy:
        return Busy(f"{self.shown} is being written by another program all the time.", {"retry_after_ms": 1000})

    def _create(self, new: bytes) -> bytes:
        draft = _write_draft(self.folder, new, None)
        try:
            rename(self.folder, draft, self.name, NO_REPLACE)
        except FileExistsError:
            raise _Taken from None
        finally:
            _drop(self.folder, draft)
        return new

    def _exchange(self, old: _ReadFile, new: bytes) -> bytes:
        """Put the new content in place; merge it with what somebody saved at the last moment."""
        draft = _write_draft(self.folder, new, old.state)
        try:
            now = _read(self.folder, self.name, self.shown)
            if now is None or now.data != old.data:
                raise _Taken
            try:
                rename(self.folder, draft, self.name, EXCHANGE)
            except FileNotFoundError:
                raise _Taken from None
        except BaseException:
            _drop(self.folder, draft)
            raise
        return self._settle(draft, old.data, new)

    def _settle(self, draft: str, expected: bytes, mine: bytes) -> bytes:
        """Delete what came out of an exchange if it is as expected; else it is somebody's save, which is put back."""
        for _ in range(_ATTEMPTS):
            out, is_final = self._read_out(draft)
            if is_final and out.data == expected:
                _drop(self.folder, draft)
                return mine
            if not is_final:
                break
            try:
                merged = self.change(out.data)
                again = _write_draft(self.folder, merged, out.state)
            except BaseException:  # the change cannot be made on what was saved: that wins
                self._put_back(draft, mine)
                raise
            rename(self.folder, again, self.name, EXCHANGE)
            _drop(self.folder, draft)  # what was saved there is in place, with the change
            expected, mine, draft = mine, merged, again
        self._put_back(draft, mine)
        raise self._busy_error()

    def _read_out(self, draft: str) -> tuple[_ReadFile, bool]:
        """Return the file that an exchange took out, and whether nobody can write into it any more."""
        time.sleep(_GRACE_S)
        descriptor = os.open(draft, READ, dir_fd=self.folder)
        try:
            is_final = is_unwritten(descriptor)
            return _ReadFile(_read_bytes(descriptor), os.fstat(descriptor)), is_final
        finally:
            os.close(descriptor)

    def _put_back(self, draft: str, mine: bytes) -> None:
        """Put somebody's save back in place of ours; raise `Conflict` when there was yet another one meanwhile."""
        rename(self.folder, draft, self.name, EXCHANGE)
        out, is_final = self._read_out(draft)
        if is_final and out.data == mine:
            _drop(self.folder, draft)
            return
        kept = f"{self.name}.{secrets.token_hex(4)}.conflict"
        rename(self.folder, draft, kept, NO_REPLACE)
        raise Conflict(f"Two programs wrote {self.shown} at once; one of the versions is now {kept} beside it.")


# Parts ---------------------------------------------------------------------------------------------------------------


@contextmanager
def _folder(root: Path, relative: str, create: bool = False) -> Iterator[tuple[int, str, str]]:
    """Open the folder that a file is in, from the root down; with `create` make what is missing.

    Yield it, the file's name in it, and its path as people see it. What the system refuses is raised as a sentence.
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
        raise _sentence(shown, error) from None


@contextmanager
def _lock(folder: int, shown: str) -> Iterator[None]:
    """Hold the lock of a folder; without one where the file system has none."""
    try:
        take(folder, _LOCK_LIMIT_S)
    except BlockingIOError:
        raise Busy(f"{shown} is being written by another memoryd.", {"retry_after_ms": 1000}) from None
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
            raise
    yield  # closing the folder ends it


def _read(folder: int, name: str, shown: str) -> _ReadFile | None:
    try:
        descriptor = os.open(name, READ, dir_fd=folder)
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
    """Write a hidden file with the mode and owner of another one, synced, and return its name."""
    name = f"{PREFIX}{secrets.token_hex(8)}.tmp"
    descriptor = os.open(name, WRITE, 0o666 if like is None else 0o600, dir_fd=folder)
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
    """Delete drafts that crashes left long ago. The lock is held, so nobody is at work on one."""
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if entry.name.startswith(PREFIX) and entry.name.endswith(".tmp")]
    for name in names:
        with suppress(OSError):
            if os.stat(name, dir_fd=folder, follow_symlinks=False).st_ctime < time.time() - _STALE_S:
                os.unlink(name, dir_fd=folder)


def _sentence(shown: str, error: OSError) -> Exception:
    """Return what a failure of the system means, in a sentence."""
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


# What Linux offers for files that others write too; where a file system has it not, as nearly as plain calls can ------


def rename(folder: int, origin: str, target: str, flags: int) -> None:
    """Rename with `renameat2`; where the file system cannot, as nearly as the plain calls can."""
    number = errno.ENOSYS
    if hasattr(linux.libc(), "renameat2"):
        if linux.libc().renameat2(folder, os.fsencode(origin), folder, os.fsencode(target), flags) == 0:
            return
        number = ctypes.get_errno()
    if number not in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
        raise OSError(number, os.strerror(number), target)
    if flags == NO_REPLACE:
        _copy(folder, origin, target)
        return
    aside = f"{PREFIX}{secrets.token_hex(8)}.tmp"
    try:
        os.link(target, aside, src_dir_fd=folder, dst_dir_fd=folder)  # so that what is replaced can be looked at
    except PermissionError:  # no links here
        _copy(folder, target, aside)
    os.rename(origin, target, src_dir_fd=folder, dst_dir_fd=folder)
    os.rename(aside, origin, src_dir_fd=folder, dst_dir_fd=folder)


def _copy(folder: int, origin: str, target: str) -> None:
    with open(os.open(origin, READ, dir_fd=folder), "rb") as source:
        data, mode = source.read(), stat.S_IMODE(os.fstat(source.fileno()).st_mode)
    with open(os.open(target, WRITE, mode, dir_fd=folder), "wb") as copy:
        copy.write(data)
        copy.flush()
        os.fsync(copy.fileno())


def is_unwritten(descriptor: int) -> bool:
    """Wait until no program has a file open for writing; say whether that is so, or cannot be known."""
    give_up_at = time.monotonic() + WRITER_LIMIT_S
    while True:
        try:
            fcntl.fcntl(descriptor, _SET_SIGNAL, signal.SIGURG)
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except BlockingIOError:
            if time.monotonic() > give_up_at:
                return False
            time.sleep(STEP_S)
            continue
        except OSError:
            return True  # no leases here, or a file of another user
        # Somebody who opens it for writing waits from here on, and is seen.
        is_wanted = fcntl.fcntl(descriptor, fcntl.F_GETLEASE) != fcntl.F_RDLCK
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        if not is_wanted:
            return True

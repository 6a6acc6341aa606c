"""Read a file of a workspace: only inside its root, only up to a size, without blocking.

The path is opened part by part from an open folder and no symbolic link is followed, so a link that replaces a file
between a check and the reading has no effect. Only regular files are opened.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from memoryd.client.credentials import allow_list, redact
from memoryd.client.errors import Invalid, NotFound
from memoryd.daemon.workspaces.documents import lines
from memoryd.daemon.workspaces.documents.chunks import chunk
from memoryd.daemon.workspaces.documents.document import Document, Limits, check_relative, refusal
from memoryd.daemon.workspaces.documents.front import parse_front_matter

ATTEMPTS = 3  # to read a file that changes meanwhile

_LINK = "It is a symbolic link, and links are not followed."
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class _Refused(Exception):
    """The reason why an existing file is not read."""


def read(root: Path, relative: str, limits: Limits = Limits()) -> Document | None:  # noqa: B008  it cannot change
    """Read a file and cut it into chunks; return None if it is missing, raise `NotFound` if the root is."""
    check_relative(relative)
    *folders, name = relative.split("/")
    try:
        with _folder(root, folders) as folder:
            return _read(folder, name, limits)
    except FileNotFoundError:
        return None
    except _Refused as refused:
        return refusal(root, relative, str(refused))
    except OSError as error:
        link = error.errno == errno.ELOOP  # created after the check
        return refusal(root, relative, _LINK if link else f"It cannot be read: {error.strerror}.")


def build_document(data: bytes, size: int, mtime_ns: int, limits: Limits) -> Document:
    """Parse the bytes of a file."""
    text, wrong = lines.decode(data)
    if limits.redact:  # before it is cut: a key may be longer than a chunk
        text = redact(text, allowed=allow_list(limits.allow), keep_lines=True)
    front, odd = parse_front_matter(lines.split(text))
    chunks = chunk(text, limits.chunk_chars, limits.overlap_chars, front.end_line)
    return Document(sha256(data).digest(), size, mtime_ns, front, chunks, " ".join(filter(None, (wrong, odd))) or None)


@contextmanager
def _folder(root: Path, folders: list[str]) -> Iterator[int]:
    """Open the folder that contains a file, from the root down."""
    try:
        current = os.open(root, _FOLDER)
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(f"The folder {root} does not exist.") from None
    except OSError as error:
        raise Invalid(f"The folder {root} cannot be read: {error.strerror}.") from None
    try:
        for name in folders:
            below = _open_inner(current, name)
            os.close(current)
            current = below
        yield current
    finally:
        os.close(current)


def _open_inner(folder: int, name: str) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except NotADirectoryError:
        if stat.S_ISLNK(os.lstat(name, dir_fd=folder).st_mode):
            raise _Refused(f"The folder {name} is a symbolic link, and links are not followed.") from None
        raise FileNotFoundError from None


def _read(folder: int, name: str, limits: Limits) -> Document:
    state = os.lstat(name, dir_fd=folder)
    if stat.S_ISLNK(state.st_mode):
        raise _Refused(_LINK)
    if not stat.S_ISREG(state.st_mode):
        raise _Refused("It is not a regular file, so it is not read.")
    for _ in range(ATTEMPTS):
        with open(os.open(name, _FILE, dir_fd=folder), "rb", buffering=0) as file:
            before = os.fstat(file.fileno())
            if not stat.S_ISREG(before.st_mode):
                raise _Refused("It is not a regular file, so it is not read.")
            data = _read_bytes(file.fileno(), limits.max_bytes)
            after = os.fstat(file.fileno())
        if (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns):
            break
    # The state before the reading: if the file changes during it, the next check sees a difference.
    return build_document(data, before.st_size, before.st_mtime_ns, limits)


def _read_bytes(descriptor: int, limit: int) -> bytes:
    parts, size = list[bytes](), 0
    while part := os.read(descriptor, min(limit + 1 - size, 1 << 20)):
        parts.append(part)
        size += len(part)
        if size > limit:
            raise _Refused(f"It has more than {limit} bytes, so it is not read.")
    return b"".join(parts)

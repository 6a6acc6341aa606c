"""The parsed Markdown file for the index, and the result of a walk through a folder. Lines are counted from 1.

The daemon imports this module; the modules that read and cut files are imported only by their own process.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from memoryd.client.errors import Invalid

LIMIT_CHARS = 1000
OVERLAP_CHARS = 150
MAX_BYTES = 16 * 1024 * 1024


class Limits(NamedTuple):
    """How files are read."""

    chunk_chars: int = LIMIT_CHARS
    overlap_chars: int = OVERLAP_CHARS
    max_bytes: int = MAX_BYTES
    redact: bool = True  # credentials are removed from the index, except those that match a pattern of `allow`
    allow: tuple[str, ...] = ()


class Chunk(Struct):
    """A part of a file: whole lines, or a piece of one line that is longer than a chunk may be."""

    content: str  # the lines of the file, joined by LF
    start_line: int
    end_line: int  # inclusive
    heading: str = ""  # the headings above it, `A > B > C`
    links: list[str] = []  # the files that it links to: names in lower case, without folder and .md
    tags: list[str] = []  # `#word` in its text


class Front(Struct):
    """The front matter of a file."""

    type: str = "note"
    tags: list[str] = []
    pinned: bool = False
    expires_at: float | None = None
    metadata: dict[str, Any] = {}  # all other keys, with values that JSON supports
    end_line: int = 0  # its number of lines, marks included
    created_at: float | None = None
    changed_at: float | None = None


class Document(Struct):
    """A file that was read."""

    sha256: bytes  # of its bytes
    size: int
    mtime_ns: int
    front: Front
    chunks: list[Chunk]  # by line
    problem: str | None = None  # why it is not, or not completely, in `chunks`


class WalkedFile(NamedTuple):
    """A file that a walk found."""

    path: str  # relative to the root, with `/`
    size: int
    mtime_ns: int


class Scan(NamedTuple):
    """The result of a walk."""

    files: list[WalkedFile]  # by path
    problems: dict[str, str]  # relative path -> a sentence: why it could not be read
    ignored: int = 0  # files and folders that git ignores
    folders: Sequence[str] = ()  # folders that it entered, relative to the root (""), which are to be watched
    left_out: dict[str, str] = {}  # noqa: RUF012  relative path -> why it is excluded; the first ones
    others: str = ""  # a sentence about files that are not Markdown


def check_relative(relative: str) -> None:
    """Raise `Invalid` for a path that does not lead down from the root."""
    if not relative or "\0" in relative or not {"", ".", ".."}.isdisjoint(relative.split("/")):
        raise Invalid(f"{relative!r} is not a path below the workspace.")


def refusal(root: Path, relative: str, problem: str) -> Document | None:
    """Return the document of a file that is not read, without content; None if the file does not exist."""
    try:
        state = os.lstat(root / relative)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return Document(b"", 0, 0, Front(), [], problem)
    return Document(b"", state.st_size, state.st_mtime_ns, Front(), [], problem)

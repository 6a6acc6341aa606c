"""What a Markdown file holds as the index sees it, and what a walk through a folder finds. Lines count from 1.

What reads and cuts files is imported where that is done, which is a process of its own: not here.
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
    redact: bool = True  # credentials do not get into the index; `allow` are patterns of those that may
    allow: tuple[str, ...] = ()


class Chunk(Struct):
    """A part of a file: whole lines, or a piece of one line that is longer than a chunk may be."""

    content: str  # the lines as they stand in the file, joined by LF
    start_line: int
    end_line: int  # inclusive
    heading: str = ""  # the headings above it, `A > B > C`
    links: list[str] = []  # what it refers to: names of files in lower case, without folder and .md
    tags: list[str] = []  # `#word` in its text


class Front(Struct):
    """Front matter: what the file says about itself."""

    type: str = "note"
    tags: list[str] = []
    pinned: bool = False
    expires_at: float | None = None
    metadata: dict[str, Any] = {}  # all other keys, as JSON can hold them
    end_line: int = 0  # lines that it takes, its marks included
    created_at: float | None = None
    changed_at: float | None = None


class Document(Struct):
    """A file that was read."""

    sha256: bytes  # of its bytes
    size: int
    mtime_ns: int
    front: Front
    chunks: list[Chunk]  # by line
    problem: str | None = None  # why nothing, or not all of it, is in `chunks`


class WalkedFile(NamedTuple):
    """A file that a walk found."""

    path: str  # relative to the root, with `/`
    size: int
    mtime_ns: int


class Scan(NamedTuple):
    """What a walk found."""

    files: list[WalkedFile]  # by path
    problems: dict[str, str]  # relative path -> why it is left out, a sentence
    ignored: int = 0  # files and folders that git ignores
    folders: Sequence[str] = ()  # those it looked into, relative to the root ("" is the root): to be watched
    left_out: dict[str, str] = {}  # noqa: RUF012  relative path -> why it is not meant to be read; the first ones
    others: str = ""  # a sentence on files that are no Markdown


def check_relative(relative: str) -> None:
    """Raise `Invalid` for a path that does not lead down from the root."""
    if not relative or "\0" in relative or not {"", ".", ".."}.isdisjoint(relative.split("/")):
        raise Invalid(f"{relative!r} is not a path below the workspace.")


def refusal(root: Path, relative: str, problem: str) -> Document | None:
    """Return what is known of a file that is not read; None when there is none (any more)."""
    try:
        state = os.lstat(root / relative)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return Document(b"", 0, 0, Front(), [], problem)
    return Document(b"", state.st_size, state.st_mtime_ns, Front(), [], problem)

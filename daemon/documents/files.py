"""Reading a file of a workspace: confined to its root, bounded, never blocking."""

import os
from hashlib import sha256
from pathlib import Path

from memoryd.daemon.documents.chunks import LIMIT_CHARS, OVERLAP_CHARS, chunk
from memoryd.daemon.documents.document import Document, Front

MAX_BYTES = 16 * 1024 * 1024


def read(
    root: Path,
    relative: str,
    limit_chars: int = LIMIT_CHARS,
    overlap_chars: int = OVERLAP_CHARS,
    max_bytes: int = MAX_BYTES,
) -> Document | None:
    """Read a file and cut it into chunks; None when there is no such file."""
    try:
        with open(root / relative, "rb") as file:
            state, data = os.fstat(file.fileno()), file.read()
    except FileNotFoundError:
        return None
    chunks = chunk(data.decode("utf-8-sig", "replace"), limit_chars, overlap_chars)
    return Document(sha256(data).digest(), state.st_size, state.st_mtime_ns, Front(), chunks)

"""Which files of a folder its patterns name."""

import os
from collections.abc import Sequence
from pathlib import Path

from memoryd.daemon.documents.document import Found, Scan

GLOBS = ("MEMORY.md", "memory/**/*.md")


def scan(root: Path, globs: Sequence[str] = GLOBS) -> Scan:
    """Walk through a folder; raise `NotFound` when it is none, `Invalid` for a wrong pattern."""
    paths = {path for pattern in globs for path in root.glob(pattern) if path.is_file()}
    states = [(path, os.stat(path)) for path in sorted(paths)]
    return Scan([Found(p.relative_to(root).as_posix(), s.st_size, s.st_mtime_ns) for p, s in states], {})

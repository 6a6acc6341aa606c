"""Reading files through a child process, so that no thread of the daemon parses."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from memoryd.daemon.documents.chunks import LIMIT_CHARS, OVERLAP_CHARS
from memoryd.daemon.documents.document import Document, Scan
from memoryd.daemon.documents.files import MAX_BYTES, read
from memoryd.daemon.documents.scan import scan


class Reader:
    """Reads files and scans folders; any thread may use it."""

    def __init__(
        self,
        limit_chars: int = LIMIT_CHARS,
        overlap_chars: int = OVERLAP_CHARS,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._limits = limit_chars, overlap_chars, max_bytes

    def read(self, root: Path, relatives: Sequence[str]) -> Iterator[tuple[str, Document | None]]:
        """Yield each file with what it holds, in order; None: there is no such file (any more)."""
        for relative in relatives:
            yield relative, read(root, relative, *self._limits)

    def scan(self, root: Path, globs: Sequence[str]) -> Scan:
        """Do what `scan.scan` does, in the child."""
        return scan(root, globs)

    def close(self) -> None:
        """End the child."""

"""Markdown text to chunks."""

from memoryd.daemon.documents.document import Chunk

LIMIT_CHARS = 1000
OVERLAP_CHARS = 150


def chunk(text: str, limit_chars: int = LIMIT_CHARS, overlap_chars: int = OVERLAP_CHARS, skip: int = 0) -> list[Chunk]:
    """Return the chunks of a text, by line; the first `skip` lines (front matter) are left out."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    found, start, size = [], skip, 0
    for at in range(skip, len(lines)):
        if size + len(lines[at]) + 1 > limit_chars and at > start:
            found.append(Chunk("\n".join(lines[start:at]), start + 1, at))
            start, size = at, 0
        size += len(lines[at]) + 1
    found.append(Chunk("\n".join(lines[start:]), start + 1, len(lines)))
    return [one for one in found if one.content.strip()]

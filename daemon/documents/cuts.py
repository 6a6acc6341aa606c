"""Where to cut what is longer than a chunk may be.

A text is halved, again and again, until its pieces fit. Each time the best cut near the middle is taken: between blocks
rather than inside one, and among cuts that are equally good the one whose next words have the smallest checksum. As
that depends on the words and not on what was cut before, an edit moves the cuts beside it and leaves the others (the
idea of content-defined chunking, here with the structure of the text first).
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from zlib import crc32

from memoryd.daemon.documents.outline import Block, Section

KEY_CHARS = 48  # of what follows a cut count for its checksum, so that edits further on do not move it

SENTENCE = re.compile(r"[.!?…。！？]['\")\]»”]{0,3}(?:\s+|(?<=[。！？]))(?=\S)")
_GAP = re.compile(r"\s(?=\S)|[,;:，、；：](?=\S)")
_ENDS_SENTENCE = re.compile(r"[.!?…。！？]['\")\]»”*_]{0,3}\s*$")


class Cut(NamedTuple):
    """A place where a text may be cut; the smaller rank and key are better."""

    at: int
    rank: int
    key: int


def pieces(start: int, end: int, limit: int, *grades: Sequence[Cut]) -> Iterator[tuple[int, int]]:
    """Yield the pieces of `start` to `end`, each at most `limit` long.

    The cuts of a later grade, each sorted by place, are used only where those before leave a piece that is too long.
    """
    waiting = [(start, end)]
    while waiting:
        start, end = waiting.pop()
        if end - start <= limit:
            yield start, end
            continue
        at = next((cut for cuts in grades if (cut := _best(start, end, limit, cuts))), None)
        if at is None:  # nothing but one long word
            at = start + (end - start) // 2 if end - start < 2 * limit else start + limit
        waiting += [(at, end), (start, at)]


def _best(start: int, end: int, limit: int, cuts: Sequence[Cut]) -> int | None:
    low, high = bisect_right(cuts, start, key=_at), bisect_left(cuts, end, key=_at)
    if low >= high:
        return None
    quarter = (end - start) // 4
    windows = [(start + quarter, end - quarter)]
    if end - start <= 2 * limit:
        windows.append((end - limit, start + limit))  # two pieces suffice
    for first, last in windows:
        near = cuts[bisect_left(cuts, first, low, high, key=_at) : bisect_right(cuts, last, low, high, key=_at)]
        if near:
            return min(near, key=_rank).at
    middle = (start + end) // 2
    return min(cuts[low:high], key=lambda cut: abs(cut.at - middle)).at


def _at(cut: Cut) -> int:
    return cut.at


def _rank(cut: Cut) -> tuple[int, int]:
    return cut.rank, cut.key


def cuts_of_text(text: str, start: int, end: int) -> tuple[list[Cut], list[Cut]]:
    """Return the cuts inside a line: between sentences, and between words."""
    sentences, words = (
        [Cut(match.end(), 0, _checksum(text[match.end() : match.end() + KEY_CHARS])) for match in matches]
        for matches in (SENTENCE.finditer(text, start, end), _GAP.finditer(text, start, end))
    )
    return sentences, words


def _checksum(words: str) -> int:
    return crc32(words.strip().encode("utf-8", "surrogatepass"))


def cuts_of_lines(
    lines: Sequence[str], starts: Sequence[int], section: Section, limit: int
) -> tuple[list[Cut], list[Cut], list[Cut]]:
    """Return the cuts of a section: those that leave whole what fits, all others, the one below the heading."""
    body = next((line for line in range(section.body, section.end) if lines[line].strip()), section.end)
    ranks, whole = _ranks(section.blocks, starts, limit)
    apart, every = list[Cut](), list[Cut]()
    for line in range(body, section.end):
        if lines[line].strip():
            cut = Cut(starts[line], _line_rank(lines, line, ranks.get(line)), _checksum(lines[line][:KEY_CHARS]))
            every.append(cut)
            if not whole[line]:
                apart.append(cut)
    return [cut for cut in apart if cut.at > starts[body]], every[1:], every[:1] if body > section.start else []


def _ranks(blocks: Sequence[Block], starts: Sequence[int], limit: int) -> tuple[dict[int, int], bytearray]:
    """Return the rank of each line that a block begins with or ends before, and those inside one that fits."""
    ranks, whole = dict[int, int](), bytearray(len(starts))
    waiting = [(block, 0) for block in reversed(blocks)]
    while waiting:
        block, depth = waiting.pop()
        ranks.setdefault(block.start, 2 * depth)
        if block.kind != "tr":  # what follows the first row of a table is part of its head
            ranks.setdefault(block.end, 2 * depth)
        if starts[block.end] - 1 - starts[block.start] <= limit:
            whole[block.start + 1 : block.end] = b"\1" * (block.end - block.start - 1)
        waiting += [(inner, depth + 1) for inner in reversed(block.inner)]
    return ranks, whole


def _line_rank(lines: Sequence[str], line: int, rank: int | None) -> int:
    before = lines[line - 1].rstrip()
    if rank is None:  # inside a block that has none inside: code, a paragraph
        rank = 100 if not before else 102 if _ENDS_SENTENCE.search(before) else 104
    above = before or (lines[line - 2].rstrip() if line > 1 else "")
    return rank + above.endswith(":")  # what a colon announces stays with it where it can

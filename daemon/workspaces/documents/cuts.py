"""Choose where to cut a text that is longer than a chunk may be.

A text is cut in two again and again until its pieces fit, each time at the best cut that is not near an end. A cut
between blocks is better than one inside a block; of equally good cuts, that with the smallest checksum of the next
words is chosen. Since the checksum depends on the words and not on their position, an edit moves only the cuts near it.
This is content-defined chunking that considers the structure of the text first.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from zlib import crc32

from memoryd.daemon.workspaces.documents.outline import OutlineSection

KEY_CHARS = 48  # after a cut are used for its checksum, so that later edits do not move the cut

SENTENCE = re.compile(r"[.!?…。！？]['\")\]»”]{0,3}(?:\s+|(?<=[。！？]))(?=\S)")
_GAP = re.compile(r"\s(?=\S)|[,;:，、；：](?=\S)")
_ENDS_SENTENCE = re.compile(r"[.!?…。！？]['\")\]»”*_]{0,3}\s*$")


class Cuts(NamedTuple):
    """Ascending places where a text may be cut, with the rank of each: a smaller rank is better."""

    at: list[int]
    order: list[int]


def cut_pieces(start: int, end: int, limit: int, aim: int, *grades: Cuts) -> Iterator[tuple[int, int]]:
    """Yield the pieces of `start` to `end`: at most `aim` long if cuts of the first grade allow that, else `limit`.

    The cuts of a later grade are used only if those of earlier grades leave a piece over the limit.
    """
    waiting = [(start, end)]
    while waiting:
        start, end = waiting.pop()
        usable = [] if end - start <= aim else grades[: 1 if end - start <= limit else None]
        at = next((cut for cuts in usable if (cut := _find_best(start, end, aim, cuts))), None)
        if end - start <= limit and at is None:
            yield start, end
            continue
        if at is None:  # nothing but one long word
            at = start + (end - start) // 2 if end - start < 2 * limit else start + limit
        waiting += [(at, end), (start, at)]


def _find_best(start: int, end: int, aim: int, cuts: Cuts) -> int | None:
    low, high = bisect_right(cuts.at, start), bisect_left(cuts.at, end)
    if low >= high:
        return None
    middle = (start + end) // 2
    for first, last in _list_windows(start, end, aim):
        a, b = bisect_left(cuts.at, first, low, high), bisect_right(cuts.at, last, low, high)
        if a < b:
            best, half = min(cuts.order[a:b]), bisect_left(cuts.at, middle, a, b)
            # The middle one of equal cuts; else a text of equal lines would be cut into single lines.
            return cuts.at[cuts.order.index(best, *((half, b) if best in cuts.order[half:b] else (a, half)))]
    after = min(bisect_left(cuts.at, middle, low, high), high - 1)
    return min(cuts.at[max(after - 1, low)], cuts.at[after], key=lambda at: abs(at - middle))


def _list_windows(start: int, end: int, aim: int) -> list[tuple[int, int]]:
    if end - start > 2 * aim:  # not near the ends, which edits elsewhere may move
        return [(start + aim // 2, end - aim // 2)]
    quarter = (end - start) // 4
    return [(start + quarter, end - quarter), (end - aim, start + aim)]  # two pieces suffice


def find_text_cuts(text: str, start: int, end: int) -> tuple[Cuts, Cuts]:
    """Return the cuts inside a line: between sentences, and between words."""
    sentences, words = ([match.end() for match in kind.finditer(text, start, end)] for kind in (SENTENCE, _GAP))
    return _build_cuts(text, sentences), _build_cuts(text, words)


def _build_cuts(text: str, places: list[int]) -> Cuts:
    return Cuts(places, [_checksum(text[at : at + KEY_CHARS]) for at in places])


def _checksum(words: str) -> int:
    return crc32(words.strip().encode("utf-8", "surrogatepass"))


def find_line_cuts(
    lines: Sequence[str], starts: Sequence[int], section: OutlineSection, limit: int
) -> tuple[Cuts, Cuts, Cuts]:
    """Return the cuts of a section: those that split no block that fits, all others, those at its headings."""
    begin, end = section.start, section.end
    body = next((line for line in range(section.body, end) if lines[line].strip()), end)
    ranks, whole = _rank_starts(section, starts, limit)
    order = {
        line: _line_rank(lines, line, ranks.get(line)) << 32 | _checksum(lines[line][:KEY_CHARS])
        for line in range(begin + 1, end)
        if lines[line].strip()
    }
    inner = [line for line in order if line > body]
    grades = [line for line in inner if not whole[line - begin]], inner, [line for line in order if line <= body]
    apart, every, heads = (Cuts([starts[line] for line in grade], [order[line] for line in grade]) for grade in grades)
    return apart, every, heads


def _rank_starts(section: OutlineSection, starts: Sequence[int], limit: int) -> tuple[dict[int, int], bytearray]:
    """Return the ranks of lines at which a block begins or ends, and which lines are in a block that fits."""
    ranks, whole = dict[int, int](), bytearray(section.end - section.start)
    waiting = [(block, 0) for block in reversed(section.blocks)]
    while waiting:
        block, depth = waiting.pop()
        ranks.setdefault(block.start, 2 * depth)
        if block.kind != "tr":  # the line after the first row of a table belongs to its head
            ranks.setdefault(block.end, 2 * depth)
        if starts[block.end] - 1 - starts[block.start] <= limit:
            inside = slice(block.start + 1 - section.start, block.end - section.start)
            whole[inside] = b"\1" * (block.end - block.start - 1)
        waiting += [(inner, depth + 1) for inner in reversed(block.inner)]
    return ranks, whole


def _line_rank(lines: Sequence[str], line: int, rank: int | None) -> int:
    before = lines[line - 1].rstrip()
    if rank is None:  # inside a block without inner blocks, such as code or a paragraph
        rank = 100 if not before else 102 if _ENDS_SENTENCE.search(before[-8:]) else 104
    above = before or (lines[line - 2].rstrip() if line > 1 else "")
    return rank + above.endswith(":")  # prefer not to cut after a line that introduces the next one

"""Split Markdown text into chunks: whole blocks if they fit, else pieces that end where a reader would pause.

Each section (a heading and the text below it) is split separately. The place of a cut depends only on the text around
it (`cuts.py`), so an edit changes its own chunk and rarely more than the next one. A chunk consists of whole lines of
the file, or is a piece of one line that is over the limit.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

from memoryd.daemon.workspaces.documents.cuts import SENTENCE, Cuts, cut_pieces, find_line_cuts, find_text_cuts
from memoryd.daemon.workspaces.documents.document import LIMIT_CHARS, OVERLAP_CHARS, Chunk
from memoryd.daemon.workspaces.documents.lines import REPLACEMENT, split
from memoryd.daemon.workspaces.documents.outline import OutlineSection, outline
from memoryd.daemon.workspaces.documents.references import Reference, find_tags, links_in

_WORD = re.compile(r"\s(?=\S)")


def chunk(text: str, limit_chars: int = LIMIT_CHARS, overlap_chars: int = OVERLAP_CHARS, skip: int = 0) -> list[Chunk]:
    """Return the chunks of a text in order, without the first `skip` lines (front matter)."""
    lines = split(text.replace("\0", REPLACEMENT))
    if not any(line.strip() for line in lines[skip:]):
        return []
    return list(_Chunker(lines, limit_chars, min(overlap_chars, limit_chars // 2), skip).cut_chunks())


class _Chunker:
    """Splits one text. Places are counted in characters of its lines, joined by LF."""

    def __init__(self, lines: Sequence[str], limit: int, overlap: int, skip: int) -> None:
        self.lines, self.limit, self.overlap = lines, limit, overlap
        self.aim = limit - overlap  # leaves room for the repeated end of the previous chunk
        self.text = "\n".join(lines)
        self.starts = list(accumulate((len(line) + 1 for line in lines), initial=0))  # of each line; the last: the end
        self.sections, code_lines = outline(lines, skip)
        code = [(self.starts[a], min(self.starts[b], len(self.text))) for a, b in code_lines]
        self.links, self.tags = links_in(self.text, code), find_tags(self.text, code)
        self.cut: tuple[OutlineSection | None, Sequence[Cuts]] = None, ()  # a section and its cuts, cached

    def cut_chunks(self) -> Iterator[Chunk]:
        """Yield the chunks of all sections."""
        for section in self.sections:
            for start, end in self._cut_ranges(section):
                yield self._build_chunk(start, end, section.heading)

    def _cut_ranges(self, section: OutlineSection) -> Iterator[tuple[int, int]]:
        """Yield the ranges of a section's chunks; a line over the limit has chunks of its own."""
        begin = section.start
        for long in range(section.start, section.end):
            if len(self.lines[long]) > self.limit:
                first, last = self._trim(begin, long)
                if first < last <= section.body and self.starts[long] - self.starts[first] <= self.limit // 2:
                    # only headings, which become part of the line's first piece
                    yield from self._cut_pieces(first, long)
                else:
                    yield from self._lines(section, first, last)
                    yield from self._cut_pieces(long, long)
                begin = long + 1
        yield from self._lines(section, begin, section.end)

    def _lines(self, section: OutlineSection, begin: int, end: int) -> Iterator[tuple[int, int]]:
        begin, end = self._trim(begin, end)
        if begin == end:
            return
        start, stop = self.starts[begin], self.starts[end] - 1
        if stop - start <= self.limit:
            yield start, stop
            return
        before = start
        for first, last in cut_pieces(start, stop, self.limit, self.aim, *self._find_cuts(section)):
            lines = self._trim(bisect_left(self.starts, first), bisect_left(self.starts, last))
            if lines[0] < lines[1]:
                first, last = self.starts[lines[0]], self.starts[lines[1]] - 1
                yield self._take_tail(before, first, last), last
                before = first

    def _find_cuts(self, section: OutlineSection) -> Sequence[Cuts]:
        if self.cut[0] is not section:
            self.cut = section, find_line_cuts(self.lines, self.starts, section, self.limit)
        return self.cut[1]

    def _take_tail(self, before: int, first: int, last: int) -> int:
        """Return the begin of a chunk that repeats the last whole lines of the chunk that began at `before`."""
        if first == before:
            return first
        earliest = max(before + 1, first - self.overlap - 1, last - self.limit)
        line = bisect_left(self.starts, earliest)
        while self.starts[line] < first and not self.lines[line].strip():
            line += 1
        return self.starts[line]

    def _cut_pieces(self, first: int, long: int) -> Iterator[tuple[int, int]]:
        """Yield the pieces of a long line; the first piece also contains the lines from `first` on."""
        begin, end = self.starts[first], self.starts[long + 1] - 1
        before, cuts = begin, find_text_cuts(self.text, self.starts[long], end)
        for start, stop in cut_pieces(begin, end, self.limit, self.aim, *cuts):
            if not self.text[start:stop].isspace():
                yield self._take_words(before, start, stop), stop
                before = start

    def _take_words(self, before: int, first: int, last: int) -> int:
        """Return the begin of a piece that repeats the end of the previous one: sentences, or else words."""
        earliest = max(before + 1, first - self.overlap, last - self.limit)
        found = SENTENCE.search(self.text, earliest, first) or _WORD.search(self.text, earliest, first)
        return found.end() if found else first

    def _trim(self, begin: int, end: int) -> tuple[int, int]:
        """Return a range of lines without blank lines at its ends."""
        while begin < end and not self.lines[begin].strip():
            begin += 1
        while begin < end and not self.lines[end - 1].strip():
            end -= 1
        return begin, end

    def _build_chunk(self, start: int, end: int, heading: str) -> Chunk:
        return Chunk(
            self.text[start:end],
            bisect_right(self.starts, start),
            bisect_right(self.starts, end - 1),
            heading,
            _names(self.links, start, end),
            _names(self.tags, start, end),
        )


def _names(references: list[Reference], start: int, end: int) -> list[str]:
    part = references[bisect_left(references, (start,)) : bisect_left(references, (end,))]
    return list(dict.fromkeys(link.name for link in part))

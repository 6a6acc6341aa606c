"""Changing the text of a Markdown file: a note is added in the style that the file has, or lines are taken out.

Pure functions from text to text. Every other character of the file stays as it is: line ends, a byte order mark, blank
lines at the end, a missing last line end. A note is never put inside a code block, a comment or front matter.
"""

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from memoryd.client.errors import Invalid
from memoryd.client.patterns import compile_late

_ITEM = compile_late(r"( {0,3})(?:([-*+])|(\d{1,9})([.)]))([ \t]{1,4}(?=\S)|(?=\s*$))")
_MAX_MARKERS = 100  # of items that begin in one line: each makes a copy of it
_ANY_ITEM = compile_late(r"[ \t]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$)")
_INTERRUPTS = compile_late(r" {0,3}(?:>|(?:[*_] *){3,}$)")
# HTML blocks that a blank line ends: kind 6 by these names, kind 7 a tag that is alone.
_NAMES = (
    "address article aside base basefont blockquote body caption center col colgroup dd details dialog dir div dl dt"
    " fieldset figcaption figure footer form frame frameset h[1-6] head header hr html iframe legend li link main menu"
    " menuitem nav noframes ol optgroup option p param search section summary table tbody td tfoot th thead title tr"
    " track ul"
)
_TAG = compile_late(rf" {{0,3}}</?(?:{_NAMES.replace(' ', '|')})(?:\s|/?>|$)", re.I)
_LONE_TAG = compile_late(r" {0,3}(?:<[A-Za-z][\w-]*(?:\s[^<>]*)?/?>|</[A-Za-z][\w-]*\s*>)\s*$")
_DASHES = compile_late(r" {0,3}(?:- *){3,}$")  # a break, but below a paragraph the underline of a heading
_UNDERLINE = compile_late(r" {0,3}(?:=+|-+)[ \t]*$")
_FENCE = compile_late(r"( {0,3})(`{3,}(?=[^`]*$)|~{3,})")
_BREAK = compile_late(r" {0,3}(?:(?:- *){3,}|(?:\* *){3,}|(?:_ *){3,})$")
_HEADING = compile_late(r" {0,3}#{1,6}(\s|$)")
_OTHER = compile_late(r" {0,3}([|>]|(?:[-*_] *){3,}$|=+\s*$|\[[^\]]+\]:)")  # blocks that are no paragraphs
# What begins an HTML block that only its end ends, and that end (CommonMark 4.6, kinds 1 to 5).
_HTML = [
    (
        compile_late(r" {0,3}<(?:script|pre|style|textarea)(?:\s|>|$)", re.I),
        compile_late(r"</(script|pre|style|textarea)>", re.I),
    ),
    (compile_late(r" {0,3}<!--"), compile_late("-->")),
    (compile_late(r" {0,3}<\?"), compile_late(r"\?>")),
    (compile_late(r" {0,3}<![A-Za-z]"), compile_late(">")),
    (compile_late(r" {0,3}<!\[CDATA\["), compile_late("]]>")),
]


class Edit(NamedTuple):
    """A text after a change, and the lines concerned (1-based, inclusive): added, or taken out."""

    text: str
    start_line: int
    end_line: int


class _Block(NamedTuple):
    """A run of lines: `kind` is item, paragraph, open (a code block or HTML that nothing ends), other."""

    kind: str
    start: int  # index of its first line
    blank_before: bool
    marker: str = ""  # of an item: its indent, bullet and blanks


def decode(data: bytes, file: str = "The file") -> str:
    """Return a file as text that gives the same bytes again; raise `Invalid` for one that is not written."""
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        raise Invalid(f"{file} is UTF-16; only UTF-8 is written.")
    return data.decode("utf-8", "surrogateescape")


def split(text: str) -> list[str]:
    """Return the lines of a text with their ends; only LF ends a line."""
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _is_blank(line: str) -> bool:
    return not line.strip(" \t\r\n")  # form feeds and the like are text to Markdown


# Adding --------------------------------------------------------------------------------------------------------------


def append(text: str, note: str) -> Edit:
    """Add a note at the end of a text: as a list item or a paragraph, whichever the text has; else as an item."""
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    lines = split(text[len(mark) :])
    crlf = sum(line.endswith("\r\n") for line in lines)
    ending = "\r\n" if 2 * crlf > sum(line.endswith("\n") for line in lines) else "\n"
    body = _front_lines(lines)
    blocks = list(_split_blocks(lines, body))
    at, blocks, is_end = _place(lines, body, blocks)
    told = note.replace("\r\n", "\n").replace("\r", "\n").strip("\n").rstrip().split("\n")
    added = _apply_style(told, blocks)
    before = [""] if _is_blank_needed(lines[body:at], body > 0, blocks, told[0]) else []
    after = [] if is_end or _is_blank(lines[at]) else [""]
    # A last line without an end gets one when a note follows; then the note has none.
    unended = at == len(lines) and at > 0 and not lines[-1].endswith("\n")
    new = [line + ending for line in (*before, *added, *after)]
    if unended:
        lines[-1] += ending
        new[-1] = new[-1].removesuffix(ending)
    first = at + len(before)
    return Edit(mark + "".join([*lines[:at], *new, *lines[at:]]), first + 1, first + len(added))


def _front_lines(lines: Sequence[str]) -> int:
    """Return how many lines front matter takes."""
    if not lines or lines[0].rstrip() != "---":
        return 0
    return next((number for number, line in enumerate(lines[1:], 2) if line.rstrip() in ("---", "...")), 0)


def _place(lines: Sequence[str], body: int, blocks: list[_Block]) -> tuple[int, list[_Block], bool]:
    """Return where a note is put, the blocks before it, and whether nothing but blank lines follows."""
    is_end = True
    end = len(lines)
    if blocks and blocks[-1].kind == "open":
        end, is_end = blocks[-1].start, False
        blocks = blocks[:-1]
    while end > body and _is_blank(lines[end - 1]):
        end -= 1
    return end, blocks, is_end


def _is_blank_needed(lines: Sequence[str], is_headed: bool, blocks: Sequence[_Block], note: str) -> bool:
    """Return whether a blank line is to stand between these lines and a note: unless it continues with a tight list."""
    if not lines:
        return is_headed
    last = blocks[-1] if blocks else None
    if last is None or last.kind != "item" or not (_is_plain(note) or _ITEM.match(note)):
        return True
    run = takewhile(lambda line: not _is_blank(line), reversed(lines))
    if any(line.lstrip(" ").startswith("<") for line in run):
        return True  # an HTML block may end at the next blank line only
    return last.blank_before and len(blocks) > 1 and blocks[-2].kind == "item"


def _apply_style(lines: list[str], blocks: Sequence[_Block]) -> list[str]:
    """Return the lines of a note in the style of the last block, or else of most blocks."""
    if not _is_plain(lines[0]) or _style(blocks) == "paragraph":
        return lines
    marker = _build_next_marker(blocks)
    indent = " " * len(marker.expandtabs(4))
    return [marker + lines[0], *((indent + line if not _is_blank(line) else "") for line in lines[1:])]


def _is_plain(note: str) -> bool:
    """Return whether a note begins as plain text, not as a block of its own (list, heading, code, table, quote)."""
    is_block = _is_block_start(note) or _ITEM.match(note) or _OTHER.match(note) or _LONE_TAG.match(note)
    return not is_block and note[:4] != "    "


def _style(blocks: Sequence[_Block]) -> str:
    if blocks and blocks[-1].kind in ("item", "paragraph"):
        return blocks[-1].kind
    paragraphs = sum(block.kind == "paragraph" for block in blocks)
    return "paragraph" if paragraphs > sum(block.kind == "item" for block in blocks) else "item"


def _build_next_marker(blocks: Sequence[_Block]) -> str:
    """Return the marker of the next item of the last list; its number is one more."""
    marker = next((block.marker for block in reversed(blocks) if block.kind == "item"), "- ")
    number = re.search(r"\d+", marker)
    if number is None:
        return marker
    if not (blocks and blocks[-1].kind == "item"):
        return "1" + marker[number.end() :]
    return marker[: number.start()] + str(int(number[0]) + 1)[-9:] + marker[number.end() :]


def _split_blocks(lines: Sequence[str], start: int) -> Iterator[_Block]:
    """Yield the top-level blocks of a text from a line on, each item of a list as one."""
    at, blank = start, False
    while at < len(lines):
        line = lines[at].rstrip("\r\n")
        if _is_blank(line):
            at, blank = at + 1, True
            continue
        end, block = _take_block(lines, at, line, blank)
        yield block
        at, blank = end, _is_blank(lines[end - 1])


def _take_block(lines: Sequence[str], at: int, line: str, blank: bool) -> tuple[int, _Block]:
    """Return the block that begins at a line, and the index after its last line."""
    if fence := _FENCE.match(line):
        closing = compile_late(rf" {{0,3}}{re.escape(fence[2][0])}{{{len(fence[2])},}}\s*$")
        return _find_end(lines, at, at + 1, closing, blank)
    for opening, closing in _HTML:
        if opening.match(line):
            return _find_end(lines, at, at, closing, blank)
    if _TAG.match(line) or _LONE_TAG.match(line):
        end = next((number for number in range(at, len(lines)) if _is_blank(lines[number])), len(lines))
        return end, _Block("other", at, blank)
    if (item := _ITEM.match(line)) and not _OTHER.match(line):
        marker = item[0] if item[5] else item[0] + " "
        # An item without text ends at the next blank line.
        is_empty = not item[5] and at + 1 < len(lines) and _is_blank(lines[at + 1])
        end = at + 1 if is_empty else _item_end(lines, at, len(marker.expandtabs(4)))
        return end, _Block("item", at, blank, marker)
    if _HEADING.match(line) or _BREAK.match(line):
        return at + 1, _Block("other", at, blank)
    kind = "other" if _OTHER.match(line) or line.startswith(("    ", "\t")) else "paragraph"
    end = _run_end(lines, at)
    if kind == "paragraph" and _UNDERLINE.match(lines[end - 1].rstrip("\r\n")) and end > at + 1:
        kind = "other"  # a heading
    return end, _Block(kind, at, blank)


def _find_end(
    lines: Sequence[str], start: int, first: int, closing: re.Pattern[str], blank: bool
) -> tuple[int, _Block]:
    find = closing.match if first > start else closing.search
    for at in range(first, len(lines)):
        if find(lines[at].rstrip("\r\n")):
            return at + 1, _Block("other", start, blank)
    return len(lines), _Block("open", start, blank)


def _item_end(lines: Sequence[str], start: int, width: int) -> int:
    """Return where an item ends: what is indented belongs to it, and text that continues without a blank line."""
    end, blank, code = start + 1, False, ""
    goes_on = _is_text(_strip_markers(lines[start].expandtabs(4)[width:]))
    for at in range(start + 1, len(lines)):
        line = lines[at].expandtabs(4).rstrip("\r\n")
        if _is_blank(line):
            blank = True
            continue
        inside = len(line) - len(line.lstrip(" ")) >= width
        if not inside and (blank or code or not goes_on or _ANY_ITEM.match(line) or not _is_text(line)):
            break
        found = _FENCE.match(line[width:]) if inside else None
        if found and not code:
            code = found[2]
        elif found and found[2].startswith(code):
            code = ""
        goes_on = not code and _is_text(_strip_markers(line.lstrip(" ")))
        end, blank = at + 1, False
    return end


def _strip_markers(line: str) -> str:
    """Return what is in a line after the markers of the items that it begins."""
    for _ in range(_MAX_MARKERS):
        item = _ANY_ITEM.match(line)
        if not item or item.end() == len(line) or _DASHES.match(line):
            break
        line = line[item.end() :]
    return line


def _is_text(line: str) -> bool:
    """Return whether a line is one of a paragraph, which the next line may go on with whatever its indent."""
    return not (_is_blank(line) or _is_block_start(line) or _DASHES.match(line))


def _run_end(lines: Sequence[str], start: int) -> int:
    """Return where a paragraph (or table, quote, indented code) ends: at a blank line or another block."""
    for at in range(start + 1, len(lines)):
        line = lines[at].rstrip("\r\n")
        if _is_blank(line) or _is_block_start(line):
            return at
        if _UNDERLINE.match(line):
            is_item = lines[start].lstrip(" ").startswith(">") and line.strip() == "-"  # it underlines no quote
            return at if is_item else at + 1
    return len(lines)


def _is_block_start(line: str) -> bool:
    """Return whether a line begins a block even right after a paragraph."""
    item = _ITEM.match(line)
    return bool(
        (item and item[5] and item[3] in (None, "1"))
        or _FENCE.match(line)
        or _HEADING.match(line)
        or _INTERRUPTS.match(line)
        or _TAG.match(line)
        or any(opening.match(line) for opening, _ in _HTML)
    )


# Taking out ----------------------------------------------------------------------------------------------------------


def cut(text: str, start_line: int, end_line: int) -> tuple[Edit, str]:
    """Take lines out of a text, with a blank line beside them where two would meet or one would end the file.

    Return the text with the lines that went, and what stood in these.
    """
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    lines = split(text[len(mark) :])
    first, last = start_line - 1, end_line
    before_is_blank = first > 0 and _is_blank(lines[first - 1])
    if last == len(lines) and before_is_blank:
        first -= 1
    elif (before_is_blank or first == 0) and last < len(lines) and _is_blank(lines[last]):
        last += 1
    gone, rest = lines[first:last], [*lines[:first], *lines[last:]]
    if last == len(lines) and rest and not gone[-1].endswith("\n"):
        rest[-1] = rest[-1].rstrip("\r\n")  # as before, the file has no last line end
    return Edit(mark + "".join(rest), first + 1, last), "".join(gone)


def find_item(text: str, line: int) -> tuple[int, int]:
    """Return the lines of the list item that a line begins, or else that line alone (1-based, inclusive)."""
    lines = split(text)
    found = _ANY_ITEM.match(lines[line - 1])
    return (line, _item_end(lines, line - 1, len(found[0].expandtabs(4)))) if found else (line, line)

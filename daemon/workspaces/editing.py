"""Edit the text of a Markdown file: append a note in the style of the file, or remove lines.

Pure functions. All other characters of the file are preserved: line endings, a byte order mark, trailing blank lines, a
missing final newline. A note is never inserted into a code block, a comment or front matter.
"""

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from memoryd.client.errors import Invalid
from memoryd.client.patterns import compile_late
from memoryd.daemon.workspaces.documents.outline import Block, list_blocks

_ITEM = compile_late(r"[ \t]*(?:[-*+]|\d{1,9}[.)])")
_BLANKS = compile_late(r"[ \t]{1,4}(?=\S)")  # after a marker; more of them start a code block
_LISTS = frozenset({"bullet_list", "ordered_list"})


class Edit(NamedTuple):
    """A text after a change, and the lines that were added or removed (1-based, inclusive)."""

    text: str
    start_line: int
    end_line: int


class _Block(NamedTuple):
    """A top-level block or an item of a top-level list; `kind` is item, paragraph or other."""

    kind: str
    end: int  # index after its last line
    blank_before: bool
    marker: str = ""  # of an item: its indent, bullet and blanks


def decode(data: bytes, file: str = "The file") -> str:
    """Decode a file so that encoding restores the same bytes; raise `Invalid` for UTF-16."""
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        raise Invalid(f"{file} is UTF-16; only UTF-8 is written.")
    return data.decode("utf-8", "surrogateescape")


def split(text: str) -> list[str]:
    """Return the lines of a text with their endings; only LF ends a line."""
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _is_blank(line: str) -> bool:
    return not line.strip(" \t\r\n")  # form feeds and the like are text to Markdown


# Adding --------------------------------------------------------------------------------------------------------------


def append(text: str, note: str) -> Edit:
    """Append a note to a text, as a list item or a paragraph depending on the text's style, by default as an item."""
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    lines = split(text[len(mark) :])
    crlf = sum(line.endswith("\r\n") for line in lines)
    ending = "\r\n" if 2 * crlf > sum(line.endswith("\n") for line in lines) else "\n"
    body = _front_lines(lines)
    at, blocks, is_end = _find_insertion(lines, body)
    note_lines = note.replace("\r\n", "\n").replace("\r", "\n").strip("\n").rstrip().split("\n")
    kind = next((block.kind for block in list_blocks(note_lines)), "")
    added = _apply_style(note_lines, blocks) if kind == "paragraph" else note_lines
    before = [""] if _is_blank_needed(lines[body:at], body > 0, blocks, kind) else []
    after = [] if is_end or _is_blank(lines[at]) else [""]
    # If the last line has no newline it gets one, and the note has none instead.
    unended = at == len(lines) and at > 0 and not lines[-1].endswith("\n")
    new = [line + ending for line in (*before, *added, *after)]
    if unended:
        lines[-1] += ending
        new[-1] = new[-1].removesuffix(ending)
    first = at + len(before)
    return Edit(mark + "".join([*lines[:at], *new, *lines[at:]]), first + 1, first + len(added))


def _front_lines(lines: Sequence[str]) -> int:
    ends = {"---": ("---", "..."), "+++": ("+++",)}.get(lines[0].rstrip() if lines else "", ())
    return next((number for number, line in enumerate(lines[1:], 2) if line.rstrip() in ends), 0)


def _find_insertion(lines: Sequence[str], body: int) -> tuple[int, list[_Block], bool]:
    """Return the line to insert a note at, the blocks before it, and whether only blank lines follow.

    This is the end of the text, or the start of an unclosed code or HTML block at the end.
    """
    bare = [line.rstrip("\r\n") for line in lines]
    *found, last = list_blocks([*bare, "", "note"], body)
    is_end = last.start > len(lines) or last.kind == "text"
    end = len(lines) if is_end else last.start
    while end > body and _is_blank(lines[end - 1]):
        end -= 1
    blocks = [part for block in found for part in _describe(bare, block)]
    if blocks and any(not _is_blank(line) for line in lines[blocks[-1].end : end]):
        blocks.append(_Block("other", end, False))  # link definitions, which are no blocks
    return end, blocks, is_end


def _describe(lines: Sequence[str], block: Block) -> Iterator[_Block]:
    for part in block.inner if block.kind in _LISTS else [block]:
        blank_before = part.start > 0 and _is_blank(lines[part.start - 1])
        if part.kind == "list_item":
            yield _Block("item", part.end, blank_before, _read_marker(lines[part.start]))
        else:
            yield _Block("paragraph" if part.kind == "paragraph" else "other", part.end, blank_before)


def _read_marker(line: str) -> str:
    match = _ITEM.match(line)
    if match is None:
        return "- "
    blanks = _BLANKS.match(line, match.end())
    return match[0] + (blanks[0] if blanks else " ")


def _is_blank_needed(lines: Sequence[str], is_headed: bool, blocks: Sequence[_Block], kind: str) -> bool:
    """Return whether a blank line is needed between these lines and a note: unless it continues a tight list."""
    if not lines:
        return is_headed
    last = blocks[-1] if blocks else None
    if last is None or last.kind != "item" or not (kind == "paragraph" or kind in _LISTS):
        return True
    run = takewhile(lambda line: not _is_blank(line), reversed(lines))
    if any(line.lstrip(" ").startswith("<") for line in run):
        return True  # an HTML block may end at the next blank line only
    return last.blank_before and len(blocks) > 1 and blocks[-2].kind == "item"


def _apply_style(lines: list[str], blocks: Sequence[_Block]) -> list[str]:
    """Return the lines of a plain note in the style of the last block, else of most blocks."""
    if _style(blocks) == "paragraph":
        return lines
    marker = _build_next_marker(blocks)
    indent = " " * len(marker.expandtabs(4))
    return [marker + lines[0], *((indent + line if not _is_blank(line) else "") for line in lines[1:])]


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


# Taking out ----------------------------------------------------------------------------------------------------------


def cut(text: str, start_line: int, end_line: int) -> tuple[Edit, str]:
    """Remove lines from a text, and an adjacent blank line if otherwise two would meet or one would end the file.

    Return the edit and the removed text.
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
    """Return the lines of the list item that starts at a line, else that line alone (1-based, inclusive)."""
    lines = split(text)
    waiting = list_blocks([one.rstrip("\r\n") for one in lines], _front_lines(lines))
    while waiting:
        block = waiting.pop()
        if block.kind == "list_item" and block.start == line - 1:
            return line, max(number for number in range(line, block.end + 1) if not _is_blank(lines[number - 1]))
        waiting += block.inner
    return line, line

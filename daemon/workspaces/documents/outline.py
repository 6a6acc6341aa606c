"""The structure of a Markdown text: the lines of its sections and blocks, from markdown-it's block parser.

The outline is only used to choose good cuts. If it is wrong, nothing is lost: chunks are made of the lines of the file,
so they also contain text that the parser drops or fails at. Lines are counted from 0 here.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MAX_PARSED_CHARS = 2000  # of each line: the parser is slow, and the begin of a line shows which block it is in
MAX_PARSED_LINES = 50_000  # each takes up to 0.1 ms, and some kB while it is parsed
MAX_TITLE_CHARS = 80
MAX_PATH_CHARS = 240

_ATX = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_CODE = frozenset({"fence", "code_block"})
_FLAT = frozenset(  # a table's children are its rows
    ["inline", *(f"{name}_{side}" for name in ("thead", "tbody", "th", "td") for side in ("open", "close"))]
)
_IMAGE_OR_LINK = re.compile(r"!?\[([^\[\]]{0,200})\]\([^()]{0,500}\)")
_WIKI = re.compile(r"!?\[\[(?:[^\[\]|]{0,200}\|)?([^\[\]|]{1,200})\]\]")
_MARKS = re.compile(r"`+|\*{1,3}|~~|(?<!\w)_{1,3}|_{1,3}(?!\w)|(?<!\s)\s*+\{#[^{}]{0,80}\}\s*$|<[^<>]{0,200}>")


@dataclass(slots=True)
class Block:
    """A block from line `start` to `end` (exclusive) with its inner blocks."""

    kind: str
    start: int
    end: int
    inner: "list[Block]" = field(default_factory=list)


class OutlineSection(NamedTuple):
    """A heading with the text up to the next heading; the text before the first heading is a section without one."""

    start: int
    end: int
    heading: str  # the path of headings
    blocks: list[Block]
    body: int  # the first line after the headings


class Outline(NamedTuple):
    """The sections of a text in order, and the ranges of lines that are code."""

    sections: list[OutlineSection]
    code: list[tuple[int, int]]


class _Heading(NamedTuple):
    line: int
    end: int
    level: int
    title: str


def outline(lines: Sequence[str], skip: int = 0) -> Outline:
    """Return the outline of lines from `skip` on; only headings if the parser fails or would take too long."""
    blocks, headings, code = _parse(lines, skip)
    return Outline(_build_sections(blocks, headings, skip, len(lines)), code)


def list_blocks(lines: Sequence[str], skip: int = 0) -> list[Block]:
    """Return the blocks of lines from `skip` on; in lines that are not parsed, only headings are told from text."""
    return _parse(lines, skip)[0]


def _parse(lines: Sequence[str], skip: int) -> tuple[list[Block], list[_Heading], list[tuple[int, int]]]:
    """Return the blocks, the headings among them, and the ranges of lines that are code."""
    if len(lines) <= MAX_PARSED_LINES:
        blank = [""] * skip  # the parser counts lines from the top
        text = "\n".join(blank + [line[:MAX_PARSED_CHARS].replace("\r", " ") for line in lines[skip:]])
        with suppress(RecursionError, MemoryError, IndexError, ValueError):  # the last two come from its bugs
            return _build_tree(_build_parser().parse(text))
    headings = _find_plain_headings(lines, skip)
    blocks = [Block("text", skip, headings[0].line if headings else len(lines))]
    for heading, end in zip(headings, [*(heading.line for heading in headings[1:]), len(lines)], strict=False):
        blocks.append(Block("heading", heading.line, heading.end))
        if any(line.strip() for line in lines[heading.end : end]):
            blocks.append(Block("text", heading.end, end))
    return blocks, headings, []


def _find_plain_headings(lines: Sequence[str], skip: int) -> list[_Heading]:
    headings, fence = list[_Heading](), ""
    for number in range(skip, len(lines)):
        line = lines[number][:MAX_PARSED_CHARS]
        if mark := _FENCE.match(line):
            fence = "" if fence and mark[1].startswith(fence) else fence or mark[1]
        elif not fence and (match := _ATX.match(line)):
            headings.append(_Heading(number, number + 1, len(match[1]), _title(match[2].rstrip(" \t#"))))
    return headings


def _build_parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # imported here, because it takes 15 ms of the daemon's start

    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])  # inline markup is not needed
    return parser


def _build_tree(tokens: "Sequence[Token]") -> tuple[list[Block], list[_Heading], list[tuple[int, int]]]:
    root = Block("root", 0, 0)
    open_blocks, headings, code = [root], list[_Heading](), list[tuple[int, int]]()
    for at, token in enumerate(tokens):
        if token.type in _FLAT:
            continue
        if token.nesting < 0:
            open_blocks.pop()
            continue
        assert token.map is not None
        block = Block(token.type.removesuffix("_open"), token.map[0], token.map[1])
        open_blocks[-1].inner.append(block)
        if token.nesting:
            open_blocks.append(block)
        if token.type == "heading_open" and token.level == 0:
            headings.append(_Heading(block.start, block.end, int(token.tag[1]), _title(tokens[at + 1].content)))
        elif token.type in _CODE:
            code.append((block.start, block.end))
    return root.inner, headings, code


def _title(text: str) -> str:
    """Return the text of a heading without markup."""
    text = _IMAGE_OR_LINK.sub(r"\1", _WIKI.sub(r"\1", text[:MAX_PARSED_CHARS]))
    text = " ".join(_MARKS.sub("", text).split())
    return text if len(text) <= MAX_TITLE_CHARS else text[: MAX_TITLE_CHARS - 1].rstrip() + "…"


def _build_sections(blocks: list[Block], headings: list[_Heading], start: int, end: int) -> list[OutlineSection]:
    sections, path, inner = list[OutlineSection](), list[_Heading](), list[Block]()
    begin, body, following = start, start, iter(headings)
    for block in blocks:
        if block.kind != "heading":
            inner.append(block)
            continue
        heading = next(following)
        # A heading directly above a deeper heading belongs to the section of that heading.
        if inner or not path or path[-1].level >= heading.level:
            sections.append(OutlineSection(begin, heading.line, _path(path), inner, body))
            begin, inner = heading.line, []
        path = [*(higher for higher in path if higher.level < heading.level), heading]
        body = heading.end
    return [*sections, OutlineSection(begin, end, _path(path), inner, body)]


def _path(headings: Sequence[_Heading]) -> str:
    titles = [heading.title for heading in headings if heading.title]
    while len(titles) > 1 and len(" > ".join(titles)) > MAX_PATH_CHARS:
        titles.pop(0)  # the nearest heading tells most about the text
    return " > ".join(titles)

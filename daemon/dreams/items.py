"""Read the items of a Markdown text (list items and short paragraphs), and replace some of them.

Everything else (headings, tables, code, quotes, comments, tasks, items with nested lists) is preserved byte by byte.
Lines are counted from 0 here. Pure functions.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from memoryd.daemon.workspaces.documents import lines as plain
from memoryd.daemon.workspaces.documents.outline import Block, outline
from memoryd.daemon.workspaces.editing import split

MAX_CHARS = 400  # of an item; longer ones make several statements
_MARKER = re.compile(r"(\s*(?:[-*+]|\d{1,9}[.)])[ \t]+)")
_TASK = re.compile(r"\[[ xX]\](?:\s|$)")
_DATED = re.compile(r" ?\((\d{4}-\d\d-\d\d)\)$")
_TIME = re.compile(r"^\(?\d{1,2}:\d\d(?::\d\d)?\)?(?:\s*(?:UTC|Z|h))?\s*(?:[-–—:|]\s*)?(?=\S)")
_LISTS = frozenset({"bullet_list", "ordered_list"})


class ListItem(NamedTuple):
    """A list item or paragraph: its text as one line, its lines, its marker (empty for a paragraph), its own date."""

    text: str
    start: int
    end: int
    marker: str
    date: str
    is_free: bool  # may be removed: it makes one statement and has no nested content


class ItemEdit(NamedTuple):
    """Items to remove, and texts to insert after line `place` (None: at the end)."""

    gone: Sequence[ListItem]
    added: Sequence[tuple[int | None, str, str]]  # place, marker, text


def list_items(text: str) -> list[ListItem]:
    """Return the items of a text in order."""
    readable = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    written = plain.split(readable.removeprefix("\ufeff").replace("\0", plain.REPLACEMENT))
    from memoryd.daemon.workspaces.documents.front import parse_front_matter  # a YAML parser: 11 ms

    skip = parse_front_matter(written)[0].end_line
    blocks = [block for section in outline(written, skip).sections for block in section.blocks]
    return list(_list_items(written, blocks))


def _list_items(written: Sequence[str], blocks: Sequence[Block]) -> Iterator[ListItem]:
    for block in blocks:
        if block.kind == "paragraph":
            yield from _build_items(written, block, block, True)
        elif block.kind in _LISTS:
            for entry in block.inner:
                own = [inner for inner in entry.inner if inner.kind == "paragraph"]
                if own:
                    yield from _build_items(written, entry, own[0], len(entry.inner) == 1)
                yield from _list_items(written, [inner for inner in entry.inner if inner.kind in _LISTS])


def _build_items(written: Sequence[str], block: Block, body: Block, is_leaf: bool) -> Iterator[ListItem]:
    whole = written[block.start : block.end]
    marker = (_MARKER.match(whole[0]) if block is not body else None) or re.match("", "")
    assert marker is not None
    text = " ".join(" ".join(written[body.start : body.end])[len(marker[0]) :].split())
    if not text or _TASK.match(text):
        return
    end = block.start + max(number for number, line in enumerate(whole, 1) if line.strip())
    dated = _DATED.search(text)
    words = text[: dated.start()] if dated else text
    is_free = is_leaf and len(text) <= MAX_CHARS and not any(mark in text for mark in ("<", "|", plain.REPLACEMENT))
    yield ListItem(words, block.start, end, marker[0], dated[1] if dated else "", is_free)


def strip_time(text: str) -> str:
    """Remove the time of day at the beginning of a note."""
    return _TIME.sub("", text, count=1)


def change_items(text: str, change: ItemEdit, heading: str) -> str:
    """Apply an edit; texts without a place are added below a heading at the end."""
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    written = split(text[len(mark) :])
    ending = "\r\n" if written and written[0].endswith("\r\n") else "\n"
    gone = {number: item for item in change.gone for number in range(item.start, item.end)}
    after: dict[int, list[str]] = {}
    for place, marker, words in change.added:
        if place is not None:
            after.setdefault(place, []).extend(([] if marker else [ending]) + [f"{marker}{words}{ending}"])
    if len(written) - 1 in after and not written[-1].endswith("\n"):
        written[-1] += ending
    made = _join(written, gone, after)
    last = [f"{marker or '- '}{words}{ending}" for place, marker, words in change.added if place is None]
    if last:
        made = _append(made, last, heading, ending)
    return mark + "".join(made)


def _join(written: Sequence[str], gone: Mapping[int, ListItem], after: Mapping[int, Sequence[str]]) -> list[str]:
    made = list[str]()
    for number, line in enumerate(written):
        # If everything between two blank lines was removed, only one of them is kept.
        is_left_over = number - 1 in gone and not line.strip() and (not made or not made[-1].strip())
        if number not in gone and not is_left_over:
            made.append(line)
        made += after.get(number, ())
    while made and not made[-1].strip() and (len(written) - 1) in gone:
        made.pop()
    return made


def _append(made: list[str], last: Sequence[str], heading: str, ending: str) -> list[str]:
    while made and not made[-1].strip():
        made.pop()
    if made and not made[-1].endswith("\n"):
        made[-1] += ending
    below = max((n for n, line in enumerate(made) if line.startswith("#")), default=-1)
    if below >= 0 and made[below].strip() == heading:
        return [*made, *last]
    return [*made, *([ending] if made else []), f"{heading}{ending}", ending, *last]

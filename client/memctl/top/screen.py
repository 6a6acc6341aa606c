"""Frames of the daemon, and where they are drawn: on a terminal in place, elsewhere one after the other.

A frame is lines of styled pieces, made to fit: what matters most stays, the rest says how much.
"""

import os
import select
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from memoryd.client.memctl.output import columns as terminal_columns
from memoryd.client.memctl.output import paint, say
from memoryd.client.memctl.table import pad, shorten, to_one_line, width

GAP = "  "
TWO_COLUMNS = 110  # terminal columns from which sections stand side by side
MIDDLE = 4  # blanks between them

Piece = tuple[str, tuple[str, ...]]  # text and its styles
Line = list[Piece]
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_HOME, _WIPE_LINE, _WIPE_REST = "\x1b[H", "\x1b[K", "\x1b[J"
# A terminal that was made larger may show lines of the frame after it was left, unless they no longer exist before.
_WIPE = f"{_HOME}{_WIPE_REST}"


# Frames --------------------------------------------------------------------------------------------------------------


class Section(NamedTuple):
    """A table: its headers, rows of cells and the style of each row; the first column takes what is left.

    Columns in `words` are flush left as the first one is, numbers flush right. It gets `least` rows before any other
    section gets more. `empty` is shown if there is no row.
    """

    headers: tuple[str, ...]
    rows: list[list[str]]
    styles: Sequence[tuple[str, ...]]
    least: int
    empty: str = ""
    words: tuple[int, ...] = ()


def lay_out(head: Sequence[Line], sections: Sequence[Section], foot: Line, size: tuple[int, int]) -> list[Line]:
    """Return the frame for a terminal of (columns, rows); without rows (0) nothing is left out."""
    columns, rows = size
    room = rows - len(head) - 2 if rows else 0  # the foot and the line above the sections
    if columns >= TWO_COLUMNS and len(sections) > 1:
        each = (columns - MIDDLE) // 2
        left = _stack(sections[:1], each, room)
        body = _put_beside(left, _stack(sections[1:], columns - MIDDLE - each, room), each)
    else:
        body = _stack(sections, columns, room)
    lines = [*head, [], *body]
    if rows:
        lines = lines[: rows - 1]
        lines += [[] for _ in range(rows - 1 - len(lines))]
    return [_cut(line, columns) for line in [*lines, foot]]


def _stack(sections: Sequence[Section], columns: int, room: int) -> list[Line]:
    lines: list[Line] = []
    for section, shown in zip(sections, share_rows(sections, room), strict=True):
        lines += ([[]] if lines else []) + _table_lines(section, shown, columns)
    return lines


def share_rows(sections: Sequence[Section], room: int) -> list[int]:
    """Return how many rows each section shows: its least ones, then one more in turn while there is room."""
    wanted = [max(len(section.rows), 1) for section in sections]
    if not room:
        return wanted
    left = room - len(sections) - (len(sections) - 1)  # headers, blank lines between
    given = [0] * len(sections)
    for least in (True, False):
        moved = True
        while moved and left > 0:
            moved = False
            for place, section in enumerate(sections):
                limit = min(wanted[place], section.least) if least else wanted[place]
                if given[place] < limit and left > 0:
                    given[place], left, moved = given[place] + 1, left - 1, True
    return given


def _table_lines(section: Section, shown: int, columns: int) -> list[Line]:
    rows = section.rows[:shown]
    headers = list(section.headers)
    if len(section.rows) > len(rows):
        headers[0] += f" {len(rows)} of {len(section.rows)}"
    cells = [[to_one_line(cell) for cell in row] for row in rows]
    widths = [max(width(cell) for cell in column) for column in zip(headers, *cells, strict=True)]
    widths[0] = max(min(widths[0], columns - sum(widths[1:]) - len(GAP) * (len(widths) - 1)), 8)
    lines: list[Line] = [[(_row_text(headers, widths, section.words), ("bold",))]]
    for row, style in zip(cells, section.styles, strict=False):
        lines.append([(_row_text(row, widths, section.words), style)])
    return lines if section.rows or not shown else [*lines, [(section.empty, ("dim",))]]


def _row_text(cells: Sequence[str], widths: Sequence[int], words: Sequence[int]) -> str:
    fitted = [
        pad(shorten(cell, size), size, right=place > 0 and place not in words)
        for place, (cell, size) in enumerate(zip(cells, widths, strict=True))
    ]
    return GAP.join(fitted).rstrip()


def _put_beside(left: Sequence[Line], right: Sequence[Line], columns: int) -> list[Line]:
    lines = []
    for place in range(max(len(left), len(right))):
        first = _cut(left[place], columns) if place < len(left) else []
        used = sum(width(text) for text, _ in first)
        second = right[place] if place < len(right) else []
        lines.append([*first, (" " * (columns - used + MIDDLE), ()), *second] if second else first)
    return lines


def _cut(line: Line, columns: int) -> Line:
    kept: Line = []
    for text, styles in line:
        room = columns - sum(width(piece) for piece, _ in kept)
        if room <= 0:
            break
        kept.append((shorten(text, room), styles))
    return kept


def text_of(lines: Sequence[Line]) -> str:
    """Return the frame as text, with colours where they may be used."""
    return "\n".join("".join(paint(text, *styles) for text, styles in line).rstrip() for line in lines)


# Screens -------------------------------------------------------------------------------------------------------------


class Screen:
    """Shows one frame after the other: a `live` one in place of the last."""

    def __init__(self, live: bool) -> None:
        self.live = live

    def draw(self, lines: Sequence[Line]) -> None:
        """Show a frame."""
        if not self.live:
            return say(text_of(lines) + "\n")
        text = text_of(lines).replace("\n", f"{_WIPE_LINE}\r\n")
        _write(f"{_HOME}{text}{_WIPE_LINE}{_WIPE_REST}")
        return None


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def terminal_size() -> tuple[int, int]:
    """Return columns and rows of the terminal; 0 rows if there is none."""
    try:
        found = os.get_terminal_size(1)
    except OSError:
        return terminal_columns(), 0
    return terminal_columns(), max(8, found.lines)


@contextmanager
def open_screen() -> Iterator[Screen]:
    """Give the screen that suits stdout; a terminal is as before afterwards."""
    live = bool(sys.stdout and sys.stdout.isatty() and os.environ.get("TERM") != "dumb")
    if live:
        sys.stdout.write(_ENTER)
    try:
        yield Screen(live)
    finally:
        if live:
            _write(_WIPE + _LEAVE)


# Keys ----------------------------------------------------------------------------------------------------------------


@contextmanager
def read_keys() -> Iterator[None]:
    """Let single keys be read from the terminal, not shown, until the end."""
    if not sys.stdin or not sys.stdin.isatty():
        yield
        return
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def wait_for_key(seconds: float) -> str:
    """Return the key that is pressed within a time, empty for none."""
    if not sys.stdin or not sys.stdin.isatty():
        import time

        time.sleep(seconds)
        return ""
    readable, _, _ = select.select([sys.stdin], [], [], seconds)
    return os.read(sys.stdin.fileno(), 16).decode("ascii", "replace")[:1] if readable else ""

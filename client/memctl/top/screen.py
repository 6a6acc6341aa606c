"""Where frames are drawn: on a terminal in place, elsewhere one after the other."""

import os
import select
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from memoryd.client.memctl.output import columns, say
from memoryd.client.memctl.top.frame import Line, text_of

_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_HOME, _WIPE_LINE, _WIPE_REST = "\x1b[H", "\x1b[K", "\x1b[J"
# A terminal that was made larger may show lines of the frame after it was left, unless they no longer exist before.
_WIPE = f"{_HOME}{_WIPE_REST}"


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
    """Return columns and rows of the terminal; 0 rows where there is none."""
    try:
        found = os.get_terminal_size(1)
    except OSError:
        return columns(), 0
    return columns(), max(8, found.lines)


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

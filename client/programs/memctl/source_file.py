"""The file of a memory for display: a short path, which on a terminal is a link (OSC 8)."""

import os

from memoryd.client.programs.memctl.output import is_terminal
from memoryd.client.programs.memctl.text_table import to_one_line
from memoryd.client.protocol import Memory


def place_text(memory: Memory) -> str:
    """Return the file and the lines of a memory, as far as they are known."""
    if memory.path is None:
        return ""
    lines = dict.fromkeys(str(line) for line in (memory.start_line, memory.end_line) if line is not None)
    path = short_path(memory.path)
    return f"{path}:{'-'.join(lines)}" if lines else path


def place_link(memory: Memory) -> str:
    """Return the file and lines on one line; on a terminal that supports links, a click opens the file."""
    return make_link(to_one_line(place_text(memory)), memory.path)


def short_path(path: str) -> str:
    """Return an absolute path in short: relative to the current folder, or with `~` for the home folder."""
    if not path.startswith("/"):
        return path
    for folder, sign in ((_current_folder(), ""), (os.path.expanduser("~"), "~/")):
        for base in {folder, os.path.realpath(folder)} if folder else ():
            if base != "/" and path.startswith(base + "/"):
                return sign + path[len(base) + 1 :]
    return path


def _current_folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it no longer exists
        return ""


def make_link(text: str, path: str | None) -> str:
    """Return text as a link to a file on a terminal, otherwise the text."""
    if not path or not path.startswith("/") or not text or not is_terminal():
        return text
    from urllib.parse import quote

    return f"\x1b]8;;file://{os.uname().nodename}{quote(os.fsencode(path))}\x1b\\{text}\x1b]8;;\x1b\\"


def shorten_home(path: str) -> str:
    """Return a path with the home folder as `~`."""
    own = os.path.expanduser("~")
    return f"~{path[len(own) :]}" if own != "/" and (path == own or path.startswith(own + "/")) else path

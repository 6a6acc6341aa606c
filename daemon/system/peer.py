"""Who is at the other end of a connection, as the kernel knows it."""

import os
import socket
import struct
from pathlib import Path
from typing import NamedTuple

_FORM = struct.Struct("3i")
_INTERPRETERS = ("python", "node", "bash", "sh", "ruby", "perl", "deno", "bun", "uv")
_NAME_CHARS = 60


class Peer(NamedTuple):
    """A process and its user."""

    pid: int
    uid: int


def find_peer(connection: socket.socket) -> Peer:
    """Return the process that connected."""
    pid, uid, _ = _FORM.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _FORM.size))
    return Peer(pid, uid)


def process_name(pid: int) -> str:
    """Return what a process is called: its program, or the script of an interpreter; empty when it has ended."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return ""
    return name_in([os.fsdecode(word) for word in words])


def name_in(words: list[str]) -> str:
    """Return the name in a command line: `python3 -P /opt/agent.py` → `agent.py`, `python -m agent` → `agent`."""
    program = Path(words[0]).name if words and words[0] else ""
    if program.rstrip("0123456789.") not in _INTERPRETERS:
        return program[:_NAME_CHARS]
    rest = words[1:]
    for place, word in enumerate(rest):
        if word == "-m" and place + 1 < len(rest):
            return rest[place + 1][:_NAME_CHARS]
        if word == "-c":
            break
        if word and not word.startswith("-"):
            return Path(word).name[:_NAME_CHARS]
    return program[:_NAME_CHARS]

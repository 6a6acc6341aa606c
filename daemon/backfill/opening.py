"""Open session files safely: only in the folders where an agent keeps them, and only the user's own files."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path

from memoryd.client.errors import Forbidden
from memoryd.client.programs.sessions.agents import PastAgent

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@contextmanager
def find(agent: PastAgent, path: str) -> Iterator[Path]:
    """Yield a path to an agent's file that follows no symbolic link below the agent's folder.

    Each folder is opened relative to the one above, and the path is relative to the last one, so that nobody can swap
    a folder for a link meanwhile. Raise `Forbidden` if the file is not where the agent keeps sessions, OSError if a
    folder is a link or does not exist.
    """
    parts = _find_parts(agent, path)
    folder = os.open(agent.find_home(), _FOLDER)
    try:
        for name in parts[:-1]:
            below = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = below
        yield Path(f"/proc/self/fd/{folder}") / parts[-1]
    finally:
        os.close(folder)


def _find_parts(agent: PastAgent, path: str) -> list[str]:
    """Return the parts of a file's path below its agent's folder."""
    for home in (str(agent.find_home()), os.path.realpath(agent.find_home())):
        below = path.removeprefix(f"{home}/")
        parts = below.split("/")
        is_below = below != path and not {"", ".", ".."}.intersection(parts)
        if is_below and any(fnmatchcase(below, pattern) for pattern in agent.files):
            return parts
    raise Forbidden(f"{path} is not where {agent.title} keeps sessions.")


def is_open(agent: PastAgent, path: str) -> bool:
    """Return whether a file can be read."""
    with suppress(OSError, Forbidden), find(agent, path) as found:
        check(found)
        return os.access(found, os.R_OK)
    return False


def check(path: Path) -> os.stat_result:
    """Return the status of a file; raise OSError if it is not a regular file of this user."""
    status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        raise OSError(errno.EPERM, "not a regular file of this user", path.name)
    return status

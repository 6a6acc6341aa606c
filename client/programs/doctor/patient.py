"""The input of the checks, each part fetched once, and their result."""

import os
import shlex
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from time import time
from typing import Any, Literal

import msgspec

from memoryd.client.errors import MemorydError
from memoryd.client.programs.memctl.local import effective_settings, is_installed, list_copies, read_output
from memoryd.client.protocol import Status
from memoryd.client.transport import paths
from memoryd.client.transport.sync import Client

DATABASE = "memoryd.sqlite"
PROC = Path("/proc")
Texts = list[str]


class Finding(msgspec.Struct):
    """The result of one check: the problem, if any, and how to fix it.

    `commands` are run by `--fix`: they lose no data and can be repeated. If there are none, `fix` is a command or
    advice that the user has to decide about.
    """

    state: Literal["ok", "warn", "fail"]
    message: str
    fix: str = ""
    commands: list[Texts] = []
    name: str = ""
    area: str = ""
    mended: bool | None = None


def report_ok(message: str) -> Finding:
    """Return a finding without a problem."""
    return Finding("ok", message)


def warn(message: str, fix: str = "", *, safe: Sequence[Texts] = ()) -> Finding:
    """Return a finding about something that works but should be fixed; `safe` are commands that fix it."""
    return Finding("warn", message, fix or "; ".join(map(shlex.join, safe)), [*safe])


def fail(message: str, fix: str = "", *, safe: Sequence[Texts] = ()) -> Finding:
    """Return a finding about something that does not work; `safe` are commands that fix it."""
    return msgspec.structs.replace(warn(message, fix, safe=safe), state="fail")


def quote_path(path: Path) -> str:
    """Return a path quoted for a shell command."""
    return shlex.quote(str(path))


class Patient:
    """The installation, its files and its daemon; `status` is None while no daemon answers, `error` says why."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.status: Status | None = None
        self.error: MemorydError | None = None
        try:
            self.status = client.status()
        except MemorydError as error:
            self.error = error
        self.answered_at = time()

    @property
    def data_dir(self) -> Path:
        """The folder of the running daemon, else the usual one."""
        return Path(self.status.data_dir) if self.status else paths.data_dir()

    @property
    def database(self) -> Path:
        """The database file, which need not exist."""
        return self.data_dir / DATABASE

    @cached_property
    def settings(self) -> dict[str, Any] | None:
        """The settings that a daemon started now would use; None if they cannot be read."""
        if not is_installed():
            return None
        try:
            return effective_settings()
        except MemorydError:
            return None

    @cached_property
    def examination(self) -> dict[str, Any] | MemorydError | None:
        """Facts read from the database file, or the error of reading it; None if there is no file.

        SQLite's own check is skipped if a daemon answers, whose check is more thorough.
        """
        if not is_installed() or not self.database.is_file():
            return None
        try:
            return examine_file(self.database, check=not self.status)
        except MemorydError as error:
            return error

    @property
    def facts(self) -> dict[str, Any] | None:
        """Facts read from the database file; None if it is missing or broken, which the check `database` reports."""
        return self.examination if isinstance(self.examination, dict) else None

    @cached_property
    def copies(self) -> list[Path]:
        """The copies in the usual folder, the one with the oldest content first; none without the daemon's packages."""
        return [Path(copy.path) for copy in list_copies(self.data_dir)] if is_installed() else []

    @staticmethod
    def read_system_file(name: str) -> str:
        """Return a file of /proc, empty if it cannot be read."""
        try:
            return (PROC / name).read_text()
        except OSError:
            return ""


def examine_file(path: Path, *, check: bool) -> dict[str, Any]:
    """Return facts about a database file; raise `MemorydError` with SQLite's message if it is broken."""
    words = [str(path), "--check"] if check else [str(path)]
    found: dict[str, Any] = msgspec.json.decode(read_output("memoryd.daemon.upkeep.examine", words))
    return found


def check_access(path: Path, mode: int) -> Finding | None:
    """Return a finding if a file belongs to another user or has wider permissions than `mode`."""
    import stat

    status = path.stat()
    if status.st_uid != os.getuid():
        return fail(f"{path} belongs to another user", f"sudo chown {os.getuid()} {quote_path(path)}")
    found = stat.S_IMODE(status.st_mode)
    if found & ~mode & 0o077:
        return fail(f"{path} has mode {found:04o}: others may access it", safe=[["chmod", f"{mode:04o}", str(path)]])
    return None

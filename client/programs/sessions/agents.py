"""The table of agents whose past sessions can be taken in.

To add one: a module with `read(path, home)`, which yields the sessions of a file, and a row here; a test wants a
sample. A reader of lines or of a database takes `start` too, the `settled` of a session that was read before; one of a
database takes `only`, the name of the one session that is wanted.
"""

import os
import stat
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from memoryd.client.programs.sessions.building import Session

ReadSessions = Callable[..., Iterator[Session]]

LINES, DOCUMENT, DATABASE = "lines", "document", "database"


class PastAgent(NamedTuple):
    """An agent: its module here and where its sessions are.

    `files` are patterns below `folder` of the user's home, or below the folder that the variable of
    `home` names, with what follows its name. `kind` is what a file is: lines that are only added, so that an offset in
    it is in bytes; a document that is written anew; a database of many sessions. Offsets in the latter two are times in
    milliseconds.
    """

    title: str
    module: str
    folder: str
    files: tuple[str, ...]
    home: str = ""
    kind: str = LINES
    file_variable: str = ""  # names a file, from `home` on

    def find_home(self) -> Path:
        """Return the folder in which this agent keeps what is its own."""
        variable, _, below = self.home.partition("/")
        given = os.environ.get(variable, "") if variable else ""
        return Path(given, below) if given else Path.home() / self.folder

    def list_files(self) -> list[Path]:
        """Return the files that may hold sessions, in order; nothing through symbolic links."""
        home = self.find_home()
        found = {path for pattern in self.files for path in home.glob(pattern)}
        if given := os.environ.get(self.file_variable, "") if self.file_variable else "":
            found.add(home / given)
        return sorted(filter(_is_plain, found))

    def list_closed(self) -> list[Path]:
        """Return the folders of sessions that may not be read."""
        above = {pattern.rpartition("/")[0] for pattern in self.files if "/" in pattern}
        names = {
            "/".join(parts[:end]) for parts in (path.split("/") for path in above) for end in range(len(parts) + 1)
        }
        home = self.find_home()
        found = {folder for name in names for folder in (home.glob(name) if name else (home,))}
        return sorted(folder for folder in found if os.path.isdir(folder) and not os.access(folder, os.R_OK | os.X_OK))

    def read(self, path: Path, start: int = 0, only: str = "") -> Iterator[Session]:
        """Yield the sessions of a file, or what was said from an offset on; of a database the one with a name."""
        read: ReadSessions = self._find_module().read
        wanted = {name: given for name, given in {"start": start, "only": only}.items() if given}
        changed_at = path.stat().st_mtime
        for session in read(path, self.find_home(), **wanted):
            session.date(session.began or changed_at, time.time())
            yield session

    def _find_module(self) -> ModuleType:
        return import_module(f"memoryd.client.programs.sessions.{self.module}")


def _is_plain(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:  # it is gone, or its folder is closed
        return False


AGENTS: dict[str, PastAgent] = {
    "claude-code": PastAgent("Claude Code", "claude_code", ".claude", ("projects/*/*.jsonl",), "CLAUDE_CONFIG_DIR"),
    "codex": PastAgent(
        "Codex",
        "codex",
        ".codex",
        tuple(
            f"{below}/rollout-*.jsonl{end}" for below in ("sessions/**", "archived_sessions") for end in ("", ".zst")
        ),
        "CODEX_HOME",
    ),
    "gemini": PastAgent(
        "Gemini CLI", "gemini", ".gemini", ("tmp/*/chats/*.json", "tmp/*/chats/*.jsonl"), "GEMINI_CLI_HOME/.gemini"
    ),
    "cline": PastAgent("Cline", "cline", ".cline", ("data/sessions/*/*.messages.json",), "CLINE_DIR", DOCUMENT),
    "copilot": PastAgent("Copilot CLI", "copilot", ".copilot", ("session-state/*/events.jsonl",), "COPILOT_HOME"),
    "opencode": PastAgent(
        "OpenCode",
        "opencode",
        ".local/share/opencode",
        ("opencode.db", "opencode-*.db"),  # a file for each channel (`packages/opencode/src/storage/db.ts`)
        "XDG_DATA_HOME/opencode",
        DATABASE,
        file_variable="OPENCODE_DB",
    ),
}

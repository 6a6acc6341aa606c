"""The table of agents whose past sessions can be imported.

To add one, write a module with `read(path, home)`, which yields the sessions of a file, and a row here; a test requires
a sample. Readers of lines and of databases also accept `start`, the `settled` of an earlier reading; those of databases
also accept `only`, the name of a single session.
"""

import os
import stat
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from memoryd.client.programs.sessions.building import Session

LINES, DOCUMENT, DATABASE = "lines", "document", "database"


class PastAgent(NamedTuple):
    """An agent: its module here and the location of its sessions.

    `files` are patterns below `folder` in the user's home. If the environment variable at the beginning of `home` is
    set, they are below the folder in it instead, followed by the rest of `home`. `kind` is the kind of a file: lines
    that are only appended, with offsets in bytes; or a document that is rewritten, or a database of many sessions, both
    with times in milliseconds as offsets.
    """

    title: str
    module: str
    folder: str
    files: tuple[str, ...]
    home: str = ""
    kind: str = LINES
    file_variable: str = ""  # an environment variable with a further file, relative to `home`

    def find_home(self) -> Path:
        """Return the agent's own folder."""
        variable, _, below = self.home.partition("/")
        given = os.environ.get(variable, "") if variable else ""
        return Path(given, below) if given else Path.home() / self.folder

    def list_files(self) -> list[Path]:
        """Return the files that may contain sessions, sorted, without symbolic links."""
        home = self.find_home()
        found = {path for pattern in self.files for path in home.glob(pattern)}
        if given := os.environ.get(self.file_variable, "") if self.file_variable else "":
            found.add(home / given)
        return sorted(filter(_is_plain, found))

    def list_closed(self) -> list[Path]:
        """Return the folders with sessions for which the user has no read permission."""
        above = {pattern.rpartition("/")[0] for pattern in self.files if "/" in pattern}
        names = {
            "/".join(parts[:end]) for parts in (path.split("/") for path in above) for end in range(len(parts) + 1)
        }
        home = self.find_home()
        found = {folder for name in names for folder in (home.glob(name) if name else (home,))}
        return sorted(folder for folder in found if os.path.isdir(folder) and not os.access(folder, os.R_OK | os.X_OK))

    def read(self, path: Path, start: int = 0, only: str = "") -> Iterator[Session]:
        """Yield the sessions of a file from an offset on; with `only`, yield just that session of a database."""
        read = import_module(f"memoryd.client.programs.sessions.{self.module}").read
        wanted = {name: given for name, given in {"start": start, "only": only}.items() if given}
        changed_at = path.stat().st_mtime
        for session in read(path, self.find_home(), **wanted):
            session.date(session.began or changed_at, time.time())
            yield session


def _is_plain(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:  # it no longer exists, or its folder is not readable
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
        ("opencode.db", "opencode-*.db"),  # one file per channel (`packages/opencode/src/storage/db.ts`)
        "XDG_DATA_HOME/opencode",
        DATABASE,
        file_variable="OPENCODE_DB",
    ),
}

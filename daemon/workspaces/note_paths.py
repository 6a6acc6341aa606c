"""Resolve the name of a note, or `today`, to the path of a file that a workspace indexes."""

import os
import re
from datetime import UTC, datetime

import msgspec

from memoryd.client.errors import Invalid
from memoryd.daemon.core.limits import MAX_PATH_BYTES
from memoryd.daemon.workspaces.chunks import absolute_path
from memoryd.daemon.workspaces.documents import ignore
from memoryd.daemon.workspaces.documents.globs import Globs
from memoryd.daemon.workspaces.tables.workspaces import StoredWorkspace

TODAY = "today"
_DAILY = ".obsidian/daily-notes.json"
# The tokens of moment.js formats, which Obsidian uses for the names of daily notes.
_TOKENS = {
    "YYYY": "%Y",
    "YY": "%y",
    "MMMM": "%B",
    "MMM": "%b",
    "MM": "%m",
    "DD": "%d",
    "dddd": "%A",
    "ddd": "%a",
    "ww": "%V",
    "WW": "%V",
    "GGGG": "%G",
    "gggg": "%G",
}
_TOKEN = re.compile(r"\[([^\[\]]{0,60})\]|" + "|".join(_TOKENS))
_FOLDER = "memory/"


class _DailyNotes(msgspec.Struct):
    """Obsidian's settings for daily notes."""

    folder: str = ""
    format: str = ""


def relative_path(workspace: StoredWorkspace, file: str, now: float, is_local: bool) -> str:
    """Return the path of a file relative to the root; raise `Invalid` if the workspace would not index it."""
    moment = datetime.fromtimestamp(now) if is_local else datetime.fromtimestamp(now, UTC)
    daily = _find_daily_note(workspace, moment) if file.strip() == TODAY else ""
    given = _check_within(workspace, daily or file.strip())
    folder, slash, name = given.rpartition("/")
    is_short = not name.endswith(".md")
    if name == TODAY:
        name = f"{moment:%Y-%m-%d}"
    if is_short and name:
        given = f"{folder}{slash}{name}.md"
    possible = (given, f"{_FOLDER}{given}") if is_short else (given,)  # a name with .md is used as given
    globs = Globs(workspace.globs)
    named = [path for path in possible if globs.match(path)]
    if not named:
        patterns = ", ".join(workspace.globs)
        raise Invalid(
            f"{file[:200]!r} is not a file that {workspace.namespace} indexes ({patterns}); name one with `file`."
        )
    chosen = next((path for path in named if os.path.lexists(workspace.root / path)), named[0])
    if _is_ignored(workspace, chosen):
        raise Invalid(f"{workspace.root}/{chosen} is ignored by git, so it would not be found.")
    return chosen


def _find_daily_note(workspace: StoredWorkspace, moment: datetime) -> str:
    """Return the path of the day's note by the settings of an Obsidian vault, empty if there are none."""
    try:
        found = msgspec.json.decode((workspace.root / _DAILY).read_bytes(), type=_DailyNotes)
    except (OSError, msgspec.DecodeError):
        return ""
    name = _TOKEN.sub(lambda match: match[1] or f"{moment:{_TOKENS[match[0]]}}", found.format or "YYYY-MM-DD")
    folder = found.folder.strip("/")
    return f"{folder}/{name}.md" if folder else f"{name}.md"


def _check_within(workspace: StoredWorkspace, file: str) -> str:
    if len(file.encode()) > MAX_PATH_BYTES:
        raise Invalid(f"The file {file[:60]!r} … is longer than {MAX_PATH_BYTES} bytes.")
    root = absolute_path(workspace, "")
    if file.startswith("/"):
        if not os.path.normpath(file).startswith(root):
            raise Invalid(f"{file[:200]} is outside the workspace {workspace.root}.")
        file = os.path.normpath(file)[len(root) :]
    parts = file.split("/")
    if "\0" in file or not {"", ".", ".."}.isdisjoint(parts):
        raise Invalid(f"{file[:200]!r} is not a path below the workspace {workspace.root}.")
    if any(part.startswith(".") for part in parts):
        raise Invalid(f"{file[:200]!r} is hidden, and hidden files are not indexed.")
    if any(len(part.encode()) > 250 for part in parts) or any(ord(c) < 32 for c in file):
        raise Invalid(f"{file[:60]!r} cannot be the name of a file.")
    return file


def _is_ignored(workspace: StoredWorkspace, path: str) -> bool:
    """Return whether git ignores a file, or one of its folders."""
    chain = ignore.read_enclosing(workspace.root)
    below = ""
    for part in path.split("/"):
        chain = [*chain, *ignore.read_folder(workspace.root / below, below=below)]
        inner = f"{below}{part}"
        if ignore.is_ignored(inner if inner == path else f"{inner}/", chain):
            return True
        below = f"{inner}/"
    return False

"""Offer to index the notes that agents keep themselves: those of Claude Code for each project, and those of Codex.

Each folder of notes becomes a workspace; the last part of its namespace names the agent, and the daemon only reads it.
Files in repositories (CLAUDE.md, AGENTS.md) are not included, since agents read them anyway.
"""

import os
import re
from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from memoryd.client import calls
from memoryd.client.errors import MemorydError
from memoryd.client.programs.hooks.hosts import HOSTS
from memoryd.client.programs.memctl.link import ask_running, send
from memoryd.client.programs.memctl.output import agrees, print_note
from memoryd.client.programs.memctl.text_table import count_text
from memoryd.client.projects import known as projects
from memoryd.client.projects.project import project_namespace

CLAUDE_CODE, CODEX = "claude-code", "codex"
_FOLDERS = {CLAUDE_CODE: (".claude", "projects/*/memory"), CODEX: (".codex", "memories")}
# Of Codex, neither raw_memories.md, from which it makes MEMORY.md, nor its skills are indexed.
_GLOBS = {CLAUDE_CODE: ("**/*.md",), CODEX: ("MEMORY.md", "memory_summary.md", "rollout_summaries/*.md")}
_MAX_LINES, _MAX_LINE_BYTES = 50, 1024 * 1024  # how much of a session's file is searched for the session's folder


def declare(parser: ArgumentParser) -> None:
    """Declare the option that answers the offer in advance."""
    text = "index the notes that it keeps itself too, or do not (default: ask, on a terminal)"
    parser.add_argument("--notes", action=BooleanOptionalAction, help=text)


def offer(args: Namespace) -> None:
    """Add an agent's own notes as workspaces if the user wants that; asks only on a terminal."""
    found = list_folders(args.agent, args.project) if args.agent in _FOLDERS and args.notes is not False else []
    if not found:
        return
    with suppress(MemorydError):  # no daemon runs
        known = {one.root for one in ask_running(args, calls.workspaces())}
        found = [path for path in found if str(path) not in known]
    if not found:
        return
    title, number = HOSTS[args.agent].title, count_text(len(found), "folder")
    question = (
        f"{title} has {number} of notes of its own. Index them for searches and other agents? They are only read."
    )
    if args.notes is None and not agrees(question):
        print_note(f"memctl: its own notes: memctl hooks install {args.agent} --notes")
        return
    if added := sum(_add(args, path) for path in found):
        print_note(f"memctl: {count_text(added, 'folder')} of notes of {title} added; they are watched, never changed.")


def _add(args: Namespace, path: Path) -> bool:
    namespace = find_namespace(path)
    if namespace is None:
        print_note(f"memctl: {path} was not added: its project is not known yet. Run this again after a session there.")
        return False
    try:
        send(args, calls.add_workspace(str(path), namespace=namespace, globs=list(_GLOBS[args.agent])))
        send(args, calls.index_workspace(str(path)))
    except MemorydError as error:
        print_note(f"memctl: {path} was not added: {error.message}")
        return False
    return True


def list_folders(agent: str, project: Path | None) -> list[Path]:
    """Return the folders of an agent's notes, of all projects or of one."""
    found = [path for path in sorted(_find_home(agent).glob(_FOLDERS[agent][1])) if next(path.glob("*.md"), None)]
    if project is None:
        return found
    own = f"{project_namespace(project, note=False)}/{agent}"
    return [path for path in found if find_namespace(path, note=False) == own]


def find_namespace(path: Path, note: bool = True) -> str | None:
    """Return the namespace for a folder of an agent's own notes; None for any other folder or an unknown project.

    Without `note` a new project is not added to the table of projects.
    """
    if path == _find_home(CODEX) / "memories":
        return CODEX
    if path.name != "memory" or path.parent.parent != _find_home(CLAUDE_CODE) / "projects":
        return None
    folder = _find_project(path.parent)
    return None if folder is None else f"{project_namespace(folder, note)}/{CLAUDE_CODE}".strip("/")


def _find_home(agent: str) -> Path:
    return Path(os.environ.get(HOSTS[agent].home) or Path.home() / _FOLDERS[agent][0]).resolve()


def _find_project(kept: Path) -> str | None:
    """Return the project's folder for a folder in which Claude Code keeps sessions and notes.

    The name of that folder is the path of the project with `-` for everything but letters and digits. The path cannot
    be restored from it, so it is compared with those of known folders.
    """
    with suppress(OSError, MemorydError):
        candidates = [
            *_list_cwds(kept),
            *(path for one in projects.read_table()["projects"] for path in one["folders"]),
        ]
        return next((one for one in candidates if re.sub(r"[^a-zA-Z0-9]", "-", one) == kept.name), None)
    return None


def _list_cwds(kept: Path) -> Iterator[str]:
    """Yield the working directories named in the session files of a folder."""
    for path in sorted(kept.glob("*.jsonl")):
        with suppress(OSError), path.open("rb") as file:
            for _ in range(_MAX_LINES):
                if not (line := file.readline(_MAX_LINE_BYTES)):
                    break
                with suppress(msgspec.MsgspecError):
                    entry = msgspec.json.decode(line)
                    if isinstance(entry, dict) and isinstance(cwd := entry.get("cwd"), str):
                        yield cwd

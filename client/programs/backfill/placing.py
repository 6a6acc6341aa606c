"""Find the project of a turn by its folder, which may have been deleted or be a path of another system.

A deleted folder belongs to the checkout above it, to the checkout of its worktree, or else to the folder in which the
session began. A Windows path is mapped to its mount in WSL; without one it is a project with the name of the folder in
which the session began. Relative paths are not resolved.
"""

import os
import re
import tempfile
from functools import lru_cache

from memoryd.client.patterns import compile_late
from memoryd.client.programs.sessions.building import Session
from memoryd.client.projects import known as projects
from memoryd.client.projects.project import project_namespace, project_root

_DRIVE = compile_late(r"([A-Za-z]):[\\/]+(.*)", re.DOTALL)
_WSL = compile_late(r"[\\/]{2}wsl(?:\$|\.localhost)[\\/][^\\/]+([\\/].*)?", re.DOTALL | re.IGNORECASE)
_HOME = compile_late(r"[A-Za-z]:\\(?:Users\\[^\\]+)?", re.IGNORECASE)
_TEMPORARY = ("/tmp", "/var/tmp", "/private/tmp", "/var/folders", "/private/var/folders")


def find_place(folder: str, session: Session) -> str:
    """Return the top folder of the project that a folder belongs to, empty if it cannot be determined.

    The path of a project on another system is returned as that system writes it.
    """
    folder = folder or session.folder
    for worktree, checkout in session.worktrees.items():
        if is_within(folder, worktree) and not os.path.isdir(worktree):
            folder = checkout
    return _find_root(folder, session.folder)


@lru_cache(1000)
def _find_root(folder: str, first: str) -> str:
    here, began = map_path(folder), map_path(first)
    if not here:
        return ""
    if not here.startswith("/"):
        return began if is_within(here, began) else here
    root = project_root(here)
    if root == here and not os.path.isdir(here) and is_within(here, began):
        return project_root(began)
    return root


@lru_cache(1000)
def name_place(root: str, note: bool) -> str:
    """Return the namespace that hooks use for a project; `note`: add a new project to the table of projects."""
    if root.startswith("/"):
        return project_namespace(root, note)
    name = root.rpartition("\\")[2]
    return "" if _HOME.fullmatch(root) or not name else projects.namespace_of(root, name, note)


@lru_cache(1000)
def is_temporary(folder: str) -> bool:
    """Return whether a folder is below one for temporary files, and not below the user's home."""
    if is_within(folder, os.path.realpath(os.path.expanduser("~"))):
        return False
    return any(is_within(folder, place) for place in (*_TEMPORARY, tempfile.gettempdir()))


def is_within(folder: str, top: str) -> bool:
    """Return whether a folder is `top` or below it."""
    return bool(top) and (folder == top or folder.startswith((f"{top}/", f"{top}\\")))


@lru_cache(1000)
def map_path(path: str) -> str:
    """Return the path on this system, or the Windows path if it is not mounted here; empty for a relative path."""
    if found := _WSL.fullmatch(path):
        return (found[1] or "/").replace("\\", "/")
    if found := _DRIVE.fullmatch(path):
        mounted = f"/mnt/{found[1].lower()}"
        rest = re.sub(r"[\\/]+", "/", found[2]).strip("/")
        if os.path.isdir(f"{mounted}/{rest.partition('/')[0]}"):
            return f"{mounted}/{rest}".rstrip("/")
        return f"{found[1].upper()}:\\{rest.replace('/', chr(92))}"
    return os.path.normpath(path) if path.startswith("/") and "\0" not in path else ""

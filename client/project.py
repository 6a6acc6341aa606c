"""Which project a folder belongs to, and the namespace of its memories: named like a workspace, after the folder.

The project is the git checkout that holds the folder, else the folder itself. A linked worktree counts as its main
checkout, so that parallel branches share one memory. A project that was met before is found by one look per folder
upwards and two small files; `projects` distinguishes those of the same name.
"""

import os

from memoryd.client import projects

_WORKTREE = "/.git/worktrees/"
_NOT_A_PROJECT = ("/", "/root", "/home", "/tmp", "/var/tmp")


def project_root(folder: str | os.PathLike[str]) -> str:
    """Return the top folder of the git checkout that holds a folder, else the folder; absolute, symlinks resolved."""
    start = at = os.path.realpath(os.path.expanduser(os.fspath(folder)))
    home = os.path.realpath(os.path.expanduser("~"))
    while not os.path.lexists(os.path.join(at, ".git")) or at == home:  # who keeps a home in git has projects in it
        above = os.path.dirname(at)
        if above == at:
            return start
        at = above
    return _main_checkout(at)


def project_namespace(folder: str | os.PathLike[str]) -> str:
    """Return the namespace of a folder's project: its own, or the root (an empty text) where there is no project.

    The home folder and the folders that everybody shares are none. Never raises: see `projects`.
    """
    root = project_root(folder)
    if root in _NOT_A_PROJECT or root == os.path.realpath(os.path.expanduser("~")):
        return ""
    name = "".join(character for character in os.path.basename(root) if character.isprintable()).strip()
    name = name.encode("utf-8", "ignore")[: projects.MAX_NAME_BYTES].decode("utf-8", "ignore")
    return projects.namespace_of(root, name) if name else ""


def _main_checkout(top: str) -> str:
    """Return the checkout that a linked worktree belongs to; any other is its own."""
    try:
        with open(os.path.join(top, ".git"), encoding="utf-8") as file:
            said = file.read(4096)
    except (OSError, UnicodeDecodeError):  # a folder, as in most checkouts
        return top
    place = os.path.join(top, said.removeprefix("gitdir:").strip())
    main, found, _ = place.partition(_WORKTREE)
    return os.path.realpath(main) if found and os.path.isdir(main) else top

"""Which project a folder belongs to, and the namespace of its memories: named like a workspace, after the folder.

Agents' hooks and MCP servers have the namespace of whatever folder they work in. Other clients, memctl among them,
have it in a git checkout and where an agent has worked before; elsewhere they are at the root, which is the person's.

The project is the git checkout that holds the folder, else the folder itself. A linked worktree counts as its main
checkout, so that parallel branches share one memory, also when it is gone: `projects` remembers it. A project that was
met before is found by one look per folder upwards and two small files; `projects` distinguishes those of the same name.
"""

import os

from memoryd.client.projects import known as projects

_WORKTREE = "/.git/worktrees/"
_NOT_A_PROJECT = ("/", "/root", "/home", "/tmp", "/var/tmp")


def project_root(folder: str | os.PathLike[str]) -> str:
    """Return the top folder of the git checkout that holds a folder, else the folder; absolute, symlinks resolved."""
    top, is_checkout = _find_top(folder)
    if is_checkout:
        return _main_checkout(top)
    return top if os.path.isdir(top) else projects.find_checkout(top) or top


def _find_top(folder: str | os.PathLike[str]) -> tuple[str, bool]:
    """Return the top folder of the checkout or worktree that holds a folder, else the folder and False."""
    start = at = os.path.realpath(os.path.expanduser(os.fspath(folder)))
    home = os.path.realpath(os.path.expanduser("~"))
    while not os.path.lexists(os.path.join(at, ".git")) or at == home:  # who keeps a home in git has projects in it
        above = os.path.dirname(at)
        if above == at:
            return start, False
        at = above
    return at, True


def project_namespace(folder: str | os.PathLike[str], note: bool = True) -> str:
    """Return the namespace of a folder's project: its own, or the root (an empty text) where there is no project.

    The home folder and the folders that everybody shares are none. Without `note` nothing is written down of a new
    project. Never raises: see `projects`.
    """
    root = project_root(folder)
    if root in _NOT_A_PROJECT or root == os.path.realpath(os.path.expanduser("~")):
        return ""
    name = "".join(character for character in os.path.basename(root) if character.isprintable()).strip()
    name = name.encode("utf-8", "ignore")[: projects.MAX_NAME_BYTES].decode("utf-8", "ignore")
    return projects.namespace_of(root, name, note, _find_top(folder)[0]) if name else ""


def namespace_of_environment() -> str | None:
    """Return the namespace that the environment names (`/` is the root), None where it names none.

    A token says it, too: the daemon places its bearer.
    """
    if named := os.environ.get("MEMORYD_NAMESPACE"):
        return named.strip("/")
    return "" if os.environ.get("MEMORYD_TOKEN") else None


def current_namespace(note: bool = True) -> str:
    """Return the namespace of the project around the current folder, the root (an empty text) where there is none.

    A folder without git is a project when an agent has worked in it. Without `note` a new one is not written down.
    """
    try:
        root = project_root(os.getcwd())
    except OSError:  # the current folder no longer exists
        return ""
    is_project = os.path.lexists(os.path.join(root, ".git")) or projects.is_known(root)
    return project_namespace(root, note) if is_project else ""


def _main_checkout(top: str) -> str:
    """Return the checkout that a linked worktree belongs to; any other is its own."""
    try:
        with open(os.path.join(top, ".git"), encoding="utf-8") as file:
            said = file.read(4096)
    except (OSError, UnicodeDecodeError):  # a folder, as in most checkouts
        return top
    place = os.path.join(top, said.removeprefix("gitdir:").strip())
    main, separator, _ = place.partition(_WORKTREE)
    return os.path.realpath(main) if separator and os.path.isdir(main) else top

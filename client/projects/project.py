"""Find the project of a folder and the project's namespace, which like a workspace's is named after the folder.

Hooks and MCP servers always use the namespace of the folder that they work in. Other clients, such as memctl, do so in
git checkouts and in folders in which an agent has worked before; elsewhere they use the root, which is the user's.

The project is the git checkout that contains the folder, else the folder itself. A linked worktree belongs to its main
checkout, so that parallel branches share one memory. It still does after it was deleted, because the table of projects
(`known`) stores it. Finding a known project takes one check per parent folder and two small files.
"""

import os

from memoryd.client.projects import known as projects

_WORKTREE = "/.git/worktrees/"
_NOT_A_PROJECT = ("/", "/root", "/home", "/tmp", "/var/tmp")


def project_root(folder: str | os.PathLike[str]) -> str:
    """Return the top folder of the git checkout that contains a folder, else the folder; symlinks are resolved."""
    top, is_checkout = _find_top(folder)
    if is_checkout:
        return _main_checkout(top)
    return top if os.path.isdir(top) else projects.find_checkout(top) or top


def _find_top(folder: str | os.PathLike[str]) -> tuple[str, bool]:
    """Return the top folder of the checkout or worktree that contains a folder and True, else the folder and False."""
    start = at = os.path.realpath(os.path.expanduser(os.fspath(folder)))
    home = os.path.realpath(os.path.expanduser("~"))
    while not os.path.lexists(os.path.join(at, ".git")) or at == home:  # a home folder kept in git is not a project
        above = os.path.dirname(at)
        if above == at:
            return start, False
        at = above
    return at, True


def project_namespace(folder: str | os.PathLike[str], note: bool = True) -> str:
    """Return the namespace of a folder's project, or the root (an empty text) if it has none.

    The home folder and folders shared by all users are not projects. Without `note` a new project is not added to the
    table. Never raises: see `projects`.
    """
    root = project_root(folder)
    if root in _NOT_A_PROJECT or root == os.path.realpath(os.path.expanduser("~")):
        return ""
    name = "".join(character for character in os.path.basename(root) if character.isprintable()).strip()
    name = name.encode("utf-8", "ignore")[: projects.MAX_NAME_BYTES].decode("utf-8", "ignore")
    return projects.namespace_of(root, name, note, _find_top(folder)[0]) if name else ""


def namespace_of_environment() -> str | None:
    """Return the namespace in the environment (`/` is the root), None if it has none.

    With a token it is empty, since the daemon knows the token's namespace.
    """
    if named := os.environ.get("MEMORYD_NAMESPACE"):
        return named.strip("/")
    return "" if os.environ.get("MEMORYD_TOKEN") else None


def current_namespace(note: bool = True) -> str:
    """Return the namespace of the current folder's project, or the root (an empty text) if it has none.

    A folder without git is a project if an agent has worked in it. Without `note` a new one is not added to the table.
    """
    try:
        root = project_root(os.getcwd())
    except OSError:  # the current folder no longer exists
        return ""
    is_project = os.path.lexists(os.path.join(root, ".git")) or projects.is_known(root)
    return project_namespace(root, note) if is_project else ""


def _main_checkout(top: str) -> str:
    """Return the main checkout of a linked worktree; for any other checkout, itself."""
    try:
        with open(os.path.join(top, ".git"), encoding="utf-8") as file:
            said = file.read(4096)
    except (OSError, UnicodeDecodeError):  # a folder, as in most checkouts
        return top
    place = os.path.join(top, said.removeprefix("gitdir:").strip())
    main, separator, _ = place.partition(_WORKTREE)
    return os.path.realpath(main) if separator and os.path.isdir(main) else top

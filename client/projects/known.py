"""The table of projects, a file in the data folder: which namespace belongs to which repository or folder.

The first process that sees a project, such as a hook, adds it to the table. The first project with a name gets it as
its namespace, the next one is called `api-2`. A project is identified by the remote of its git checkout, so clones and
moved checkouts are recognised, or without a remote by its folder. A moved folder without a remote, or one with another
remote, is a new project; the table stores which one it may have been, to ask the user once (`take_origin`).

The file is replaced as a whole under a lock. If it cannot be read or written, the name of the folder is used, so that
hooks never fail. `projects.former` has the names that were in use before the table existed.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NotRequired, TypedDict

import msgspec

from memoryd.client.errors import Invalid, MemorydError
from memoryd.client.projects import roots as shared_roots
from memoryd.client.projects.checkout import list_sources, remote_of
from memoryd.client.projects.roots import Roots
from memoryd.client.transport import paths, trust
from memoryd.client.transport.lock import take

FILE, LOCK, FORMER = "projects.json", "projects.lock", "projects.former"
MAX_NAME_BYTES = 512  # the longest namespace
_MAX_FOLDERS = 16  # per project
_MAX_WORKTREES = 50  # per project
_MAX_PROJECTS = 1000  # if there are more, projects without existing folders are removed
_LOCK_LIMIT_S = 0.5


class Project(TypedDict):
    """A project: its namespace, its remote (may be empty), and its folders, the most recently used one last.

    Folders and worktrees that no longer exist are kept, since past sessions refer to them. `origin` is the namespace of
    the project that this new one may be, until the user was asked. `past` are former folders in tables of the previous
    version.
    """

    namespace: str
    remote: str
    folders: list[str]
    origin: NotRequired[str]
    worktrees: NotRequired[list[str]]
    past: NotRequired[list[str]]


class ProjectTable(TypedDict):
    """All projects in the order in which they were added."""

    projects: list[Project]


class FolderFacts(TypedDict):
    """A folder: its path, its default name, its remote, and its namespace in a shared root."""

    path: str
    name: str
    remote: str
    place: NotRequired[str]


def namespace_of(path: str, name: str, note: bool = True, top: str = "") -> str:
    """Return the namespace of the project at a folder whose default name is `name`; `note` adds a new one to the table.

    `top` is the worktree if the folder is its main checkout; it is added to the project. A new checkout of a repository
    in a shared root gets its namespace there; no other project gets a namespace in a root, or the name of one.
    """
    remote = remote_of(path) if os.path.isabs(path) else ""  # relative: a path of another system (backfill/placing)
    roots = shared_roots.read_roots()
    place = find_place(path, roots)
    name = f"{name}-2" if name in roots else name
    worktree = top if note and top != path and os.path.isdir(top) else ""
    try:
        table = read_table()
        known = _find_by_folder(table, path)
        is_same = known and (remote in (known["remote"], None) or not os.path.isdir(path))  # missing: of a past session
        if known and is_same and not is_stray(known, path, place, roots):
            if worktree and worktree not in known.get("worktrees", []):
                with suppress(OSError), change_table() as changed:
                    _add_worktree(_find_by_folder(changed, path), worktree)
            return known["namespace"]
        if remote is None:
            return name
        folder = FolderFacts(path=path, name=name, remote=remote, place=place)
        with suppress(OSError):  # the disk is full or read-only, or the lock is held too long
            if note:
                with change_table() as changed:
                    project = assign_project(changed, folder, read_former(), roots)
                    _add_worktree(project, worktree)
                    return project["namespace"]
        return assign_project(table, folder, read_former(), roots)["namespace"]
    except (OSError, MemorydError, UnicodeError):  # UnicodeError: the path is not valid text
        return name


def find_place(path: str, roots: Roots) -> str:
    """Return the namespace of a folder in a shared root by its remotes, empty for none."""
    return shared_roots.find_place(list_sources(path), roots) if roots and os.path.isabs(path) else ""


def is_stray(project: Project, path: str, place: str, roots: Roots) -> bool:
    """Return whether a project has a namespace in a shared root that its folder is not entitled to."""
    namespace = project["namespace"]
    return bool(shared_roots.find_root(namespace, roots)) and namespace != place and os.path.isdir(path)


def _add_worktree(project: Project | None, worktree: str) -> None:
    if project and worktree:
        others = [path for path in project.get("worktrees", []) if path != worktree]
        project["worktrees"] = [*others[1 - _MAX_WORKTREES :], worktree]


def find_checkout(path: str) -> str:
    """Return the checkout of a former worktree that contained a folder, empty if unknown."""
    with suppress(OSError, MemorydError, UnicodeError):
        for project in read_table()["projects"]:
            for worktree in project.get("worktrees", []):
                if (path == worktree or path.startswith(f"{worktree}/")) and not os.path.isdir(worktree):
                    return project["folders"][-1] if project["folders"] else ""
    return ""


def take_origin(path: str) -> tuple[Project, str] | None:
    """Return a new project and the namespace of the known one that it may be; only once for each project."""
    with suppress(OSError, MemorydError, UnicodeError):
        known = _find_by_folder(read_table(), path)
        if known and "origin" in known:
            with change_table() as table:
                project = _find_by_folder(table, path)
                if project and _is_claimed(table, origin := project.pop("origin", "")):
                    return project, origin
    return None


def is_known(path: str) -> bool:
    """Return whether a folder belongs to a project in the table."""
    try:
        return _find_by_folder(read_table(), path) is not None
    except (OSError, MemorydError, UnicodeError):
        return False


def is_claimed(namespace: str) -> bool:
    """Return whether some project has the namespace."""
    try:
        return _is_claimed(read_table(), namespace)
    except (OSError, MemorydError, UnicodeError):
        return False


# Assigning folders to projects ---------------------------------------------------------------------------------------


def assign_project(
    table: ProjectTable, folder: FolderFacts, taken: Sequence[str], roots: Roots | None = None
) -> Project:
    """Add a folder to its project, or to a new one, and return the project."""
    place = folder.get("place", "")
    here = _find_by_folder(table, folder["path"])
    if here and is_stray(here, folder["path"], place, roots or {}):
        here["folders"].remove(folder["path"])
        here = None
    project = _find_by_remote(table, folder, taken)
    if project and is_stray(project, folder["path"], place, roots or {}):
        project = None
    if project is None and here and here["remote"] in ("", folder["remote"]):  # the remote may have been added later
        project = here
    if project is None:
        project = _add_project(table, folder, taken)
        was_here = here if here and here["folders"][-1] == folder["path"] else None
        if origin := was_here or _find_gone(table, folder):
            project["origin"] = origin["namespace"]
    if here:
        here["folders"].remove(folder["path"])
    project["folders"] = [*project["folders"][1 - _MAX_FOLDERS :], folder["path"]]
    project["remote"] = folder["remote"]
    return project


def _find_by_folder(table: ProjectTable, path: str) -> Project | None:
    return next((project for project in table["projects"] if path in project["folders"]), None)


def _find_by_remote(table: ProjectTable, folder: FolderFacts, taken: Sequence[str]) -> Project | None:
    """Return the project with the same remote; of several, one whose folders no longer exist.

    A clone whose own name was in use before the table existed keeps that name, and so its memories.
    """
    if not folder["remote"]:
        return None
    same = [project for project in table["projects"] if project["remote"] == folder["remote"]]
    if folder["name"] in taken and not _is_claimed(table, folder["name"]):
        return None
    return next((project for project in same if is_gone(project)), same[0] if same else None)


def _find_gone(table: ProjectTable, folder: FolderFacts) -> Project | None:
    """Return the latest project without existing folders that had a folder of this name and no other remote."""
    name = os.path.basename(folder["path"])
    for project in reversed(table["projects"]):
        is_alike = any(os.path.basename(path) == name for path in project["folders"])
        if is_alike and not (project["remote"] and folder["remote"]) and is_gone(project):
            return project
    return None


def _add_project(table: ProjectTable, folder: FolderFacts, taken: Sequence[str]) -> Project:
    place, number = folder.get("place", ""), 1
    namespace = place or folder["name"]
    while not place and (_is_claimed(table, namespace) or (number > 1 and namespace in taken)):
        number += 1
        ending = f"-{number}"
        kept = folder["name"].encode("utf-8", "ignore")[: MAX_NAME_BYTES - len(ending)].decode("utf-8", "ignore")
        namespace = kept + ending
    project = Project(namespace=namespace, remote="", folders=[])
    table["projects"].append(project)
    return project


def _is_claimed(table: ProjectTable, namespace: str) -> bool:
    return any(project["namespace"] == namespace for project in table["projects"])


def is_gone(project: Project) -> bool:
    """Return whether none of a project's folders exists any more."""
    return not any(os.path.isdir(path) for path in project["folders"])


# Restored copies -----------------------------------------------------------------------------------------------------


def take_over(coming: Sequence[Project]) -> tuple[list[Project], dict[str, str]]:
    """Take over the projects of a restored copy.

    Return the copy's projects without an existing folder, and the folders that lost their namespace, with that. Folders
    that only the present table has stay with their project. A present project whose namespace belongs to another one in
    the copy gets a new namespace when it is used again.
    """
    if not coming:
        return [], {}
    folders = {folder for project in coming for folder in project["folders"]}
    names = {project["namespace"] for project in coming}
    gone = list(filter(is_gone, coming))
    lost: dict[str, str] = {}
    with change_table() as table:
        pairs = [(one, other) for one in table["projects"] for other in coming if _is_same(one, other, other in gone)]
        same = {other["namespace"] for _, other in pairs}
        own: list[Project] = []
        for project in table["projects"]:
            project["folders"] = [folder for folder in project["folders"] if folder not in folders]
            if others := [other for one, other in pairs if one is project]:
                inherit_folders(others[0], project, first=False)
            elif project["folders"] and (project["namespace"] not in names or project["namespace"] in same):
                own.append(project)
            else:
                lost |= dict.fromkeys(filter(os.path.isdir, project["folders"]), project["namespace"])
        table["projects"] = [*coming, *own]
        here = {project["namespace"] for project in table["projects"] if not is_gone(project)}
    return [project for project in coming if project["namespace"] not in here], lost


def _is_same(here: Project, coming: Project, is_gone: bool) -> bool:
    """Return whether two projects with the same namespace are the same, by remote or folders."""
    if here["namespace"] != coming["namespace"]:
        return False
    if here["remote"] and coming["remote"]:
        return here["remote"] == coming["remote"]
    return bool({*here["folders"]} & {*coming["folders"]}) or (is_gone and not (here["remote"] or coming["remote"]))


def inherit_folders(project: Project, other: Project, first: bool = True) -> None:
    """Add the folders of another project, before its own ones (`first`) or after them."""
    parts = [other["folders"], project["folders"]] if first else [project["folders"], other["folders"]]
    project["folders"] = [*parts[0], *parts[1]][-_MAX_FOLDERS:]


# The file ------------------------------------------------------------------------------------------------------------


def read_table(folder: str = "") -> ProjectTable:
    """Return the table in a data folder, empty if there is no file.

    Raise OSError, `Invalid` if it is damaged, or `Untrusted`.
    """
    path = os.path.join(folder or paths.data_folder(), FILE)
    try:
        with open(path, "rb") as file:
            trust.check_owner(path, os.fstat(file.fileno()).st_uid)
            table = msgspec.json.decode(file.read(), type=ProjectTable)
    except FileNotFoundError:
        return ProjectTable(projects=[])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"The table of projects {path} is damaged ({error}); correct it or move it away.") from None
    known = {path for project in table["projects"] for path in project["folders"]}
    for project in table["projects"]:
        past = [path for path in project.pop("past", []) if path not in known]
        project["folders"] = [*past, *project["folders"]]
    return table


@contextmanager
def change_table() -> Iterator[ProjectTable]:
    """Yield the table under a lock, and write it if the block raises nothing."""
    folder = paths.data_folder()
    os.makedirs(folder, mode=0o700, exist_ok=True)
    trust.check_data_folder(folder)
    lock = os.open(os.path.join(folder, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        take(lock, _LOCK_LIMIT_S)
        table = read_table()
        yield table
        _prune(table)
        _exchange(os.path.join(folder, FILE), msgspec.json.format(msgspec.json.encode(table), indent=1))
    finally:
        os.close(lock)


def _exchange(path: str, data: bytes) -> None:
    """Replace a file atomically and sync it."""
    part = f"{path}.part"
    file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        while data:
            data = data[os.write(file, data) :]
        os.fsync(file)
    finally:
        os.close(file)
    os.rename(part, path)
    with suppress(OSError):
        directory = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        os.fsync(directory)
        os.close(directory)


def _prune(table: ProjectTable) -> None:
    """Remove the oldest projects without existing folders while there are too many."""
    for project in list(table["projects"]):
        if len(table["projects"]) <= _MAX_PROJECTS:
            return
        if is_gone(project):
            table["projects"].remove(project)


def note_former(folder: str, names: Iterable[str]) -> None:
    """Record the namespaces in use, once, at the first start of a daemon that has the table."""
    path = os.path.join(folder, FORMER)
    if not os.path.exists(path):
        _exchange(path, "".join(f"{name}\n" for name in sorted(names)).encode())


def read_former() -> list[str]:
    """Return the namespaces that were in use before the table existed."""
    try:
        with open(os.path.join(paths.data_folder(), FORMER), encoding="utf-8") as file:
            return file.read().splitlines()
    except (OSError, UnicodeDecodeError):
        return []

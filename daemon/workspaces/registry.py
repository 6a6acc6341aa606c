"""Add, remove and find workspaces."""

import os
from collections.abc import Sequence
from pathlib import Path

from memoryd.client.errors import Conflict, Invalid, NotFound
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.limits import MAX_PATH_BYTES
from memoryd.daemon.store import namespaces
from memoryd.daemon.store.writer import Transaction
from memoryd.daemon.workspaces import committing, hosts
from memoryd.daemon.workspaces.committing import ReportCounts
from memoryd.daemon.workspaces.documents.globs import Globs
from memoryd.daemon.workspaces.documents.walking import GLOBS, WHOLE
from memoryd.daemon.workspaces.live import get_lives
from memoryd.daemon.workspaces.tables import workspaces
from memoryd.daemon.workspaces.tables.workspaces import StoredWorkspace

_SHOWN = 10
_SETTING_PREFIX, _YES = "dreams write ", "yes"  # of a setting, followed by the folder


def list_all(core: Core) -> list[StoredWorkspace]:
    """Return all workspaces, by namespace."""
    with core.store.reading() as connection:
        return workspaces.list_all(connection)


def find(core: Core, name_or_path: str) -> StoredWorkspace:
    """Return the workspace with a namespace, or the one that contains an absolute path; raise `NotFound`."""
    known = list_all(core)
    if name_or_path.startswith("/"):
        found = _find_by_path(known, name_or_path)
    else:
        found = next((one for one in known if one.namespace == name_or_path.strip("/")), None)
    if found is None:
        names = ", ".join(workspace.namespace for workspace in known[:_SHOWN])
        advice = f"There are: {names}." if names else "There are none yet; `memctl workspace add PATH` adds one."
        raise NotFound(f"There is no workspace {name_or_path[:200]!r}. {advice}", {"workspace": name_or_path[:200]})
    return found


def _find_by_path(known: Sequence[StoredWorkspace], path: str) -> StoredWorkspace | None:
    if not _can_be_path(path):
        return None
    places = (Path(os.path.normpath(path)), Path(os.path.realpath(path)))
    return next((w for w in known if any(place.is_relative_to(w.root) for place in places)), None)


def add(core: Core, path: str, namespace: str | None, globs: Sequence[str]) -> StoredWorkspace:
    """Add a folder as a workspace, or change the patterns of an existing one.

    Raise `Invalid` if the path cannot be a workspace, `Conflict` if it overlaps with another one.
    """
    root, device = _folder(path)
    name = _namespace(root, namespace)
    patterns = tuple(globs) or choose_globs(root)
    Globs(patterns)  # raises if one is invalid

    def write(transaction: Transaction) -> StoredWorkspace:
        connection = transaction.connection
        for other in workspaces.list_all(connection):
            if globs and root == other.root and namespace in (None, other.namespace):
                workspaces.set_globs(connection, other.id, patterns)
                return other._replace(globs=patterns)
            _check_no_overlap(root, name, other)
        number = workspaces.insert(connection, name, root, patterns, device, core.clock())
        core.store.namespaces.ensure(transaction, name)
        return StoredWorkspace(number, name, root, patterns)

    added = core.store.write(write).result()
    get_lives(core).changed()
    return added


def choose_globs(root: Path) -> tuple[str, ...]:
    """Return the default patterns of a folder: all files of an Obsidian vault or a folder of notes, else memory files.

    A folder named `memory` is a folder of notes, whatever is in it.
    """
    if (root / ".obsidian").is_dir() or root.name == "memory":
        return WHOLE
    if (root / "MEMORY.md").exists() or (root / "memory").is_dir():
        return GLOBS
    return WHOLE if next(root.glob("*.md"), None) else GLOBS


def _can_be_path(path: str) -> bool:
    return "\0" not in path and len(path.encode()) <= MAX_PATH_BYTES  # longer ones are resolved in quadratic time


def _folder(path: str) -> tuple[Path, int]:
    if not path.startswith("/") or not _can_be_path(path):
        raise Invalid(f"The path {path[:200]!r} is not absolute, or longer than {MAX_PATH_BYTES} bytes.")
    try:
        root = os.path.realpath(path, strict=True)
        with os.scandir(root):
            return Path(root), os.stat(root).st_dev
    except FileNotFoundError:
        raise Invalid(f"{path} does not exist.") from None
    except NotADirectoryError:
        raise Invalid(f"{path} is not a folder.") from None
    except OSError as error:
        raise Invalid(f"{path} cannot be read: {error.strerror}.") from None


def _namespace(root: Path, given: str | None) -> str:
    if given is not None:
        name = namespaces.check(given.strip("/"))
        if not name:
            raise Invalid("A workspace needs its own namespace, not the root.")
        return name
    try:
        if not root.name:
            raise Invalid("The root folder has no name.")
        root.name.encode()
        return namespaces.check(root.name)
    except (Invalid, UnicodeEncodeError):
        raise Invalid(f"The name of {root!s:.200} cannot be a namespace; give one with --namespace.") from None


def _check_no_overlap(root: Path, name: str, other: StoredWorkspace) -> None:
    about = {"namespace": other.namespace, "root": str(other.root)}
    if root == other.root:
        raise Conflict(f"{root} is a workspace already: {other.namespace}. --glob gives it other patterns.", about)
    if root.is_relative_to(other.root):
        raise Conflict(f"{root} is inside the workspace {other.namespace} ({other.root}).", about)
    if other.root.is_relative_to(root):
        raise Conflict(f"{root} holds the workspace {other.namespace} ({other.root}).", about)
    if name == other.namespace:
        raise Conflict(
            f"The namespace {name} is that of the workspace {other.root}; give another namespace, or take that"
            f" workspace out with `memctl workspace remove {name}`.",
            about,
        )


def remove(
    core: Core, name_or_path: str, report: ReportCounts = lambda done, total: None
) -> tuple[StoredWorkspace, int]:
    """Remove a workspace and delete its chunks; return it and how many chunks it had."""
    workspace = find(core, name_or_path)
    core.store.write(
        lambda transaction: workspaces.delete(transaction.connection, workspace.id), over_limit=True
    ).result()
    get_lives(core).forget(workspace.id)  # before its watcher ends, which checks whether it was removed
    get_lives(core).changed()
    return workspace, committing.sweep(core, report)


def is_write_allowed(core: Core, workspace: StoredWorkspace) -> bool:
    """Return whether a person has allowed dreams to write MEMORY.md in this workspace."""
    return not hosts.find_host(workspace) and core.store.read_setting(f"{_SETTING_PREFIX}{workspace.root}") == _YES


def allow_writing(core: Core, workspace: StoredWorkspace, may_write: bool) -> None:
    """Store whether dreams may write MEMORY.md in a workspace."""
    core.store.set_setting(f"{_SETTING_PREFIX}{workspace.root}", _YES if may_write else "no").result()

"""Which workspaces there are: adding, removing, finding one by its namespace or by a path inside it."""

import os
from pathlib import Path

from memoryd.client.errors import NotFound
from memoryd.daemon.core.core import Core
from memoryd.daemon.store import workspaces
from memoryd.daemon.store.workspaces import Workspace

__all__ = ["Workspace", "everyone", "find"]


def everyone(core: Core) -> list[Workspace]:
    """Return all workspaces, by namespace."""
    with core.store.reading() as connection:
        return workspaces.everyone(connection)


def find(core: Core, name_or_path: str) -> Workspace:
    """Return the workspace of a namespace, or the one that a path lies in; raise `NotFound`."""
    known = everyone(core)
    for workspace in known:
        if workspace.namespace == name_or_path.strip("/") and not name_or_path.startswith("/"):
            return workspace
    if name_or_path.startswith("/"):
        real = Path(os.path.realpath(name_or_path))
        for workspace in known:
            if real.is_relative_to(workspace.root) or Path(name_or_path).is_relative_to(workspace.root):
                return workspace
    there = ", ".join(workspace.namespace for workspace in known[:10]) or "none; `memctl workspace add PATH` adds one"
    raise NotFound(f"There is no workspace {name_or_path[:200]!r}. There are: {there}.", {"workspace": name_or_path})

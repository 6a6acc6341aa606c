"""Handlers of the calls about workspaces. Indexing continues on threads of its own."""

from concurrent.futures import Future

from memoryd.client.protocol import (
    AddWorkspace,
    Done,
    GetWorkspace,
    Indexed,
    IndexWorkspace,
    Progress,
    RemoveWorkspace,
    Workspace,
    WorkspaceList,
    Workspaces,
    WorkspaceStatus,
)
from memoryd.daemon.core.core import Core
from memoryd.daemon.registry import Report, handles
from memoryd.daemon.workspaces import registry, reporting


@handles(AddWorkspace)
def add_workspace(core: Core, call: AddWorkspace) -> Workspace:
    """Add a workspace."""
    return reporting.describe(core, registry.add(core, call.path, call.namespace, call.globs))


@handles(RemoveWorkspace)
def remove_workspace(core: Core, report: Report, call: RemoveWorkspace) -> Done:
    """Remove a workspace with what is indexed of it."""

    def tell(done: int, total: int) -> None:
        report(Progress(stage=f"remove {call.workspace}", done=done, total=total))

    workspace, chunks = registry.remove(core, call.workspace, tell)
    return Done(message=f"{workspace.namespace}: {chunks} chunks removed, the files in {workspace.root} stay")


@handles(Workspaces)
def workspaces(core: Core, call: Workspaces) -> WorkspaceList:
    """List the workspaces."""
    return WorkspaceList(workspaces=[reporting.describe(core, workspace) for workspace in registry.list_all(core)])


@handles(GetWorkspace)
def get_workspace(core: Core, call: GetWorkspace) -> WorkspaceStatus:
    """Report how a workspace is."""
    return reporting.status(core, registry.find(core, call.workspace))


@handles(IndexWorkspace)
def index_workspace(core: Core, report: Report, call: IndexWorkspace) -> "Future[Indexed]":
    """Begin to bring workspaces up to date; the lane is free again at once."""
    chosen = registry.list_all(core) if call.workspace is None else [registry.find(core, call.workspace)]

    def tell(stage: str, done: int, total: int) -> None:
        report(Progress(stage=stage, done=done, total=total))

    return reporting.index(core, chosen, call.force, tell)

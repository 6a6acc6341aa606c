"""Handlers of the calls about workspaces. Indexing goes on on threads of its own."""

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
from memoryd.daemon.dispatch import Context
from memoryd.daemon.registry import handles
from memoryd.daemon.workspaces import registry, reporting


@handles(AddWorkspace)
def add_workspace(context: Context, call: AddWorkspace) -> Workspace:
    """Add a workspace."""
    return reporting.shown(context.core, registry.add(context.core, call.path, call.namespace, call.globs))


@handles(RemoveWorkspace)
def remove_workspace(context: Context, call: RemoveWorkspace) -> Done:
    """Remove a workspace with what is indexed of it."""

    def tell(done: int, total: int) -> None:
        context.report(Progress(stage=f"remove {call.workspace}", done=done, total=total))

    workspace, chunks = registry.remove(context.core, call.workspace, tell)
    return Done(message=f"{workspace.namespace}: {chunks} chunks removed, the files in {workspace.root} stay")


@handles(Workspaces)
def workspaces(context: Context, call: Workspaces) -> WorkspaceList:
    """List the workspaces."""
    core = context.core
    return WorkspaceList(workspaces=[reporting.shown(core, workspace) for workspace in registry.everyone(core)])


@handles(GetWorkspace)
def get_workspace(context: Context, call: GetWorkspace) -> WorkspaceStatus:
    """Tell how a workspace is."""
    return reporting.status(context.core, registry.find(context.core, call.workspace))


@handles(IndexWorkspace)
def index_workspace(context: Context, call: IndexWorkspace) -> "Future[Indexed]":
    """Begin to bring workspaces up to date; the lane is free again at once."""
    core = context.core
    chosen = registry.everyone(core) if call.workspace is None else [registry.find(core, call.workspace)]

    def tell(stage: str, done: int, total: int) -> None:
        context.report(Progress(stage=stage, done=done, total=total))

    return reporting.index(core, chosen, call.force, tell)

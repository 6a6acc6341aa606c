"""Handlers of the calls about workspaces. Indexing continues on threads of its own."""

import os
from concurrent.futures import Future
from pathlib import Path

from memoryd.client.protocol import (
    AddWorkspace,
    Differences,
    DiffWorkspaces,
    Done,
    FileList,
    GetWorkspace,
    Indexed,
    IndexedFile,
    IndexWorkspace,
    ListFiles,
    Progress,
    RemoveWorkspace,
    WorkspaceList,
    Workspaces,
    WorkspaceStatus,
)
from memoryd.client.protocol import Workspace as Shown
from memoryd.daemon.core.core import Core
from memoryd.daemon.registry import Report, handles
from memoryd.daemon.store import workspaces
from memoryd.daemon.store.workspaces import Workspace
from memoryd.daemon.workspaces import chunks, comparing, placing, registry, reporting


@handles(AddWorkspace)
def add_workspace(core: Core, call: AddWorkspace) -> Shown:
    """Add a workspace."""
    return reporting.describe(core, registry.add(core, call.path, call.namespace, call.globs))


@handles(RemoveWorkspace)
def remove_workspace(core: Core, report: Report, call: RemoveWorkspace) -> Done:
    """Remove a workspace with what is indexed of it."""

    def report_progress(done: int, total: int) -> None:
        report(Progress(stage=f"remove {call.workspace}", done=done, total=total))

    workspace, chunks = registry.remove(core, call.workspace, report_progress)
    return Done(message=f"{workspace.namespace}: {chunks} chunks removed, the files in {workspace.root} stay")


@handles(Workspaces)
def list_workspaces(core: Core, call: Workspaces) -> WorkspaceList:
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
    file = _find_file(core, chosen[0], call.workspace) if call.workspace and call.workspace.startswith("/") else None

    def report_progress(stage: str, done: int, total: int) -> None:
        report(Progress(stage=stage, done=done, total=total))

    def work() -> Indexed:
        results = [reporting.index(core, workspace, file, call.force, report_progress) for workspace in chosen]
        for workspace in chosen if call.wait else ():
            reporting.wait_for_vectors(core, workspace, report_progress)
        return Indexed(workspaces=results)

    return core.workspaces.run_apart("index", work)


def _find_file(core: Core, workspace: Workspace, path: str) -> str | None:
    """Return the path of one file that is to be indexed, relative to the root; None for a folder."""
    if Path(path).is_dir():
        return None
    within = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    return placing.relative_path(workspace, within, core.clock(), core.config.workspaces.local_dates)


@handles(ListFiles)
def list_files(core: Core, call: ListFiles) -> FileList:
    """Return one page of the files of a workspace."""
    workspace = registry.find(core, call.workspace)
    with core.store.reading() as connection:
        known = workspaces.stats(connection, workspace.id)
        paths = sorted(known)[call.offset : call.offset + call.limit]
        counts = workspaces.count_chunks(connection, [chunks.absolute_path(workspace, path) for path in paths])
    files = [
        IndexedFile(
            path=path,
            chunks=counts.get(chunks.absolute_path(workspace, path), 0),
            size=known[path].size,
            changed_at=known[path].mtime_ns / 1e9,
            indexed_at=known[path].indexed_at,
            problem=known[path].problem or "",
        )
        for path in paths
    ]
    return FileList(files=files, total=len(known))


@handles(DiffWorkspaces)
def diff_workspaces(core: Core, report: Report, call: DiffWorkspaces) -> "Future[Differences]":
    """Begin to compare; the lane is free again at once."""
    chosen = registry.list_all(core) if call.workspace is None else [registry.find(core, call.workspace)]

    def report_progress(done: int, total: int) -> None:
        report(Progress(stage="compare", done=done, total=total))

    return core.workspaces.run_apart("diff", lambda: comparing.compare(core, chosen, report_progress))

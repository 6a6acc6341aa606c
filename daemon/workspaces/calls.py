"""Handlers of the calls about workspaces: how these are, and bringing them up to date on threads of their own."""

import os
import time
from concurrent.futures import Future
from pathlib import Path

from memoryd.client import protocol
from memoryd.client.errors import MemorydError, ModelUnavailable, Unavailable
from memoryd.client.protocol import Progress
from memoryd.client.protocol import workspaces as calls
from memoryd.client.protocol.workspaces import Differences, Indexed, WorkspaceStatus
from memoryd.daemon.core.core import Core
from memoryd.daemon.registry import ReportProgress, handles
from memoryd.daemon.workspaces import chunks, comparing, indexing, placing, registry
from memoryd.daemon.workspaces.committing import Tell
from memoryd.daemon.workspaces.live import get_live
from memoryd.daemon.workspaces.tables import workspaces
from memoryd.daemon.workspaces.tables.workspaces import StoredWorkspace

_POLL_S = 0.05


@handles(calls.AddWorkspace)
def add_workspace(core: Core, call: calls.AddWorkspace) -> calls.Workspace:
    """Add a workspace."""
    return describe(core, registry.add(core, call.path, call.namespace, call.globs))


@handles(calls.RemoveWorkspace)
def remove_workspace(core: Core, report: ReportProgress, call: calls.RemoveWorkspace) -> protocol.Done:
    """Remove a workspace with what is indexed of it."""
    workspace, chunks = registry.remove(core, call.workspace, _build_teller(report, f"remove {call.workspace}"))
    return protocol.Done(message=f"{workspace.namespace}: {chunks} chunks removed, the files in {workspace.root} stay")


@handles(calls.Workspaces)
def list_workspaces(core: Core, call: calls.Workspaces) -> calls.WorkspaceList:
    """List the workspaces."""
    return calls.WorkspaceList(workspaces=[describe(core, workspace) for workspace in registry.list_all(core)])


@handles(calls.GetWorkspace)
def get_workspace(core: Core, call: calls.GetWorkspace) -> WorkspaceStatus:
    """Report how a workspace is."""
    return status(core, registry.find(core, call.workspace))


@handles(calls.IndexWorkspace)
def index_workspace(core: Core, report: ReportProgress, call: calls.IndexWorkspace) -> "Future[Indexed]":
    """Begin to bring workspaces up to date; the lane is free again at once."""
    chosen = registry.list_all(core) if call.workspace is None else [registry.find(core, call.workspace)]
    file = _find_file(core, chosen[0], call.workspace) if call.workspace and call.workspace.startswith("/") else None

    def work() -> Indexed:
        results = [
            index(core, workspace, file, call.force, _build_teller(report, workspace.namespace)) for workspace in chosen
        ]
        for workspace in chosen if call.wait else ():
            wait_for_vectors(core, workspace, _build_teller(report, f"embed {workspace.namespace}"))
        return Indexed(workspaces=results)

    return core.apart.run("index", work)


def _find_file(core: Core, workspace: StoredWorkspace, path: str) -> str | None:
    """Return the path of one file that is to be indexed, relative to the root; None for a folder."""
    if Path(path).is_dir():
        return None
    within = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    return placing.relative_path(workspace, within, core.clock(), core.config.workspaces.local_dates)


@handles(calls.ListFiles)
def list_files(core: Core, call: calls.ListFiles) -> calls.FileList:
    """Return one page of the files of a workspace."""
    workspace = registry.find(core, call.workspace)
    with core.store.reading() as connection:
        known = workspaces.stats(connection, workspace.id)
        paths = sorted(known)[call.offset : call.offset + call.limit]
        counts = workspaces.count_chunks(connection, [chunks.absolute_path(workspace, path) for path in paths])
    files = [
        calls.IndexedFile(
            path=path,
            chunks=counts.get(chunks.absolute_path(workspace, path), 0),
            size=known[path].size,
            changed_at=known[path].mtime_ns / 1e9,
            indexed_at=known[path].indexed_at,
            problem=known[path].problem or "",
        )
        for path in paths
    ]
    return calls.FileList(files=files, total=len(known))


@handles(calls.DiffWorkspaces)
def diff_workspaces(core: Core, report: ReportProgress, call: calls.DiffWorkspaces) -> "Future[Differences]":
    """Begin to compare; the lane is free again at once."""
    chosen = registry.list_all(core) if call.workspace is None else [registry.find(core, call.workspace)]
    tell = _build_teller(report, "compare")
    return core.apart.run("diff", lambda: comparing.compare(core, chosen, tell))


def _build_teller(report: ReportProgress, stage: str) -> Tell:
    return lambda done, total: report(Progress(stage=stage, done=done, total=total))


# How they are, and bringing them up to date ---------------------------------------------------------------------------


def describe(core: Core, workspace: StoredWorkspace) -> calls.Workspace:
    """Return a workspace as clients see it."""
    with core.store.reading() as connection:
        sums = workspaces.count_indexed(connection, workspace)
        created_at = workspaces.read_created_at(connection, workspace.id)
    return calls.Workspace(
        namespace=workspace.namespace,
        root=str(workspace.root),
        globs=list(workspace.globs),
        created_at=created_at,
        files=sums.files,
        chunks=sums.chunks,
        watching=get_live(core, workspace).watching,
    )


def status(core: Core, workspace: StoredWorkspace) -> WorkspaceStatus:
    """Report how a workspace is."""
    live, generation = get_live(core, workspace), core.embedding.active
    with core.store.reading() as connection:
        found = {**workspaces.read_problems(connection, workspace.id), **live.problems}
        sums = workspaces.count_indexed(connection, workspace)
        pending = workspaces.count_chunks_without_vector(connection, workspace, generation.model if generation else 0)
    progress = live.progress
    return WorkspaceStatus(
        workspace=describe(core, workspace),
        pending_embeddings=pending,
        problems=[calls.FileProblem(path=path, problem=problem) for path, problem in sorted(found.items())],
        left_out=[calls.FileProblem(path=path, problem=reason) for path, reason in live.left_out.items()],
        dreams_write=registry.is_write_allowed(core, workspace),
        reason=live.reason,
        since=live.since,
        watches=live.watches,
        indexing=None if progress is None else progress[1] - progress[0],
        indexed_at=sums.indexed_at,
        scanned_at=live.scanned_at,
    )


def index(core: Core, workspace: StoredWorkspace, file: str | None, force: bool, tell: Tell) -> calls.IndexedWorkspace:
    """Bring a workspace, or one file of it, up to date; where that cannot be done the result says why."""
    began = time.perf_counter()
    result = calls.IndexedWorkspace(namespace=workspace.namespace)
    try:
        if file is None:
            result = indexing.index(core, workspace, force, tell)
        else:
            result = indexing.reindex(core, workspace, [file], force)
    except Unavailable:
        raise
    except MemorydError as error:
        result.problem = error.message
    result.seconds = round(time.perf_counter() - began, 3)
    return result


def wait_for_vectors(core: Core, workspace: StoredWorkspace, tell: Tell) -> None:
    """Return when each chunk of a workspace has a vector; raise `ModelUnavailable` where none can be made."""
    most = 0
    while left := _count_pending(core, workspace):
        most = max(most, left)
        tell(most - left, most)
        core.apart.check_open()
        core.apart.stopping.wait(_POLL_S)


def _count_pending(core: Core, workspace: StoredWorkspace) -> int:
    generation = core.embedding.active
    if generation is None:
        raise ModelUnavailable("No embedding model is ready, so no vectors are made; words find what is indexed.")
    with core.store.reading() as connection:
        waiting = workspaces.count_chunks_without_vector(connection, workspace, generation.model)
    return waiting - len(generation.failing) if waiting > len(generation.failing) else 0

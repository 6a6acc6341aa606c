"""The calls that add, remove, list and index workspaces, and the job that checks all of them.

Indexing runs on its own thread.
"""

import logging
import os
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

from memoryd.client import protocol
from memoryd.client.errors import MemorydError, ModelUnavailable, NotFound, Unavailable
from memoryd.client.protocol import Progress
from memoryd.client.protocol import workspaces as calls
from memoryd.client.protocol.workspaces import Indexed, WorkspaceList
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.work import Step, StopCheck, Work
from memoryd.daemon.registry import ReportProgress, handles
from memoryd.daemon.workspaces import chunks, indexing, note_paths, registry
from memoryd.daemon.workspaces.committing import ReportCounts
from memoryd.daemon.workspaces.live import get_live
from memoryd.daemon.workspaces.tables import workspaces
from memoryd.daemon.workspaces.tables.workspaces import StoredWorkspace

_POLL_S = 0.05
_MAX_DIFFERING = 200

log = logging.getLogger(__name__)


@handles(calls.AddWorkspace)
def add_workspace(core: Core, call: calls.AddWorkspace) -> calls.Workspace:
    """Add a workspace."""
    return describe(core, registry.add(core, call.path, call.namespace, call.globs))


@handles(calls.RemoveWorkspace)
def remove_workspace(core: Core, report: ReportProgress, call: calls.RemoveWorkspace) -> protocol.Done:
    """Remove a workspace and its index."""
    workspace, chunks = registry.remove(core, call.workspace, _build_reporter(report, f"remove {call.workspace}"))
    return protocol.Done(message=f"{workspace.namespace}: {chunks} chunks removed, the files in {workspace.root} stay")


@handles(calls.Workspaces)
def list_workspaces(core: Core, call: calls.Workspaces) -> "Future[WorkspaceList]":
    """List the workspaces; a single one is compared with its files, on another thread."""
    if call.workspace is None:
        done: Future[WorkspaceList] = Future()
        done.set_result(WorkspaceList(workspaces=[describe(core, one) for one in registry.list_all(core)]))
        return done
    workspace = registry.find(core, call.workspace)

    def work() -> WorkspaceList:
        return WorkspaceList(workspaces=[examine(core, workspace, call.files, call.offset)])

    return core.background.run("compare", work)


@handles(calls.IndexWorkspace)
def index_workspace(core: Core, report: ReportProgress, call: calls.IndexWorkspace) -> "Future[Indexed]":
    """Start to index workspaces on another thread."""
    chosen = registry.list_all(core) if call.workspace is None else [registry.find(core, call.workspace)]
    file = _find_file(core, chosen[0], call.workspace) if call.workspace and call.workspace.startswith("/") else None

    def work() -> Indexed:
        results = [
            index(core, workspace, file, call.force, _build_reporter(report, workspace.namespace))
            for workspace in chosen
        ]
        for workspace in chosen if call.wait else ():
            wait_for_vectors(core, workspace, _build_reporter(report, f"embed {workspace.namespace}"))
        return Indexed(workspaces=results)

    return core.background.run("index", work)


def _find_file(core: Core, workspace: StoredWorkspace, path: str) -> str | None:
    """Return the path of a single file to index, relative to the root; None for a folder."""
    if Path(path).is_dir():
        return None
    within = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    return note_paths.relative_path(workspace, within, core.clock(), core.config.workspaces.local_dates)


def _build_reporter(report: ReportProgress, stage: str) -> ReportCounts:
    return lambda done, total: report(Progress(stage=stage, done=done, total=total))


# Status and indexing -------------------------------------------------------------------------------------------------


def describe(core: Core, workspace: StoredWorkspace) -> calls.Workspace:
    """Return the short description of a workspace for clients."""
    live = get_live(core, workspace)
    with core.store.reading() as connection:
        sums = workspaces.count_indexed(connection, workspace)
        created_at = workspaces.read_created_at(connection, workspace.id)
    progress = live.progress
    return calls.Workspace(
        namespace=workspace.namespace,
        root=str(workspace.root),
        globs=list(workspace.globs),
        created_at=created_at,
        files=sums.files,
        chunks=sums.chunks,
        watching=live.watching,
        reason=live.reason,
        since=live.since,
        watches=live.watches,
        indexing=None if progress is None else progress[1] - progress[0],
        indexed_at=sums.indexed_at,
        scanned_at=live.scanned_at,
        dreams_write=registry.is_write_allowed(core, workspace),
    )


def examine(core: Core, workspace: StoredWorkspace, files: int = 0, offset: int = 0) -> calls.Workspace:
    """Return the full description of a workspace, with `files` of its files from `offset` on."""
    live, generation, found = get_live(core, workspace), core.embedding.active, describe(core, workspace)
    differing = indexing.find_differences(core, workspace)
    with core.store.reading() as connection:
        problems = {**workspaces.read_problems(connection, workspace.id), **live.problems}
        model = generation.model if generation else 0
        found.pending_embeddings = workspaces.count_chunks_without_vector(connection, workspace, model)
        known = workspaces.stats(connection, workspace.id) if files else {}
        paths = sorted(known)[offset : offset + files]
        counts = workspaces.count_chunks(connection, [chunks.absolute_path(workspace, path) for path in paths])
    found.problems = [calls.FileProblem(path=path, problem=problem) for path, problem in sorted(problems.items())]
    found.left_out = [calls.FileProblem(path=path, problem=reason) for path, reason in live.left_out.items()]
    found.differing = [calls.FileProblem(path=path, problem=how) for path, how in differing[:_MAX_DIFFERING]]
    found.listed = [
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
    return found


def index(
    core: Core, workspace: StoredWorkspace, file: str | None, force: bool, report: ReportCounts
) -> calls.IndexedWorkspace:
    """Index a workspace, or one file in it; if that fails, the result says why."""
    began = time.perf_counter()
    result = calls.IndexedWorkspace(namespace=workspace.namespace)
    try:
        if file is None:
            result = indexing.index(core, workspace, force, report)
        else:
            result = indexing.reindex(core, workspace, [file], force)
    except Unavailable:
        raise
    except MemorydError as error:
        result.problem = error.message
    result.seconds = round(time.perf_counter() - began, 3)
    return result


def wait_for_vectors(core: Core, workspace: StoredWorkspace, report: ReportCounts) -> None:
    """Wait until each chunk of a workspace has a vector; raise `ModelUnavailable` if none can be made."""
    most = 0
    while left := _count_pending(core, workspace):
        most = max(most, left)
        report(most - left, most)
        core.background.check_open()
        core.background.stopping.wait(_POLL_S)


def _count_pending(core: Core, workspace: StoredWorkspace) -> int:
    generation = core.embedding.active
    if generation is None:
        raise ModelUnavailable("No embedding model is ready, so no vectors are made; words find what is indexed.")
    with core.store.reading() as connection:
        waiting = workspaces.count_chunks_without_vector(connection, workspace, generation.model)
    return waiting - len(generation.failing) if waiting > len(generation.failing) else 0


# The job, in case watching has missed a change -----------------------------------------------------------------------


def plan(core: Core, now: float) -> Iterator[Step]:
    """Plan a pass over each workspace."""
    for workspace in registry.list_all(core):
        yield Step("scan", workspace.namespace, f"changes in {workspace.root} may have been missed", workspace)


def scan(core: Core, step: Step, check: StopCheck) -> dict[str, int]:
    """Run a pass over one workspace; an error does not stop the others."""
    try:
        done = indexing.index(core, step.data, report=lambda done, total: check())
    except indexing.Gone:
        return {"gone": 1}
    except NotFound:
        return {"skipped": 1}
    except Unavailable:
        raise
    except MemorydError as error:
        log.warning("workspace %s could not be indexed: %s", step.target, error)
        return {"failed": 1}
    return {"indexed": done.indexed, "removed": done.removed, "unchanged": done.unchanged}


SCAN = Work(plan, alone=scan, at_limit=True)  # it checks the size limit itself, for each slice

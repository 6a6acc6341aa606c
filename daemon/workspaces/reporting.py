"""How workspaces are, and bringing them up to date when somebody asks for it."""

import time
from typing import Any

from memoryd.client.errors import MemorydError, ModelUnavailable, Unavailable
from memoryd.client.protocol import FileProblem, IndexedWorkspace, WorkspaceStatus
from memoryd.client.protocol import Workspace as Shown
from memoryd.daemon.core.core import Core
from memoryd.daemon.store import workspaces
from memoryd.daemon.store.workspaces import Workspace
from memoryd.daemon.workspaces import indexing
from memoryd.daemon.workspaces.committing import Tell
from memoryd.daemon.workspaces.dreams import permission

_POLL_S = 0.05


def describe(core: Core, workspace: Workspace) -> Shown:
    """Return a workspace as clients see it."""
    with core.store.reading() as connection:
        sums = workspaces.count_indexed(connection, workspace)
        created_at = workspaces.read_created_at(connection, workspace.id)
    return Shown(
        namespace=workspace.namespace,
        root=str(workspace.root),
        globs=list(workspace.globs),
        created_at=created_at,
        files=sums.files,
        chunks=sums.chunks,
        watching=core.workspaces.get_live(workspace.id).watching,
    )


def status(core: Core, workspace: Workspace) -> WorkspaceStatus:
    """Report how a workspace is."""
    live, generation = core.workspaces.get_live(workspace.id), core.embedding.active
    with core.store.reading() as connection:
        found = {**workspaces.read_problems(connection, workspace.id), **live.problems}
        sums = workspaces.count_indexed(connection, workspace)
        pending = workspaces.count_chunks_without_vector(connection, workspace, generation.model if generation else 0)
    progress = live.progress
    return WorkspaceStatus(
        workspace=describe(core, workspace),
        pending_embeddings=pending,
        problems=[FileProblem(path=path, problem=problem) for path, problem in sorted(found.items())],
        left_out=[FileProblem(path=path, problem=reason) for path, reason in live.left_out.items()],
        dreams_write=permission.is_allowed(core, workspace),
        reason=live.reason,
        since=live.since,
        watches=live.watches,
        indexing=None if progress is None else progress[1] - progress[0],
        indexed_at=sums.indexed_at,
        scanned_at=live.scanned_at,
    )


def index(core: Core, workspace: Workspace, file: str | None, force: bool, tell: Any) -> IndexedWorkspace:
    """Bring a workspace, or one file of it, up to date; where that cannot be done the result says why."""
    began = time.perf_counter()
    told: Tell = lambda done, total: tell(workspace.namespace, done, total)  # noqa: E731
    result = IndexedWorkspace(namespace=workspace.namespace)
    try:
        if file is None:
            result = indexing.index(core, workspace, force, told)
        else:
            result = indexing.reindex(core, workspace, [file], force)
    except Unavailable:
        raise
    except MemorydError as error:
        result.problem = error.message
    result.seconds = round(time.perf_counter() - began, 3)
    return result


def wait_for_vectors(core: Core, workspace: Workspace, tell: Any) -> None:
    """Return when each chunk of a workspace has a vector; raise `ModelUnavailable` where none can be made."""
    most = 0
    while left := _count_pending(core, workspace):
        most = max(most, left)
        tell(f"embed {workspace.namespace}", most - left, most)
        core.workspaces.check_open()
        core.workspaces.stopping.wait(_POLL_S)


def _count_pending(core: Core, workspace: Workspace) -> int:
    generation = core.embedding.active
    if generation is None:
        raise ModelUnavailable("No embedding model is ready, so no vectors are made; words find what is indexed.")
    with core.store.reading() as connection:
        waiting = workspaces.count_chunks_without_vector(connection, workspace, generation.model)
    return waiting - len(generation.failing) if waiting > len(generation.failing) else 0

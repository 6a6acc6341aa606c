"""How workspaces are, and bringing them up to date when somebody asks for it."""

import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import msgspec

from memoryd.client.errors import MemorydError, Unavailable
from memoryd.client.protocol import FileProblem, Indexed, IndexedWorkspace, WorkspaceStatus
from memoryd.client.protocol import Workspace as Shown
from memoryd.daemon.core.core import Core
from memoryd.daemon.store import workspaces
from memoryd.daemon.store.workspaces import Workspace
from memoryd.daemon.workspaces import indexing
from memoryd.daemon.workspaces.committing import Tell


def describe(core: Core, workspace: Workspace) -> Shown:
    """Return a workspace as clients see it."""
    with core.store.reading() as connection:
        sums = workspaces.sums(connection, workspace)
        created_at = workspaces.read_created_at(connection, workspace.id)
    return Shown(
        namespace=workspace.namespace,
        root=str(workspace.root),
        globs=list(workspace.globs),
        created_at=created_at,
        files=sums.files,
        chunks=sums.chunks,
        watching=core.workspaces.live(workspace.id).watching,
    )


def status(core: Core, workspace: Workspace) -> WorkspaceStatus:
    """Report how a workspace is."""
    live, generation = core.workspaces.live(workspace.id), core.embedding.active
    with core.store.reading() as connection:
        found = {**workspaces.problems(connection, workspace.id), **live.problems}
        sums = workspaces.sums(connection, workspace)
        pending = workspaces.count_chunks_without_vector(connection, workspace, generation.model if generation else 0)
    progress = live.progress
    return WorkspaceStatus(
        workspace=describe(core, workspace),
        pending_embeddings=pending,
        problems=[FileProblem(path=path, problem=problem) for path, problem in sorted(found.items())],
        reason=live.reason,
        since=live.since,
        watches=live.watches,
        indexing=None if progress is None else progress[1] - progress[0],
        indexed_at=sums.indexed_at,
        scanned_at=live.scanned_at,
    )


def index(core: Core, chosen: Sequence[Workspace], force: bool, tell: Any) -> "Future[Indexed]":
    """Bring workspaces up to date, on a thread of its own; one that cannot be does not keep the others from it."""

    def work() -> Indexed:
        return Indexed(workspaces=[_index(core, workspace, force, tell) for workspace in chosen])

    return core.workspaces.run_apart("index", work)


def _index(core: Core, workspace: Workspace, force: bool, tell: Any) -> IndexedWorkspace:
    began = time.perf_counter()
    told: Tell = lambda done, total: tell(workspace.namespace, done, total)  # noqa: E731
    result = IndexedWorkspace(namespace=workspace.namespace)
    try:
        counts = indexing.index(core, workspace, force, told)
        result = IndexedWorkspace(namespace=workspace.namespace, **msgspec.structs.asdict(counts))
    except Unavailable:
        raise
    except MemorydError as error:
        result.problem = error.message
    result.seconds = round(time.perf_counter() - began, 3)
    return result

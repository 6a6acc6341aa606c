"""Handlers of the calls that write into files of workspaces and compare these with the index."""

from concurrent.futures import Future

from memoryd.client.protocol import Differences, DiffWorkspaces, Progress
from memoryd.daemon.core.core import Core
from memoryd.daemon.registry import Report, handles
from memoryd.daemon.workspaces import comparing, registry


@handles(DiffWorkspaces)
def diff_workspaces(core: Core, report: Report, call: DiffWorkspaces) -> "Future[Differences]":
    """Begin to compare; the lane is free again at once."""
    chosen = registry.list_all(core) if call.workspace is None else [registry.find(core, call.workspace)]

    def report_progress(done: int, total: int) -> None:
        report(Progress(stage="compare", done=done, total=total))

    return core.workspaces.run_apart("diff", lambda: comparing.compare(core, chosen, report_progress))

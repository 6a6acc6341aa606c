"""Handlers of the calls that write into files of workspaces and compare these with the index."""

from concurrent.futures import Future

from memoryd.client.protocol import Differences, DiffWorkspaces, Forget, Forgotten, Progress, Remember, Remembered
from memoryd.daemon.dispatch import Context, handles
from memoryd.daemon.workspaces import comparing, registry, writing


@handles(Remember)
def remember(context: Context, call: Remember) -> Remembered:
    """Write a note into a file."""
    return writing.remember(context.core, call, context.caller)


@handles(Forget)
def forget(context: Context, call: Forget) -> Forgotten:
    """Take lines out of files, delete other memories."""
    return writing.forget(context.core, call, context.caller)


@handles(DiffWorkspaces)
def diff_workspaces(context: Context, call: DiffWorkspaces) -> "Future[Differences]":
    """Begin to compare; the lane is free again at once."""
    core = context.core
    chosen = registry.everyone(core) if call.workspace is None else [registry.find(core, call.workspace)]

    def tell(done: int, total: int) -> None:
        context.report(Progress(stage="compare", done=done, total=total))

    return core.workspaces.apart("diff", lambda: comparing.compare(core, chosen, tell))

"""Handler of dreams: they go on on a thread of their own."""

from concurrent.futures import Future

from memoryd.client.protocol import Dream, Dreamt, Progress
from memoryd.daemon.dispatch import Context
from memoryd.daemon.lifecycle import dream_job
from memoryd.daemon.lifecycle.dreaming import Terms
from memoryd.daemon.registry import handles


@handles(Dream)
def dream(context: Context, call: Dream) -> "Future[Dreamt]":
    """Begin to dream; the lane is free again at once."""
    core = context.core
    dream_job.check(call)

    def tell(stage: str, done: int, total: int) -> None:
        core.workspaces.check_open()
        context.report(Progress(stage=stage, done=done, total=total))

    return core.workspaces.apart("dream", lambda: dream_job.dream(core, call, Terms(force=call.force, tell=tell)))

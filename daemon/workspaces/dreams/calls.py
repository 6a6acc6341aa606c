"""Handler of dreams: they go on on a thread of their own."""

from concurrent.futures import Future

from memoryd.client.protocol import Dream, Dreamt, Progress
from memoryd.daemon.core.core import Core
from memoryd.daemon.registry import Report, handles
from memoryd.daemon.workspaces.dreams import job as dream_job
from memoryd.daemon.workspaces.dreams.dreaming import Terms


@handles(Dream)
def dream(core: Core, report: Report, call: Dream) -> "Future[Dreamt]":
    """Begin to dream; the lane is free again at once."""
    dream_job.check(call)

    def report_progress(stage: str, done: int, total: int) -> None:
        core.workspaces.check_open()
        report(Progress(stage=stage, done=done, total=total))

    return core.workspaces.run_apart(
        "dream", lambda: dream_job.dream(core, call, Terms(force=call.force, tell=report_progress))
    )

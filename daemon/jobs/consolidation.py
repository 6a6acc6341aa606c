"""Handlers of the calls about conversations and tiers."""

from memoryd.client.errors import Conflict
from memoryd.client.protocol import (
    Consolidate,
    Consolidated,
    JobRun,
    RunJob,
)
from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs import consolidating
from memoryd.daemon.jobs.consolidating import Tools
from memoryd.daemon.jobs.runner import Runner
from memoryd.daemon.registry import Report, handles


@handles(Consolidate)
def consolidate(core: Core, report: Report, jobs: Runner, call: Consolidate) -> Consolidated:
    """Move everything on."""

    def cluster() -> JobRun | None:
        try:
            return jobs.run(RunJob(name="cluster"), report).result()
        except Conflict:  # it is under way: what was moved is taken in by that run or the next
            return None

    return consolidating.consolidate(core, call, Tools(report, cluster))

"""Handlers of the calls about conversations and tiers."""

from memoryd.client.errors import Conflict
from memoryd.client.protocol import (
    Consolidate,
    Consolidated,
    JobRun,
    RunJob,
)
from memoryd.daemon.dispatch import Context
from memoryd.daemon.lifecycle import consolidating
from memoryd.daemon.lifecycle.consolidating import Tools
from memoryd.daemon.registry import handles


@handles(Consolidate)
def consolidate(context: Context, call: Consolidate) -> Consolidated:
    """Move everything on."""

    def cluster() -> JobRun | None:
        try:
            return context.jobs.run(RunJob(name="cluster"), context.report).result()
        except Conflict:  # it is under way: what was moved is taken in by that run or the next
            return None

    return consolidating.consolidate(context.core, call, Tools(context.report, cluster))

"""Handlers of the calls about conversations and tiers."""

from concurrent.futures import Future

from memoryd.client.errors import Conflict
from memoryd.client.protocol import (
    ActiveTurns,
    Consolidate,
    Consolidated,
    JobRun,
    Observe,
    Observed,
    RunJob,
    Seed,
    Seeded,
    Skipped,
    SkippedTurns,
    TierReport,
    Tiers,
    Turns,
)
from memoryd.daemon.dispatch import Context, handles
from memoryd.daemon.lifecycle import consolidating, observing, reporting, seeding
from memoryd.daemon.lifecycle.consolidating import Tools


@handles(Observe)
def observe(context: Context, call: Observe) -> "Future[Observed]":
    """Take note of turns."""
    return observing.observe(context.core, call, context.caller)


@handles(Turns)
def turns(context: Context, call: Turns) -> ActiveTurns:
    """List L0."""
    return reporting.listed(context.core, call)


@handles(Skipped)
def skipped(context: Context, call: Skipped) -> SkippedTurns:
    """List what was not kept."""
    return reporting.skipped(context.core, call)


@handles(Tiers)
def tiers(context: Context, call: Tiers) -> TierReport:
    """Tell what the tiers hold."""
    return reporting.tiers(context.core, call, context.caller)


@handles(Consolidate)
def consolidate(context: Context, call: Consolidate) -> Consolidated:
    """Move everything on."""

    def cluster() -> JobRun | None:
        try:
            return context.jobs.run(RunJob(name="cluster"), context.report).result()
        except Conflict:  # it is under way: what was moved is taken in by that run or the next
            return None

    return consolidating.consolidate(context.core, call, Tools(context.report, cluster))


@handles(Seed)
def seed(context: Context, call: Seed) -> Seeded:
    """Take in many at once."""
    return seeding.seed(context.core, call, context.report, context.caller)

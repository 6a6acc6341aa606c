"""Handlers of the calls about background jobs. The runs themselves are on a thread of their own."""

from concurrent.futures import Future

from memoryd.client.protocol import (
    ClockState,
    ConfirmClock,
    Job,
    JobHistory,
    JobList,
    JobRun,
    JobRuns,
    Jobs,
    PauseJob,
    ResumeJob,
    RunJob,
)
from memoryd.daemon.dispatch import Context
from memoryd.daemon.registry import handles
from memoryd.daemon.store.writer import Transaction


@handles(Jobs)
def jobs(context: Context, call: Jobs) -> JobList:
    """List the jobs."""
    return context.jobs.list()


@handles(RunJob)
def run_job(context: Context, call: RunJob) -> "Future[JobRun]":
    """Queue a run; the lane is free again at once."""
    return context.jobs.run(call, context.report)


@handles(PauseJob)
def pause_job(context: Context, call: PauseJob) -> "Future[Job]":
    """Pause a job."""
    return context.jobs.pause(call.name)


@handles(ResumeJob)
def resume_job(context: Context, call: ResumeJob) -> "Future[Job]":
    """Resume a job."""
    return context.jobs.resume(call.name)


@handles(ConfirmClock)
def confirm_clock(context: Context, call: ConfirmClock) -> "Future[ClockState]":
    """Take the system's clock for right."""
    core = context.core

    def job(transaction: Transaction) -> ClockState:
        core.clock.confirm(transaction.connection)
        return core.clock.state()

    return core.store.write(job, over_limit=True)


@handles(JobHistory)
def job_history(context: Context, call: JobHistory) -> JobRuns:
    """Tell how runs went."""
    return context.jobs.history(call)

"""Handlers of the calls about background jobs. The runs themselves are on a thread of their own."""

from concurrent.futures import Future

from memoryd.client import protocol
from memoryd.client.protocol import ClockState, Job, JobRun
from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs.runner import Runner
from memoryd.daemon.registry import Report, handles
from memoryd.daemon.store import settings
from memoryd.daemon.store.writer import Transaction
from memoryd.daemon.system.timekeeper import SETTING


@handles(protocol.Jobs)
def jobs(jobs: Runner, call: protocol.Jobs) -> protocol.JobList:
    """List the jobs."""
    return jobs.list()


@handles(protocol.RunJob)
def run_job(report: Report, jobs: Runner, call: protocol.RunJob) -> "Future[JobRun]":
    """Queue a run; the lane is free again at once."""
    return jobs.run(call, report)


@handles(protocol.PauseJob)
def pause_job(jobs: Runner, call: protocol.PauseJob) -> "Future[Job]":
    """Pause a job."""
    return jobs.pause(call.name)


@handles(protocol.ResumeJob)
def resume_job(jobs: Runner, call: protocol.ResumeJob) -> "Future[Job]":
    """Resume a job."""
    return jobs.resume(call.name)


@handles(protocol.ConfirmClock)
def confirm_clock(core: Core, call: protocol.ConfirmClock) -> "Future[ClockState]":
    """Take the system's clock for right."""

    def write(transaction: Transaction) -> ClockState:
        settings.put(transaction.connection, SETTING, core.clock.confirm())
        return core.clock.read_state()

    return core.store.write(write, over_limit=True)


@handles(protocol.JobHistory)
def job_history(jobs: Runner, call: protocol.JobHistory) -> protocol.JobRuns:
    """Report how runs went."""
    return jobs.history(call)

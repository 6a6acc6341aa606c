"""The calls about background jobs. Runs are executed on the runner's thread."""

from concurrent.futures import Future

from memoryd.client import protocol
from memoryd.client.protocol import Job, JobRun
from memoryd.daemon.jobs.runner import Runner
from memoryd.daemon.registry import ReportProgress, handles


@handles(protocol.Jobs)
def jobs(jobs: Runner, call: protocol.Jobs) -> protocol.JobList:
    """List the jobs and their latest runs."""
    return jobs.report(call)


@handles(protocol.RunJob)
def run_job(report: ReportProgress, jobs: Runner, call: protocol.RunJob) -> "Future[JobRun]":
    """Queue a run."""
    return jobs.run(call, report)


@handles(protocol.PauseJob)
def pause_job(jobs: Runner, call: protocol.PauseJob) -> "Future[Job]":
    """Pause a job."""
    return jobs.pause(call.name)


@handles(protocol.ResumeJob)
def resume_job(jobs: Runner, call: protocol.ResumeJob) -> "Future[Job]":
    """Resume a job."""
    return jobs.resume(call.name)

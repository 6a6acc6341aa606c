"""Jobs: list the background jobs and their latest runs, run a job by hand, read its plan."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from memoryd.client.protocol.base import Call, Limit, rpc

RunBy = Literal["hand", "scheduler"]
Outcome = Literal["planned", "running", "done", "failed", "interrupted"]


class PlannedStep(Struct, kw_only=True):
    """One step of a job's plan: an action on a memory, node or file, and its reason."""

    action: str
    """a verb"""
    target: str
    """id of a memory or turn, or a name"""
    reason: str
    """why"""
    preview: str = ""
    """the beginning of the target's text"""


class SkippedStep(Struct, kw_only=True):
    """A step of a plan that was not applied, because the memory changed after the plan was made."""

    action: str
    """a verb"""
    target: str
    """id of a memory or turn"""
    reason: str
    """why it was left out"""


class JobRun(Struct, kw_only=True):
    """How a run went, or what it would do.

    `done`: the job did everything; `interrupted` by the deadline, a stop or a pause: the rest is left to the next run;
    `failed`: `error` says why; `planned`: a dry run changed nothing. What `counts` reports is done with any outcome;
    `undo` of `operation` takes all of it back.
    """

    job: str
    """the job's name"""
    outcome: Outcome
    """how it ended"""
    by: RunBy
    """who asked for it"""
    started_at: float
    """when it began"""
    took_ms: float
    """how long it took"""
    run: int | None = None
    """its number in the list of runs; null: a dry run"""
    counts: dict[str, int] = {}
    """how many times each action was done; of a dry run: would be done"""
    operation: str | None = None
    """id of the operation, for `undo`; null: no memory was changed"""
    error: str = ""
    """why it was interrupted or failed"""
    plan: str | None = None
    """of a dry run: the id under which the plan is kept for a while"""
    total: int = 0
    """steps that were checked; of a dry run: steps of the plan"""
    more: bool = False
    """of a dry run: there is more to do than the plan contains"""
    steps: list[PlannedStep] = []
    """of a dry run: the plan's steps from `offset` on, at most `limit`"""
    skipped: list[SkippedStep] = []
    """steps of the plan that were left out, at most 1000"""
    next_run_at: float | None = None
    """when the job is due next"""


class Job(Struct, kw_only=True):
    """A job and its state; `next_run_at` is null while it runs only by hand."""

    name: str
    """its name"""
    about: str
    """what it does"""
    state: Literal["waiting", "running", "queued", "paused", "quarantined", "off"]
    """`queued`: it waits for another job's run to end; `off`: it runs only by hand"""
    every_s: float
    """seconds between runs"""
    deadline_s: float
    """seconds after which a run is interrupted"""
    failures: int = 0
    """how many of the latest runs failed in a row"""
    last_run_at: float | None = None
    """when the latest run began"""
    next_run_at: float | None = None
    """when it is due; null: it runs only by hand"""
    last: JobRun | None = None
    """the latest run; null: there was none"""


class JobList(Struct, kw_only=True):
    """The jobs and their latest runs; `at` is the daemon's time."""

    jobs: list[Job]
    """all jobs, or the one that was named"""
    at: float
    """the daemon's time"""
    runs: list[JobRun] = []
    """the latest runs of these jobs, the latest first"""


@rpc("owner", reads=True, lane="control", page=True)
class Jobs(Call[JobList], kw_only=True, frozen=True):
    """List the background jobs with their states, intervals and latest runs."""

    name: str | None = None
    """only this job"""
    limit: Limit = 20
    """how many runs at most"""


@rpc("owner", lane="control", page=True)
class RunJob(Call[JobRun], kw_only=True, frozen=True):
    """Run a job now and wait for it. With `dry_run` return the plan and change nothing; `plan` runs such a plan.

    A plan is kept for a while by its id. When it runs, each of its steps is checked again, and left out if the memory
    has changed. If the job is running already, the call is refused with `conflict`.
    """

    name: str
    """the job's name"""
    dry_run: bool = False
    """make a plan, or show the one that `plan` names, and change nothing"""
    plan: str | None = None
    """id of a plan to apply"""
    offset: Annotated[int, Meta(ge=0)] = 0
    """of a dry run: how many steps to skip"""
    limit: Limit = 1000
    """of a dry run: the most steps in the reply"""
    by: RunBy = "hand"
    """`scheduler` is refused with `conflict` while the job is paused, in quarantine or off"""


@rpc("owner", lane="control", page=True)
class PauseJob(Call[Job], kw_only=True, frozen=True):
    """Stop a job from running by itself, also after a restart of the daemon; a current run is interrupted."""

    name: str
    """the job's name"""


@rpc("owner", lane="control", page=True)
class ResumeJob(Call[Job], kw_only=True, frozen=True):
    """Let a job run by itself again after a pause or after too many failures."""

    name: str
    """the job's name"""

"""Background jobs: what there is, how runs went, running one by hand, its plan."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from memoryd.client.protocol.base import Call, Limit

RunBy = Literal["hand", "scheduler"]
Outcome = Literal["planned", "running", "done", "failed", "interrupted"]


class PlannedStep(Struct, kw_only=True):
    """One thing that a job would do: to which memory, node or file, and why. `preview` is the beginning of its text."""

    action: str
    target: str
    reason: str
    preview: str = ""


class SkippedStep(Struct, kw_only=True):
    """A step of a plan that was not carried out, because what it rests on changed after the plan was made."""

    action: str
    target: str
    reason: str


class JobRun(Struct, kw_only=True):
    """How a run went, or what it would do.

    `done`: all there was to do; `interrupted`: the deadline, a stop or a pause came, the rest comes next time;
    `failed`: `error` says why; `planned`: nothing was done. What `counts` tells was done stays done in any case; `undo`
    of `operation` takes all of it back.
    """

    job: str
    outcome: Outcome
    by: RunBy
    started_at: float
    took_ms: float
    run: int | None = None
    counts: dict[str, int] = {}
    operation: int | None = None
    error: str = ""
    plan: str | None = None
    total: int = 0
    more: bool = False
    steps: list[PlannedStep] = []
    skipped: list[SkippedStep] = []
    next_run_at: float | None = None


class Job(Struct, kw_only=True):
    """A job and its state; `next_run_at` is null while it runs only by hand."""

    name: str
    about: str
    state: Literal["waiting", "running", "queued", "paused", "quarantined", "off"]
    every_s: float
    deadline_s: float
    failures: int = 0
    last_run_at: float | None = None
    next_run_at: float | None = None
    last: JobRun | None = None


class JobList(Struct, kw_only=True):
    """All jobs; `at` is the daemon's time."""

    jobs: list[Job]
    at: float


class JobRuns(Struct, kw_only=True):
    """Runs, the latest first."""

    runs: list[JobRun]


class Jobs(Call[JobList], kw_only=True, frozen=True):
    """List the background jobs with their states, intervals and latest runs."""


class RunJob(Call[JobRun], kw_only=True, frozen=True):
    """Run a job now and wait for it. With `dry_run` return the plan and change nothing; `plan` carries out such a plan.

    A plan is kept for a while by its id. Each of its steps is checked again and left out if the memory changed
    meanwhile. A job that is under way already is refused with `conflict`.
    """

    name: str
    dry_run: bool = False
    plan: str | None = None
    offset: Annotated[int, Meta(ge=0)] = 0
    limit: Limit = 1000
    by: RunBy = "hand"


class PauseJob(Call[Job], kw_only=True, frozen=True):
    """Keep a job from running by itself, also after a restart; a run under way is interrupted."""

    name: str


class ResumeJob(Call[Job], kw_only=True, frozen=True):
    """Let a job run by itself again after a pause or after too many failures."""

    name: str


class JobHistory(Call[JobRuns], kw_only=True, frozen=True):
    """Tell how the runs of a job, or of all jobs, went."""

    name: str | None = None
    limit: Limit = 20

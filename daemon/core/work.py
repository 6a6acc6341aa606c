"""Types of a job's implementation: a plan of steps, and a function that applies a slice of them.

A run calls `plan` outside the writer and `apply` within it, slice by slice, with other writes in between. The table of
jobs is in `jobs/table`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from memoryd.daemon.core.core import Core
from memoryd.daemon.store.writer import Transaction

SLICE_S = 0.005  # after holding the writer this long, a slice ends


class Step(NamedTuple):
    """One planned change."""

    action: str  # a verb: move, delete, join, split, merge …
    target: str  # a full memory id, "node 12", a file …
    reason: str  # a phrase for the user
    data: Any = None  # further input of `apply`


# A plan yields this after reading for a while without a step, so that the run can check whether it must stop.
LOOK = Step("", "", "")

# Only reads; `now` is in UTC seconds. The run may abandon the generator after any step.
Planner = Callable[[Core, float], Iterable[Step]]
# Applies one slice in the writer's transaction, and skips steps that no longer apply. The last argument is the run's
# operation for `history.record`. Returns how often each kind of change was made.
Apply = Callable[[Core, Transaction, Sequence[Step], str], dict[str, int]]


# Long work calls this often: it raises if the run has to stop, and shows waiting callers that the run continues.
StopCheck = Callable[[], None]
# Does one step outside the writer, on the job's own thread, if it cannot be done within a transaction.
Alone = Callable[[Core, Step, StopCheck], dict[str, int]]


class Work(NamedTuple):
    """A job's implementation: a plan, and `apply` or `alone`.

    A job that changes no memories, only derived data or tables of its own, records no history, so `undo` cannot
    revert it.

    The keys of the counts are shown to the user: "moved", "joined", "skipped" (steps that no longer apply) … With
    `at_limit` a job also runs when the database has reached its size limit, and may exceed it: it deletes, or adds
    nothing.
    """

    plan: Planner
    apply: Apply | None = None
    alone: Alone | None = None
    at_limit: bool = False
    look: Planner | None = None  # the planner of a dry run, if that reports more

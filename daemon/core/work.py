"""What a job's implementation is: a plan of steps, and a function that applies a slice of them.

A run calls `plan` outside the writer and `apply` within it, slice by slice; between slices other writers have
their turn. This module holds the types only; the table is in `jobs/table`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from memoryd.daemon.core.core import Core
from memoryd.daemon.store.writer import Transaction

SLICE_S = 0.005  # what holds the writer for so long lets others have their turn


class Step(NamedTuple):
    """One thing that a job would do."""

    action: str  # a verb: move, delete, join, split, merge …
    target: str  # a full memory id, "node 12", a file …
    reason: str  # one phrase for a person
    data: Any = None  # what `apply` needs beside the target


# A plan yields it for what it read without a step, where that may take long: the run looks whether it has to stop.
LOOK = Step("", "", "")

# Reads only; `now` is in UTC seconds. A generator may be given up between any two steps.
Planner = Callable[[Core, float], Iterable[Step]]
# One slice in the writer's transaction. It checks each step again and skips those that hold no more. The last argument
# is the run's operation for `history.record`. Returns counts: what was done how often.
Apply = Callable[[Core, Transaction, Sequence[Step], str], dict[str, int]]


# To be called often by what takes long: raises when the run has to stop, and lets those who wait know that it is still
# running.
StopCheck = Callable[[], None]
# One step outside the writer, on the job's own thread: for what cannot be done within a transaction.
Alone = Callable[[Core, Step, StopCheck], dict[str, int]]


class Work(NamedTuple):
    """A job's implementation: a plan, and `apply` or `alone`.

    One whose `apply` changes no memories, only what is derived or tables of a room, records no history: `undo`
    cannot take it back.

    The keys of the counts are for people: "moved", "joined", "skipped" (for steps that held no more) … A job that
    removes, or takes no room, runs also `at_limit` of the database's size, and may take the file over it.
    """

    plan: Planner
    apply: Apply | None = None
    alone: Alone | None = None
    at_limit: bool = False
    look: Planner | None = None  # what a dry run plans, if it is more

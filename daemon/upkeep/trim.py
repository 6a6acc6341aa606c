"""The job that keeps logs and caches bounded: runs, skipped turns, history, old sessions, unused rows."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from memoryd.client.transport.batches import split_evenly
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.work import Step, Work
from memoryd.daemon.erasing.tables import trimming
from memoryd.daemon.store.turns import KEEP_SKIPPED
from memoryd.daemon.store.writer import Transaction

_DAY_S = 86400.0
KEEP_RUNS = 500  # of each job
KEEP_OPERATIONS = 1_000_000
GIVEN_DAYS = 400.0  # records of what sessions were given are kept for a year of `memctl usefulness`
_PART = 100  # rows of one step


class _Part(NamedTuple):
    what: str  # a table
    ids: Sequence[Any]


def plan(core: Core, now: float) -> Iterator[Step]:
    """Plan to delete the rows beyond the limits of the settings."""
    history_days = core.config.jobs.history_days
    with core.store.reading() as connection:
        runs = trimming.find_old(connection, "runs", KEEP_RUNS)
        skipped = trimming.find_old(connection, "skipped", KEEP_SKIPPED)
        oldest = now - history_days * _DAY_S if history_days else 0.0
        operations = trimming.find_old(connection, "operations", oldest, KEEP_OPERATIONS)
        notes_given = trimming.find_old(connection, "given", now - GIVEN_DAYS * _DAY_S)
        unused = trimming.find_unused(connection)
        successors = trimming.select_unused_successors(connection)
    yield from _build_steps("runs", runs, f"beyond the latest {KEEP_RUNS} of a job")
    yield from _build_steps("skipped", skipped, f"beyond the latest {KEEP_SKIPPED} of a namespace")
    yield from _build_steps("operations", operations, f"older than {history_days:g} days, or too many")
    yield from _build_steps("given", notes_given, f"longer ago than {GIVEN_DAYS:g} days")
    yield from _build_steps("successors", successors, "nothing is superseded through them")
    yield from _build_steps("vectors", unused, "nothing has their text")


def _build_steps(what: str, ids: Sequence[Any], reason: str) -> Iterator[Step]:
    for part in split_evenly(ids, _PART):
        yield Step("forget", f"{len(part)} {_CALLED[what]}", reason, _Part(what, part))


_CALLED = {
    "runs": "runs",
    "skipped": "skipped turns",
    "operations": "operations",
    "given": "notes of what a session was given",
    "successors": "deleted successors",
    "vectors": "vectors",
}


def apply(core: Core, transaction: Transaction, steps: Sequence[Step], operation: str) -> dict[str, int]:
    """Delete the rows of a step."""
    counts: dict[str, int] = {}
    connection = transaction.connection
    for step in steps:
        part: _Part = step.data
        match part.what:
            case "vectors":
                number = trimming.forget_unused(connection, part.ids)
            case "successors":
                number = trimming.forget_successors(connection, part.ids)
            case table:
                number = trimming.forget(connection, table, part.ids)
        name = _CALLED[part.what]
        counts[name] = counts.get(name, 0) + number
    return counts


TRIM = Work(plan, apply, at_limit=True)

"""The job that keeps logs and caches bounded: runs, skipped turns, history, old sessions, what nothing uses."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from memoryd.client.transport.batches import split_evenly
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.work import Step, Work
from memoryd.daemon.store import trimming
from memoryd.daemon.store.turns import KEEP_SKIPPED
from memoryd.daemon.store.writer import Transaction

_DAY_S = 86400.0
KEEP_RUNS = 500  # of each job
KEEP_OPERATIONS = 1_000_000
GIVEN_DAYS = 30.0  # what a session was given is remembered for so long
VECTORS_DAYS = 30.0  # a vector that nothing uses is kept for so long
_PART = 100  # rows of one step


class _Part(NamedTuple):
    what: str  # a table, or what is done with vectors
    ids: Sequence[Any]
    at: float  # the limit of age, or the time to note


def plan(core: Core, now: float) -> Iterator[Step]:
    """Find what is beyond the limits of the settings."""
    history_days = core.config.jobs.history_days
    with core.store.reading() as connection:
        runs = trimming.find_old(connection, "runs", KEEP_RUNS)
        skipped = trimming.find_old(connection, "skipped", KEEP_SKIPPED)
        oldest = now - history_days * _DAY_S if history_days else 0.0
        operations = trimming.find_old(connection, "operations", oldest, KEEP_OPERATIONS)
        notes_given = trimming.find_old(connection, "given", now - GIVEN_DAYS * _DAY_S)
        unused_since = now - VECTORS_DAYS * _DAY_S
        expired = trimming.find_old_orphans(connection, unused_since)
        used, unused = trimming.select_used_again(connection), trimming.find_new_orphans(connection)
        successors = trimming.select_unused_successors(connection)
    yield from _build_steps("runs", runs, f"beyond the latest {KEEP_RUNS} of a job", 0.0)
    yield from _build_steps("skipped", skipped, f"beyond the latest {KEEP_SKIPPED} of a namespace", 0.0)
    yield from _build_steps("operations", operations, f"older than {history_days:g} days, or too many", 0.0)
    yield from _build_steps("given", notes_given, f"longer ago than {GIVEN_DAYS:g} days", 0.0)
    yield from _build_steps("successors", successors, "nothing is superseded through them", 0.0)
    yield from _build_steps("vectors", expired, f"unused for {VECTORS_DAYS:g} days", unused_since)
    yield from _build_steps("used again", used, "a memory has their text again", 0.0)
    yield from _build_steps("unused", unused, f"no memory has their text: forgotten in {VECTORS_DAYS:g} days", now)


def _build_steps(what: str, ids: Sequence[Any], reason: str, at: float) -> Iterator[Step]:
    for part in split_evenly(ids, _PART):
        action, name = _ACTIONS[what]
        yield Step(action, f"{len(part)} {name}", reason, _Part(what, part, at))


_ACTIONS = {
    "runs": ("forget", "runs"),
    "skipped": ("forget", "skipped turns"),
    "operations": ("forget", "operations"),
    "given": ("forget", "notes of what a session was given"),
    "successors": ("forget", "deleted successors"),
    "vectors": ("forget", "vectors"),
    "used again": ("keep", "vectors"),
    "unused": ("note", "unused vectors"),
}


def apply(core: Core, transaction: Transaction, steps: Sequence[Step], operation: str) -> dict[str, int]:
    """Delete, or note."""
    counts: dict[str, int] = {}
    connection = transaction.connection
    for step in steps:
        part: _Part = step.data
        match part.what:
            case "vectors":
                number = trimming.forget_vectors(connection, part.ids, part.at)
            case "successors":
                number = trimming.forget_successors(connection, part.ids)
            case "used again":
                number = trimming.forget_orphans(connection, part.ids)
            case "unused":
                number = trimming.note_orphans(connection, part.ids, part.at)
            case table:
                number = trimming.forget(connection, table, part.ids)
        name = "kept vectors" if step.action == "keep" else _ACTIONS[part.what][1]
        counts[name] = counts.get(name, 0) + number
    return counts


TRIM = Work(plan, apply, at_limit=True)
